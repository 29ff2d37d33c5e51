"""The rows that one batch of facts touches, on SQLite: read once, changed by the fold, written once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from compaction_ledger.domain.events import RangeClaimed, RequestDelivered, SummaryImported
from compaction_ledger.domain.log import Recorded
from compaction_ledger.projections.generations import Cursor
from compaction_ledger.projections.records import (
    RECORDS,
    AttemptRecord,
    RangeRecord,
    Record,
    SummaryRecord,
    columns,
)

AnyRecord = TypeVar("AnyRecord", bound=Record)


class BatchRows:
    """The rows that one batch of facts touches, read once and written once."""

    def __init__(self, cursor: Cursor, generation: int) -> None:
        self._cursor = cursor
        self._generation = generation
        self._select = {kind: _select_one(kind, generation) for kind in RECORDS}
        self._seen: dict[type[Record], dict[Any, Any]] = {record: {} for record in RECORDS}
        self._changed: dict[type[Record], dict[Any, Record]] = {record: {} for record in RECORDS}

    def fetch(self, entries: Sequence[Recorded]) -> None:
        """Read the summaries and ranges of a batch at once, not one by one."""
        identities = {e.fact.identity for e in entries if not isinstance(e.fact, RequestDelivered)}
        self._fetch_all(SummaryRecord, identities, [(identity,) for identity in identities])
        jobs = (e.fact.job for e in entries if isinstance(e.fact, (RangeClaimed, SummaryImported)))
        ranges = {(job.scope, job.conversation, job.from_pair) for job in jobs}
        self._fetch_all(RangeRecord, ranges, list(ranges))

    def _fetch_all(
        self, kind: type[AnyRecord], keys: set[Any], values: list[tuple[Any, ...]]
    ) -> None:
        if not keys:
            return
        names = ", ".join(columns(kind)[: kind.key])
        marks = ", ".join([f"({', '.join('?' * kind.key)})"] * len(values))
        self._cursor.execute(
            f"SELECT * FROM {kind.table}_{self._generation} WHERE ({names}) IN (VALUES {marks})",
            [value for row in values for value in row],
        )
        seen = self._seen[kind]
        seen.update(dict.fromkeys(keys))
        for row in self._cursor.fetchall():
            record = kind.of(row)
            seen[record.key_values()] = record

    def summary(self, identity: str) -> SummaryRecord | None:
        seen = self._seen[SummaryRecord]
        return (
            seen[identity]
            if identity in seen
            else self._fetch(SummaryRecord, (identity,), identity)
        )

    def range(self, key: tuple[str, str, int]) -> RangeRecord | None:
        seen = self._seen[RangeRecord]
        return seen[key] if key in seen else self._fetch(RangeRecord, key, key)

    def attempt(self, key: tuple[str, int]) -> AttemptRecord | None:
        seen = self._seen[AttemptRecord]
        return seen[key] if key in seen else self._fetch(AttemptRecord, key, key)

    def put(self, record: Record) -> None:
        kind, key = type(record), record.key_values()
        self._seen[kind][key] = self._changed[kind][key] = record

    def write(self) -> None:
        """Store every changed row, one statement per table, in the order of the tables' keys."""
        for kind, records in self._changed.items():
            rows = map(kind.values_of, [records[key] for key in sorted(records)])
            self._cursor.executemany(_upsert(kind, self._generation), rows)

    def _fetch(self, kind: type[AnyRecord], values: tuple[Any, ...], key: Any) -> AnyRecord | None:
        self._cursor.execute(self._select[kind], values)
        row = self._cursor.fetchone()
        record = self._seen[kind][key] = kind.of(row) if row else None
        return record


def _select_one(kind: type[Record], generation: int) -> str:
    where = " AND ".join(f"{name} = ?" for name in columns(kind)[: kind.key])
    return f"SELECT * FROM {kind.table}_{generation} WHERE {where}"


def _upsert(kind: type[Record], generation: int) -> str:
    marks = ",".join("?" * len(columns(kind)))
    return f"INSERT OR REPLACE INTO {kind.table}_{generation} VALUES ({marks})"
