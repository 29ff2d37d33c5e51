"""Read models on SQLite: generations of tables, each row and its position in one transaction (P2, P3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, TypeVar

from compaction_ledger.domain.errors import StoreError
from compaction_ledger.domain.events import RangeClaimed, RequestDelivered, SummaryImported
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.ports import Log, Progress
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.read_models import AttemptRow, DeliveryRow, RangeRow, SummaryRow
from compaction_ledger.projections.fold import apply
from compaction_ledger.projections.records import (
    RECORDS,
    AttemptRecord,
    DeliveryRecord,
    RangeRecord,
    Record,
    SummaryRecord,
    columns,
)

BATCH = 500
REBUILD_BATCH = 1_000  # nobody waits for these rows

AnyRecord = TypeVar("AnyRecord", bound=Record)


class ReplacedGeneration(StoreError):
    """Another process rebuilt the read models and switched to its own tables."""


class Cursor(Protocol):
    """The part of a DB-API cursor that is used here."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Any: ...
    def executemany(self, statement: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """Where the tables are. A transaction is rolled back on any error."""

    read_only: bool

    def transaction(
        self, *, commit: bool, durable: bool = True
    ) -> AbstractContextManager[Cursor]: ...


class SQLiteReadModels:
    """The read models in the ledger's own file."""

    def __init__(self, database: Database, registry: PromptRegistry) -> None:
        self._database = database
        self._registry = registry
        if not database.read_only:
            self._prepare()

    # --- questions ---

    def position(self) -> int:
        """How many facts the rows of the serving generation reflect."""
        return self._ask(_position) or 0

    def registry_fingerprint(self) -> str:
        """Under which registry the serving generation was built."""
        return self._ask(_fingerprint) or ""

    def summaries(self, scope: str, conversation: str) -> Sequence[SummaryRow]:
        """Every identity of this conversation, by range."""
        order = "from_pair, identity"
        return [r.row() for r in self._select(SummaryRecord, (scope, conversation), order)]

    def ranges(
        self, scope: str | None = None, conversation: str | None = None
    ) -> Sequence[RangeRow]:
        """Every range known to the log."""
        return [
            r.row()
            for r in self._select(
                RangeRecord, (scope, conversation), "scope, conversation, from_pair"
            )
        ]

    def attempts(self, scope: str, conversation: str) -> Sequence[AttemptRow]:
        """The attempts, in the log's order."""
        return [
            r.row() for r in self._select(AttemptRecord, (scope, conversation), "started_index")
        ]

    def deliveries(self, scope: str, conversation: str) -> Sequence[DeliveryRow]:
        """Recorded deliveries, in the log's order."""
        return [r.row() for r in self._select(DeliveryRecord, (scope, conversation), "idx")]

    def records(self) -> dict[str, list[tuple[object, ...]]]:
        """Every row of every table as plain values, by table name and in order of the primary key."""
        return self._ask(_records) or {record.table: [] for record in RECORDS}

    def snapshot(self) -> tuple[int, str, dict[str, list[tuple[object, ...]]]]:
        """Position, registry fingerprint and records, as they are at one moment."""

        def everything(cursor: Cursor, generation: int) -> tuple[int, str, Any]:
            return (
                _position(cursor, generation),
                _fingerprint(cursor, generation),
                _records(cursor, generation),
            )

        empty: dict[str, list[tuple[object, ...]]] = {record.table: [] for record in RECORDS}
        return self._ask(everything) or (0, "", empty)

    # --- following the log ---

    def catch_up(self, log: Log, progress: Progress | None = None) -> int:
        """Apply what is new; several followers may do so at once, each fact is applied once (P2).

        Rows of one generation are judged by one registry (P4): where the serving ones were judged by
        another than ours, new facts mean a rebuild.
        """
        while True:
            with self._database.transaction(commit=False) as cursor:
                generation = _active(cursor)
                position = _position(cursor, generation)
                is_ours = _fingerprint(cursor, generation) == self._registry.fingerprint
            if not is_ours and position < log.size():
                return self.rebuild(log, progress)
            try:
                return self._follow(log, generation, position, progress)
            except (
                ReplacedGeneration
            ):  # a rebuild switched meanwhile (P3): its tables go on from here
                continue

    def rebuild(self, log: Log, progress: Progress | None = None) -> int:
        """Build a new generation beside the serving one and switch (P3). Begins anew after a kill."""
        with self._database.transaction(commit=True, durable=False) as cursor:
            generation = self._new_generation(cursor)
        self._follow(log, generation, 0, progress, REBUILD_BATCH)
        while True:
            with self._database.transaction(commit=True, durable=False) as cursor:
                # Nobody can append while we hold the write lock: what is missing now is all there is.
                position = _position(cursor, generation)
                if position == _log_size(cursor):
                    _run(cursor, "indexes.sql", generation)
                    _switch(cursor, generation)
                    return position
            self._follow(log, generation, position, progress)

    def _follow(
        self,
        log: Log,
        generation: int,
        position: int,
        progress: Progress | None,
        batch: int = BATCH,
    ) -> int:
        size = log.size()
        while position < size:
            entries = log.read(position, batch, size)
            with self._database.transaction(commit=True, durable=False) as cursor:
                reached = _position(cursor, generation)
                if reached == position:
                    self._apply(cursor, generation, entries)
                    reached = position + len(entries)
                    _advance(cursor, generation, reached)
            position = reached
            if progress:
                progress(position, max(size, position))
        return position

    def _apply(self, cursor: Cursor, generation: int, entries: Sequence[Recorded]) -> None:
        rows = _BatchRows(cursor, generation)
        rows.fetch(entries)
        for entry in entries:
            apply(rows, entry, self._registry)
        rows.write()

    # --- inside ---

    def _prepare(self) -> None:
        with self._database.transaction(commit=False) as cursor:
            if _has_state(cursor):
                return
        with self._database.transaction(commit=True, durable=False) as cursor:
            for statement in _statements("state.sql"):
                cursor.execute(statement)
            cursor.execute("SELECT count(*) FROM read_model_generations")
            if cursor.fetchone()[0] == 0:
                generation = self._new_generation(cursor)
                _run(cursor, "indexes.sql", generation)
                cursor.execute(
                    "UPDATE read_model_generations SET active = 1 WHERE generation = ?",
                    (generation,),
                )

    def _new_generation(self, cursor: Cursor) -> int:
        """Tables for a new generation; what a killed rebuild left behind is dropped."""
        cursor.execute("SELECT generation, active FROM read_model_generations ORDER BY generation")
        known = cursor.fetchall()
        for generation, active in known:
            if not active:
                _drop(cursor, generation)
        number = max((generation for generation, _ in known), default=0) + 1
        _drop(cursor, number)  # tables that no row speaks of
        _run(cursor, "tables.sql", number)
        cursor.execute(
            "INSERT INTO read_model_generations VALUES (?, 0, ?, 0)",
            (number, self._registry.fingerprint),
        )
        return number

    def _ask(self, question: Callable[[Cursor, int], Any]) -> Any:
        """Ask the serving generation, in one snapshot; ``None`` where there is none yet."""
        with self._database.transaction(commit=False) as cursor:
            if self._database.read_only and not _has_state(cursor):
                return None
            return question(cursor, _active(cursor))

    def _select(
        self, record: type[AnyRecord], of: tuple[str | None, str | None], order: str
    ) -> list[AnyRecord]:
        def rows(cursor: Cursor, generation: int) -> list[Any]:
            given = {
                name: value
                for name, value in zip(("scope", "conversation"), of, strict=True)
                if value is not None
            }
            where = " AND ".join(f"{name} = ?" for name in given) or "1"
            cursor.execute(
                f"SELECT * FROM {record.table}_{generation} WHERE {where} ORDER BY {order}",
                list(given.values()),
            )
            return cursor.fetchall()

        return [record(*row) for row in self._ask(rows) or ()]


class _BatchRows:
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
            record = kind(*row)
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
        record = self._seen[kind][key] = kind(*row) if row else None
        return record


def _select_one(kind: type[Record], generation: int) -> str:
    where = " AND ".join(f"{name} = ?" for name in columns(kind)[: kind.key])
    return f"SELECT * FROM {kind.table}_{generation} WHERE {where}"


def _upsert(kind: type[Record], generation: int) -> str:
    marks = ",".join("?" * len(columns(kind)))
    return f"INSERT OR REPLACE INTO {kind.table}_{generation} VALUES ({marks})"


def _has_state(cursor: Cursor) -> bool:
    cursor.execute("SELECT count(*) FROM sqlite_master WHERE name = 'read_model_generations'")
    return bool(cursor.fetchone()[0])


def _active(cursor: Cursor) -> int:
    cursor.execute("SELECT generation FROM read_model_generations WHERE active = 1")
    row = cursor.fetchone()
    if row is None:
        raise StoreError("the read models have no serving generation: rebuild them")
    return int(row[0])


def _position(cursor: Cursor, generation: int) -> int:
    cursor.execute(
        "SELECT position FROM read_model_generations WHERE generation = ?", (generation,)
    )
    row = cursor.fetchone()
    if row is None:
        raise ReplacedGeneration(
            f"generation {generation} of the read models was replaced meanwhile"
        )
    return int(row[0])


def _fingerprint(cursor: Cursor, generation: int) -> str:
    cursor.execute(
        "SELECT registry FROM read_model_generations WHERE generation = ?", (generation,)
    )
    return str(cursor.fetchone()[0])


def _records(cursor: Cursor, generation: int) -> dict[str, list[tuple[object, ...]]]:
    tables: dict[str, list[tuple[object, ...]]] = {}
    for record in RECORDS:
        key = ", ".join(columns(record)[: record.key])
        cursor.execute(f"SELECT * FROM {record.table}_{generation} ORDER BY {key}")
        tables[record.table] = list(map(tuple, cursor.fetchall()))
    return tables


def _advance(cursor: Cursor, generation: int, position: int) -> None:
    cursor.execute(
        "UPDATE read_model_generations SET position = ? WHERE generation = ?",
        (position, generation),
    )


def _log_size(cursor: Cursor) -> int:
    cursor.execute("SELECT size FROM log_head WHERE id = 0")
    return int(cursor.fetchone()[0])


def _switch(cursor: Cursor, generation: int) -> None:
    cursor.execute(
        "SELECT generation FROM read_model_generations WHERE generation <> ?", (generation,)
    )
    for (old,) in cursor.fetchall():
        _drop(cursor, old)
    cursor.execute(
        "UPDATE read_model_generations SET active = 1 WHERE generation = ?", (generation,)
    )


def _drop(cursor: Cursor, generation: int) -> None:
    for record in RECORDS:
        cursor.execute(f"DROP TABLE IF EXISTS {record.table}_{generation}")
    cursor.execute("DELETE FROM read_model_generations WHERE generation = ?", (generation,))


def _run(cursor: Cursor, script: str, generation: int) -> None:
    for statement in _statements(script):
        cursor.execute(statement.replace("{g}", str(generation)))


@cache
def _statements(name: str) -> tuple[str, ...]:
    script = (
        files("compaction_ledger.projections")
        .joinpath("sql")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )
    return tuple(part.strip() for part in script.split(";") if part.strip())
