"""Read models in memory: for users' own tests, and for what the read models said at a past position (P5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import RLock
from typing import TypeVar

from compaction_ledger.domain.erasure import ErasedFact
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.ports import Log, OnDamaged, Progress, RecordValues
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.read_models import (
    AttemptRow,
    DeliveryRow,
    GenerationProgress,
    RangeCensus,
    RangeRow,
    RangeStatus,
    SummaryRow,
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)
from compaction_ledger.domain.replay import AnyRow, RowChange
from compaction_ledger.projections.fold import apply
from compaction_ledger.projections.memory_rows import MemoryRows
from compaction_ledger.projections.records import (
    RECORDS,
    AttemptRecord,
    DeliveryRecord,
    RangeRecord,
    SummaryRecord,
    WindowChunkRecord,
    WindowDeliveryRecord,
    WindowPinRecord,
    columns,
)
from compaction_ledger.projections.watched import WatchedRows, row_of

BATCH = 500


AnyWindowRecord = TypeVar(
    "AnyWindowRecord", WindowChunkRecord, WindowPinRecord, WindowDeliveryRecord
)


def _chunk_order(record: WindowChunkRecord) -> tuple[str, int, str]:
    return record.run, record.first_message, record.identity


class MemoryReadModels:
    """The read models in dictionaries. ``stop`` bounds what is applied, for a view of the past."""

    def __init__(self, registry: PromptRegistry, *, stop: int | None = None) -> None:
        self._registry = registry
        self._stop = stop
        self._rows = MemoryRows()
        self._position = 0
        self._erased: Counter[str] = Counter()
        self._number = 1
        self._rebuilt: MemoryReadModels | None = None
        self._lock = RLock()  # each fact is applied once, whoever follows (P2)

    def position(self) -> int:
        return self._position

    def registry_fingerprint(self) -> str:
        return self._registry.fingerprint

    def progress(self) -> Sequence[GenerationProgress]:
        """How far the rows have come that serve, and those that are being rebuilt."""
        with self._lock:
            told = [GenerationProgress(self._number, self._position, active=True)]
            if self._rebuilt is not None:
                told.append(
                    GenerationProgress(self._number + 1, self._rebuilt.position(), active=False)
                )
            return told

    def summaries(
        self, scope: str, conversation: str, on_damaged: OnDamaged | None = None
    ) -> Sequence[SummaryRow]:
        with self._lock:  # rows change in place while a batch is applied
            found = [
                r
                for r in self._rows.all(SummaryRecord)
                if (r.scope, r.conversation) == (scope, conversation)
            ]
            found.sort(key=lambda r: (r.from_pair, r.identity))
            return SummaryRecord.rows_of((r.values() for r in found), on_damaged)

    def ranges(
        self, scope: str | None = None, conversation: str | None = None
    ) -> Sequence[RangeRow]:
        with self._lock:
            return [
                record.row()
                for _, record in sorted(self._rows.tables[RangeRecord].items())
                if scope in (None, record.scope) and conversation in (None, record.conversation)
            ]

    def census(self) -> RangeCensus:
        """How many ranges there are of each status."""
        with self._lock:
            ranges = [record.row() for record in self._rows.all(RangeRecord)]
            expiries = [row.expires_at for row in ranges if row.expires_at is not None]
            counts: Counter[RangeStatus] = Counter(row.status for row in ranges)
            return RangeCensus(self._position, counts, min(expiries, default=None))

    def attempts(self, scope: str, conversation: str) -> Sequence[AttemptRow]:
        with self._lock:
            found = [
                r
                for r in self._rows.all(AttemptRecord)
                if (r.scope, r.conversation) == (scope, conversation)
            ]
            return [r.row() for r in sorted(found, key=lambda r: r.started_index)]

    def deliveries(self, scope: str, conversation: str) -> Sequence[DeliveryRow]:
        with self._lock:
            found = [
                r
                for r in self._rows.all(DeliveryRecord)
                if (r.scope, r.conversation) == (scope, conversation)
            ]
            return [r.row() for r in sorted(found, key=lambda r: r.idx)]

    def window_chunks(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowChunkRow]:
        """Every identity of a chunk, by run and first message."""
        with self._lock:
            found = self._of_windows(WindowChunkRecord, (scope, conversation), run)
            return [record.row() for record in sorted(found, key=_chunk_order)]

    def window_pins(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowPinRow]:
        """Every pin, in the log's order."""
        with self._lock:
            found = self._of_windows(WindowPinRecord, (scope, conversation), run)
            return [record.row() for record in sorted(found, key=lambda r: r.idx)]

    def window_deliveries(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowDeliveryRow]:
        """Recorded requests, in the log's order."""
        with self._lock:
            found = self._of_windows(WindowDeliveryRecord, (scope, conversation), run)
            return [record.row() for record in sorted(found, key=lambda r: r.idx)]

    def _of_windows(
        self, kind: type[AnyWindowRecord], of: tuple[str, str], run: str | None
    ) -> list[AnyWindowRecord]:
        return [
            record
            for record in self._rows.all(kind)
            if (record.scope, record.conversation) == of and run in (None, record.run)
        ]

    def forget(self, scope: str, conversation: str) -> None:
        """Delete a conversation's rows."""
        with self._lock:
            self._rows.forget(scope, conversation)
            if self._rebuilt is not None:
                self._rebuilt.forget(scope, conversation)

    def records(self) -> RecordValues:
        """Every row of every table as plain values, by table name and in order of the primary key."""
        with self._lock:
            return {
                kind.table: sorted(record.values() for record in self._rows.all(kind))
                for kind in RECORDS
            }

    @staticmethod
    def conversation_of(table: str, row: Sequence[object]) -> tuple[str, str]:
        """The scope and conversation of a row, as :meth:`records` gives it."""
        kind = next(kind for kind in RECORDS if kind.table == table)
        names = columns(kind)
        return str(row[names.index("scope")]), str(row[names.index("conversation")])

    def snapshot(self) -> tuple[int, str, RecordValues]:
        """Position, registry fingerprint and records, as they are at one moment."""
        with self._lock:
            return self._position, self.registry_fingerprint(), self.records()

    def catch_up(
        self,
        log: Log,
        progress: Progress | None = None,
        on_fact: Callable[[Recorded], None] | None = None,
    ) -> int:
        return self._follow(log, on_fact, progress)

    def _follow(
        self, log: Log, begin: Callable[[Recorded], None] | None, progress: Progress | None
    ) -> int:
        """Apply what is new; ``begin`` is told of each fact before it is applied."""
        size = log.size() if self._stop is None else min(self._stop, log.size())
        while self._position < size:
            with self._lock:
                for entry in log.read(self._position, BATCH, size):
                    if begin is not None:
                        begin(entry)
                    apply(self._rows, entry, self._registry)
                    if isinstance(entry.fact, ErasedFact):
                        self._erased[entry.fact.subject] += 1
                    self._position = entry.index + 1
            if progress:
                progress(self._position, max(size, self._position))
        return self._position

    def follow_to(
        self,
        log: Log,
        stop: int,
        progress: Progress | None = None,
        on_fact: Callable[[Recorded], None] | None = None,
    ) -> int:
        """Apply what is missing up to ``stop`` and no further, and stop there from now on."""
        self._stop = stop
        return self.catch_up(log, progress, on_fact)

    def changes_to(
        self, log: Log, stop: int, progress: Progress | None = None
    ) -> Sequence[RowChange]:
        """As :meth:`follow_to`, and every row that this changed."""
        with self._lock:
            rows = WatchedRows(self._rows)
            self._rows = rows
            try:
                self._stop = stop
                self._follow(log, rows.begin, progress)
            finally:
                self._rows = MemoryRows()
                self._rows.tables = rows.tables
            return rows.changes()

    def rows(self) -> Iterator[AnyRow]:
        """Every row of every kind there is."""
        with self._lock:
            for kind in RECORDS:
                yield from map(row_of, self._rows.all(kind))

    def erased(self) -> Mapping[str, int]:
        """How many of the facts followed so far are erased, by their subject's reference (S3)."""
        with self._lock:
            return dict(self._erased)

    def rebuild(self, log: Log, progress: Progress | None = None) -> int:
        self._rebuilt = fresh = MemoryReadModels(self._registry, stop=self._stop)
        try:
            fresh.catch_up(log, progress)
            with self._lock:
                self._position = fresh.catch_up(log)  # what came meanwhile
                self._rows = fresh._rows
                self._number += 1
                return self._position
        finally:
            self._rebuilt = None
