"""The native format: JSON Lines, one record per line. See ``docs/reference/import-formats.md``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from compaction_ledger.domain.errors import DuplicateMessageId, MalformedRecord
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import an_object, iso_time
from compaction_ledger.infrastructure.importers.interface import (
    ImportedConversation,
    ImportResult,
    JsonValue,
    Sample,
)
from compaction_ledger.infrastructure.importers.native_model import (
    RECORD,
    AnyRecord,
    ConversationRecord,
    MessageRecord,
    RunRecord,
)
from compaction_ledger.infrastructure.importers.reading import read_lines

_FIRST_KEYS = {
    "conversation": {"type", "id"},
    "run": {"type", "id", "state"},
    "message": {"type", "id", "run", "role", "text"},
}


@dataclass(slots=True)
class Gathered:
    """One conversation while it is read; each record with its place."""

    head: ConversationRecord | None = None
    runs: dict[str, NewRun] = field(default_factory=dict[str, NewRun])
    run_places: dict[str, str] = field(default_factory=dict[str, str])
    messages: dict[str, NewMessage] = field(default_factory=dict[str, NewMessage])
    message_places: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, record: AnyRecord, place: str) -> None:
        check_id(record.id, f"{place} id")
        match record:
            case ConversationRecord():
                self._take_head(record, place)
            case RunRecord():
                self._take_run(record, place)
            case MessageRecord():
                self._take_message(record, place)

    def conversation(self, otherwise: str, place: str) -> ImportedConversation:
        """What was gathered; without a record of the conversation it is called ``otherwise``."""
        name = otherwise if self.head is None else self.head.id
        check_id(name, f"{place} conversation")
        title = None if self.head is None else self.head.title
        runs, messages = tuple(self.runs.values()), tuple(self.messages.values())
        return ImportedConversation(name, runs, messages, title)

    def _take_head(self, record: ConversationRecord, place: str) -> None:
        if self.head is not None or self.runs or self.messages:
            raise MalformedRecord(
                "the conversation record must be the first, and the only one", place=place
            )
        self.head = record

    def _take_run(self, record: RunRecord, place: str) -> None:
        if record.id in self.runs:
            first = self.run_places[record.id]
            raise MalformedRecord(f"the run {record.id!r} stands already at {first}", place=place)
        self.runs[record.id] = NewRun(record.id, record.state)
        self.run_places[record.id] = place

    def _take_message(self, record: MessageRecord, place: str) -> None:
        if record.id in self.messages:
            raise DuplicateMessageId(record.id, self.message_places[record.id], place)
        self.messages[record.id] = NewMessage(
            id=record.id,
            run=check_id(record.run, f"{place} run"),
            role=record.role,
            text=record.text,
            status=record.status,
            kind=record.kind,
            created_at=iso_time(record.created_at, f"{place} created_at"),
        )
        self.message_places[record.id] = place


class NativeImporter:
    """Reads the native format, which names every run itself."""

    name = "native"
    description = "Compaction Ledger's own JSON Lines: conversation, run and message records"

    def sniff(self, sample: Sample) -> bool:
        """Whether the first record is one of ours."""
        first = sample.objects[0] if sample.objects else {}
        kind = first.get("type")
        return isinstance(kind, str) and kind in _FIRST_KEYS and _FIRST_KEYS[kind] <= set(first)

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the file line by line."""
        collector, gathered = Collector(self.name, path), Gathered()
        for place, value in read_lines(path):
            gathered.take(native_record(value, place), place)
            collector.took()
        collector.add(gathered.conversation(collector.stem, collector.source))
        return collector.result(conversation)


def native_record(value: JsonValue, place: str) -> AnyRecord:
    """A record of the native format. Raises :class:`MalformedRecord`."""
    try:
        return RECORD.validate_python(an_object(value, place))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        member = ".".join(str(part) for part in first["loc"][1:])
        message = f"{member}: {first['msg']}" if member else first["msg"]
        raise MalformedRecord(message, place=place) from error
