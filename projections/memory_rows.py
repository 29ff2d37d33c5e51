"""The rows of the read models in dictionaries."""

from __future__ import annotations

from typing import Any, TypeVar

from compaction_ledger.projections.records import (
    RECORDS,
    AttemptRecord,
    RangeRecord,
    Record,
    SummaryRecord,
    WindowChunkRecord,
    WindowPinRecord,
)

AnyRecord = TypeVar("AnyRecord", bound=Record)


class MemoryRows:
    """All rows in dictionaries by primary key."""

    def __init__(self) -> None:
        self.tables: dict[type[Record], dict[Any, Any]] = {record: {} for record in RECORDS}

    def summary(self, identity: str) -> SummaryRecord | None:
        return self.tables[SummaryRecord].get(identity)

    def range(self, key: tuple[str, str, int]) -> RangeRecord | None:
        return self.tables[RangeRecord].get(key)

    def attempt(self, key: tuple[str, int]) -> AttemptRecord | None:
        return self.tables[AttemptRecord].get(key)

    def chunk(self, identity: str) -> WindowChunkRecord | None:
        return self.tables[WindowChunkRecord].get(identity)

    def pin(self, key: str) -> WindowPinRecord | None:
        return self.tables[WindowPinRecord].get(key)

    def put(self, record: Record) -> None:
        kind = type(record)
        self.tables[kind][kind.keys_of(record)] = record

    def forget(self, scope: str, conversation: str) -> None:
        """Delete a conversation's rows."""
        for kind, rows in self.tables.items():
            self.tables[kind] = {
                key: row
                for key, row in rows.items()
                if (row.scope, row.conversation) != (scope, conversation)
            }

    def all(self, kind: type[AnyRecord]) -> list[AnyRecord]:
        """The rows of one table, in the order in which they came."""
        return list(self.tables[kind].values())
