"""Read models in memory: for users' own tests, and for what the read models said at a past position (P5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any

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
)
from compaction_ledger.projections.fold import apply
from compaction_ledger.projections.records import (
    AttemptRecord,
    DeliveryRecord,
    RangeRecord,
    Record,
    SummaryRecord,
)

BATCH = 500


class MemoryRows:
    """All rows in dictionaries by primary key."""

    def __init__(self) -> None:
        self.summaries: dict[str, SummaryRecord] = {}
        self.ranges: dict[tuple[str, str, int], RangeRecord] = {}
        self.attempts: dict[tuple[str, int], AttemptRecord] = {}
        self.deliveries: dict[str, DeliveryRecord] = {}

    def summary(self, identity: str) -> SummaryRecord | None:
        return self.summaries.get(identity)

    def range(self, key: tuple[str, str, int]) -> RangeRecord | None:
        return self.ranges.get(key)

    def attempt(self, key: tuple[str, int]) -> AttemptRecord | None:
        return self.attempts.get(key)

    def put(self, record: Record) -> None:
        match record:
            case SummaryRecord():
                self.summaries[record.identity] = record
            case RangeRecord():
                self.ranges[record.key_values()] = record
            case AttemptRecord():
                self.attempts[record.key_values()] = record
            case DeliveryRecord():
                self.deliveries[record.delivery_id] = record
            case _:
                raise TypeError(f"no table for {type(record).__name__}")


class MemoryReadModels:
    """The read models in dictionaries. ``stop`` bounds what is applied, for a view of the past."""

    def __init__(self, registry: PromptRegistry, *, stop: int | None = None) -> None:
        self._registry = registry
        self._stop = stop
        self._rows = MemoryRows()
        self._position = 0
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
                for r in self._rows.summaries.values()
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
                for _, record in sorted(self._rows.ranges.items())
                if scope in (None, record.scope) and conversation in (None, record.conversation)
            ]

    def census(self) -> RangeCensus:
        """How many ranges there are of each status."""
        with self._lock:
            ranges = [record.row() for record in self._rows.ranges.values()]
            expiries = [row.expires_at for row in ranges if row.expires_at is not None]
            counts: Counter[RangeStatus] = Counter(row.status for row in ranges)
            return RangeCensus(self._position, counts, min(expiries, default=None))

    def attempts(self, scope: str, conversation: str) -> Sequence[AttemptRow]:
        with self._lock:
            found = [
                r
                for r in self._rows.attempts.values()
                if (r.scope, r.conversation) == (scope, conversation)
            ]
            return [r.row() for r in sorted(found, key=lambda r: r.started_index)]

    def deliveries(self, scope: str, conversation: str) -> Sequence[DeliveryRow]:
        with self._lock:
            found = [
                r
                for r in self._rows.deliveries.values()
                if (r.scope, r.conversation) == (scope, conversation)
            ]
            return [r.row() for r in sorted(found, key=lambda r: r.idx)]

    def records(self) -> RecordValues:
        """Every row of every table as plain values, by table name and in order of the primary key."""
        tables: dict[str, Mapping[Any, Record]] = {
            "summaries": self._rows.summaries,
            "ranges": self._rows.ranges,
            "attempts": self._rows.attempts,
            "deliveries": self._rows.deliveries,
        }
        with self._lock:
            return {
                name: sorted(r.values() for r in rows.values()) for name, rows in tables.items()
            }

    def snapshot(self) -> tuple[int, str, RecordValues]:
        """Position, registry fingerprint and records, as they are at one moment."""
        with self._lock:
            return self._position, self.registry_fingerprint(), self.records()

    def catch_up(self, log: Log, progress: Progress | None = None) -> int:
        size = log.size() if self._stop is None else min(self._stop, log.size())
        while self._position < size:
            with self._lock:
                for entry in log.read(self._position, BATCH, size):
                    apply(self._rows, entry, self._registry)
                    self._position = entry.index + 1
            if progress:
                progress(self._position, max(size, self._position))
        return self._position

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
