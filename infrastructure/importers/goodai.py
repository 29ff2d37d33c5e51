"""Event logs of the GoodAI LTM benchmark: one long conversation among control events."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    an_object,
    epoch_time,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import ImportResult, JsonObject, Sample
from compaction_ledger.infrastructure.importers.reading import read_lines
from compaction_ledger.infrastructure.importers.turns import Part

_USER_EVENTS = (0, 3)
_ASSISTANT_EVENTS = (4, 5)
_MEMBERS = {"type", "timestamp", "test_id", "data"}


class GoodAIImporter:
    """Events of type 0 and 3 are the user's, 4 and 5 the assistant's; others steer it."""

    name = "goodai"
    description = "event logs of the GoodAI LTM benchmark"

    def sniff(self, sample: Sample) -> bool:
        """Whether every line is an event."""
        events = sample.objects
        return bool(events) and all(
            set(event) == _MEMBERS and isinstance(event["type"], int) for event in events
        )

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the log line by line."""
        collector = Collector(self.name, path)
        parts: list[Part] = []
        for place, value in read_lines(path):
            event = an_object(value, place)
            kind = event.get("type")
            if not isinstance(kind, int) or isinstance(kind, bool):
                raise MalformedRecord("an event's type must be a number", place=place)
            if kind in _USER_EVENTS or kind in _ASSISTANT_EVENTS:
                parts.append(_part(event, place, is_user=kind in _USER_EVENTS))
                collector.took()
            else:
                collector.left_out(place, "control_event", f"event of type {kind}")
        collector.add_parts(None, parts)
        return collector.result(conversation)


def _part(event: JsonObject, place: str, *, is_user: bool) -> Part:
    text = the_text(the_object(event, "data", place), "message", f"{place} data")
    created_at = epoch_time(event.get("timestamp"), f"{place} timestamp")
    if is_user:
        return Part(place, "user", "user", text, created_at=created_at)
    return Part(place, "text", "assistant", text, created_at=created_at)
