"""Trajectories of SWE-agent: OpenAI Chat messages under ``history``, with members of its own.

What a tool printed has the role ``tool``, or ``user`` where the model was not given tools to call: it is
told apart by ``message_type``. Demonstrations that stand before the task are traces.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import an_object, the_list
from compaction_ledger.infrastructure.importers.interface import (
    ImportResult,
    JsonObject,
    ReasonCode,
    Sample,
)
from compaction_ledger.infrastructure.importers.openai_parts import message_parts
from compaction_ledger.infrastructure.importers.reading import label, read_document, shown, to_json
from compaction_ledger.infrastructure.importers.turns import Part

_COPIES = frozenset({"trajectory", "query"})


class SWEAgentImporter:
    """Reads a trajectory; its file is one conversation."""

    name = "swe-agent"
    description = "trajectories of SWE-agent (history and trajectory in one document)"

    def sniff(self, sample: Sample) -> bool:
        """Whether the document has both a history and a trajectory."""
        if len(sample.records) != 1 or not sample.objects:
            return False
        document = sample.objects[0]
        return all(isinstance(document.get(key), list) for key in ("history", "trajectory"))

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the history; everything beside it is named in the report."""
        collector, name = Collector(self.name, path), label(path)
        document = an_object(read_document(path), name)
        parts: list[Part] = []
        acted = False  # whether the task, which is an observation, too, has been set
        for number, value in enumerate(the_list(document, "history", name)):
            place = f"{name} history[{number}]"
            message = an_object(value, place)
            parts += _parts(message, place, collector, acted=acted)
            acted = acted or (message.get("role") == "assistant" and not message.get("is_demo"))
            collector.took()
        for key in sorted(set(document) - {"history"}):
            reason: ReasonCode = "duplicate" if key in _COPIES else "metadata"
            collector.left_out(f"{name} {shown(key)}", reason, "beside the history")
        collector.add_parts(None, parts)
        return collector.result(conversation)


def _parts(message: JsonObject, place: str, collector: Collector, *, acted: bool) -> list[Part]:
    if message.get("role") == "user" and message.get("message_type") == "observation" and acted:
        return [Part(place, "tool", "tool", to_json(message, place))]
    found = message_parts(message, place, collector)
    if message.get("is_demo") is True:
        return [replace(part, kind="trace") if part.kind != "tool" else part for part in found]
    return found
