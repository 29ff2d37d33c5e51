"""Rows that remember what they were before a stretch of the log was applied, and what changed them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.replay import AnyRow, RowChange
from compaction_ledger.projections.memory_rows import MemoryRows
from compaction_ledger.projections.records import (
    AttemptRecord,
    RangeRecord,
    Record,
    SummaryRecord,
    WindowChunkRecord,
    WindowPinRecord,
)

Key = tuple[type[Record], Any]


class WatchedRows(MemoryRows):
    """The rows of ``rows`` themselves: whatever is changed here is changed there.

    Rows change in place once they were asked for, so that is when they are remembered.
    """

    def __init__(self, rows: MemoryRows) -> None:
        self.tables = rows.tables
        self._before: dict[Key, AnyRow | None] = {}
        self._sources: dict[Key, str] = {}
        self._entry: Recorded | None = None
        self._changed: dict[Key, Recorded] = {}
        self._source_changed: dict[Key, Recorded] = {}

    def begin(self, entry: Recorded) -> None:
        """What is put from now on is put by this event."""
        self._entry = entry

    def summary(self, identity: str) -> SummaryRecord | None:
        record = super().summary(identity)
        self._remember(SummaryRecord, identity, record)
        return record

    def range(self, key: tuple[str, str, int]) -> RangeRecord | None:
        record = super().range(key)
        self._remember(RangeRecord, key, record)
        return record

    def attempt(self, key: tuple[str, int]) -> AttemptRecord | None:
        record = super().attempt(key)
        self._remember(AttemptRecord, key, record)
        return record

    def chunk(self, identity: str) -> WindowChunkRecord | None:
        record = super().chunk(identity)
        self._remember(WindowChunkRecord, identity, record)
        return record

    def pin(self, key: str) -> WindowPinRecord | None:
        record = super().pin(key)
        self._remember(WindowPinRecord, key, record)
        return record

    def put(self, record: Record) -> None:
        kind = type(record)
        key: Key = (kind, kind.keys_of(record))
        self._remember(kind, key[1], self.tables[kind].get(key[1]))
        if self._entry is not None:
            self._changed[key] = self._entry
            if isinstance(record, RangeRecord):
                self._note_source(key, record, self._entry)
        super().put(record)

    def changes(self) -> Sequence[RowChange]:
        """Every row that is another one now, in the order of the events that changed them last."""
        found: list[RowChange] = []
        for key, entry in self._changed.items():
            after = row_of(self.tables[key[0]][key[1]])
            before = self._before[key]
            if before == after:
                continue
            source = self._source_changed.get(key)
            found.append(
                RowChange(
                    before,
                    after,
                    entry.index,
                    entry.recorded_at,
                    None if source is None else source.index,
                    None if source is None else source.recorded_at,
                )
            )
        return sorted(found, key=lambda change: change.index)

    def _remember(self, kind: type[Record], key: Any, record: Record | None) -> None:
        if (kind, key) not in self._before:
            self._before[kind, key] = None if record is None else row_of(record)
            if isinstance(record, RangeRecord):
                self._sources[kind, key] = record.source_hash

    def _note_source(self, key: Key, record: RangeRecord, entry: Recorded) -> None:
        known = self._sources.get(key)
        if known != record.source_hash:
            self._sources[key] = record.source_hash
            if known is not None:
                self._source_changed[key] = entry


def row_of(record: Any) -> AnyRow:
    """The row that the read models answer with, of any kind of record."""
    row: AnyRow = record.row()
    return row
