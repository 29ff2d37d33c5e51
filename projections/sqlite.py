"""Read models on SQLite: generations of tables, each row and its position in one transaction (P2, P3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from compaction_ledger.domain.errors import DamagedLog, DamagedReadModel, RebuildOvertaken
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.ports import Log, OnDamaged, Progress, RecordValues
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.read_models import AttemptRow, DeliveryRow, RangeRow, SummaryRow
from compaction_ledger.projections import generations, verdicts
from compaction_ledger.projections.batch import BatchRows
from compaction_ledger.projections.fold import apply
from compaction_ledger.projections.generations import Cursor, Generation, ReplacedGeneration
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
REBUILD_BATCH = 5_000  # nobody waits for these rows, and a page of them is written once for many

T = TypeVar("T")


class Database(Protocol):
    """Where the tables are. A transaction is rolled back on any error."""

    read_only: bool

    def transaction(
        self, *, commit: bool, durable: bool = True, lenient: bool = False
    ) -> AbstractContextManager[Cursor]: ...


class SQLiteReadModels:
    """The read models in the ledger's own file.

    Rows are asked of the serving generation, if it is of our layout; else there are none, until a follower
    has built them anew. What is damaged is :class:`DamagedReadModel`, and a rebuild mends it.
    """

    def __init__(self, database: Database, registry: PromptRegistry) -> None:
        self._database = database
        self._verdicts = verdicts.written(registry)
        if not database.read_only:
            self._prepare()

    # --- questions ---

    def position(self) -> int:
        """How many facts the rows of the serving generation reflect."""
        return self._ask(lambda _, at: at.position) or 0

    def registry_fingerprint(self) -> str:
        """Under which registry the serving generation was built."""
        return self._ask(lambda _, at: verdicts.read(at.verdicts).fingerprint) or ""

    def summaries(
        self, scope: str, conversation: str, on_damaged: OnDamaged | None = None
    ) -> Sequence[SummaryRow]:
        """Every identity of this conversation, by range."""
        rows = self._select(SummaryRecord, (scope, conversation), "from_pair, identity")
        return SummaryRecord.rows_of(rows, on_damaged)

    def ranges(
        self, scope: str | None = None, conversation: str | None = None
    ) -> Sequence[RangeRow]:
        """Every range known to the log."""
        order = "scope, conversation, from_pair"
        return list(
            map(RangeRecord.row_of, self._select(RangeRecord, (scope, conversation), order))
        )

    def attempts(self, scope: str, conversation: str) -> Sequence[AttemptRow]:
        """The attempts, in the log's order."""
        rows = self._select(AttemptRecord, (scope, conversation), "started_index")
        return list(map(AttemptRecord.row_of, rows))

    def deliveries(self, scope: str, conversation: str) -> Sequence[DeliveryRow]:
        """Recorded deliveries, in the log's order."""
        rows = self._select(DeliveryRecord, (scope, conversation), "idx")
        return list(map(DeliveryRecord.row_of, rows))

    def records(self) -> RecordValues:
        """Every row of every table as plain values, by table name and in order of the primary key."""
        return self.snapshot()[2]

    def snapshot(self) -> tuple[int, str, RecordValues]:
        """Position, registry fingerprint and records, as they are at one moment."""

        def everything(cursor: Cursor, at: Generation) -> tuple[int, str, RecordValues]:
            fingerprint = verdicts.read(at.verdicts).fingerprint
            return at.position, fingerprint, _records(cursor, at.number)

        empty: RecordValues = {record.table: [] for record in RECORDS}
        return self._ask(everything, lenient=True) or (0, "", empty)

    # --- following the log ---

    def catch_up(self, log: Log, progress: Progress | None = None) -> int:
        """Apply what is new; several followers may do so at once, each fact is applied once (P2).

        New rows are judged by the verdicts that the serving generation was begun with, whatever registry
        we have: rows of one generation are judged alike, until somebody rebuilds (P4). Only where the
        tables are of an older layout are they built anew here; those of a newer one are left alone.
        """
        while True:
            try:
                at = self._ask(lambda _, at: at)
                if at is None:
                    return self._renew(log, progress)
                return self._follow(log, at, log.size(), progress)
            except ReplacedGeneration:  # a rebuild switched meanwhile: its tables go on from here
                continue

    def rebuild(self, log: Log, progress: Progress | None = None) -> int:
        """Build a new generation beside the serving one and switch (P3). Begins anew after a kill.

        Of several rebuilds at once the one that began last is carried on by all of them. Raises
        :class:`RebuildOvertaken` where that is one under another registry.
        """
        return self._build(log, progress, only_ours=True)

    def _renew(self, log: Log, progress: Progress | None) -> int:
        """Build the rows where there are none of our layout."""
        with self._database.transaction(commit=False) as cursor:
            if generations.is_newer(cursor):
                return 0
        return self._build(log, progress, only_ours=False)

    def _build(self, log: Log, progress: Progress | None, *, only_ours: bool) -> int:
        with self._database.transaction(commit=True, durable=False) as cursor:
            at = generations.begin(cursor, self._verdicts)
        while True:
            try:
                return self._complete(log, at, progress)
            except ReplacedGeneration:
                at = self._later(at, only_ours=only_ours)

    def _later(self, ours: Generation, *, only_ours: bool) -> Generation:
        """The generation that was begun after ours and took its place, if it is as good."""
        with self._database.transaction(commit=False) as cursor:
            later = generations.newest(cursor)
        if (
            later is None
            or later.number <= ours.number
            or later.layout != ours.layout
            or (only_ours and later.verdicts != ours.verdicts)
        ):
            raise RebuildOvertaken(
                "another process began to rebuild the read models meanwhile, in another way: "
                "what it makes of them counts"
            )
        return later

    def _complete(self, log: Log, at: Generation, progress: Progress | None) -> int:
        """Bring a generation up to the log and let it serve, never with less than what serves now.

        The log is measured outside of the transaction: within it, a second connection could be waited for
        by a thread that waits for ours. A log that does not grow any more ends it in any case, also where
        the rows that serve say that they have seen more of it than there is.
        """
        size = -1
        while True:
            self._follow(log, at, log.size(), progress, REBUILD_BATCH)
            before, size = size, log.size()
            with self._database.transaction(commit=True, durable=False) as cursor:
                at = generations.find(cursor, at.number)
                if at.active:  # somebody else was faster
                    return at.position
                served = generations.served_position(cursor)
                if at.position >= size and (at.position >= served or size == before):
                    generations.switch(cursor, at.number)
                    return at.position

    def _follow(
        self, log: Log, at: Generation, size: int, progress: Progress | None, batch: int = BATCH
    ) -> int:
        """Apply what stands in the log behind a generation's position, up to ``size``."""
        position = at.position
        while position < size:
            entries = log.read(position, batch, size)
            with self._database.transaction(commit=True, durable=False) as cursor:
                at = generations.find(cursor, at.number)
                if at.position == position:
                    _apply(cursor, at, entries)
                    position += len(entries)
                    generations.advance(cursor, at.number, position)
                else:  # by another follower
                    position = at.position
            if progress:
                progress(position, max(size, position))
        return position

    # --- inside ---

    def _prepare(self) -> None:
        with self._database.transaction(commit=False) as cursor:
            if generations.is_prepared(cursor):
                return
        with self._database.transaction(commit=True, durable=False) as cursor:
            if not generations.is_prepared(cursor):
                generations.switch(cursor, generations.begin(cursor, self._verdicts).number)

    def _ask(
        self, question: Callable[[Cursor, Generation], T], *, lenient: bool = False
    ) -> T | None:
        """Ask the serving generation, in one snapshot; ``None`` where there is none of our layout.

        Raises :class:`DamagedReadModel` where it cannot be asked.
        """
        try:
            with self._database.transaction(commit=False, lenient=lenient) as cursor:
                at = generations.serving(cursor)
                return question(cursor, at) if at.is_ours else None
        except DamagedReadModel:
            raise
        except DamagedLog as error:
            with self._database.transaction(commit=False) as cursor:
                if not generations.has_state(cursor):
                    return None
            raise DamagedReadModel(f"the read models cannot be read: {error}") from error

    def _select(
        self, record: type[Record], of: tuple[str | None, str | None], order: str
    ) -> list[Sequence[Any]]:
        """The rows of one table as they stand there, of one scope or conversation or of all."""
        given = {
            name: value
            for name, value in zip(("scope", "conversation"), of, strict=True)
            if value is not None
        }
        where = " AND ".join(f"{name} = ?" for name in given) or "1"
        rest = f"WHERE {where} ORDER BY {order}"

        def rows(cursor: Cursor, at: Generation) -> list[Sequence[Any]]:
            statement = f"SELECT * FROM {record.table}_{at.number} {rest}"
            cursor.execute(statement, list(given.values()))
            return cursor.fetchall()

        try:
            return self._ask(rows) or []
        except DamagedReadModel:  # perhaps for one row alone
            return self._ask(rows, lenient=True) or []


def _apply(cursor: Cursor, at: Generation, entries: Sequence[Recorded]) -> None:
    rows = BatchRows(cursor, at.number)
    rows.fetch(entries)
    judge = verdicts.read(at.verdicts)
    try:
        for entry in entries:
            apply(rows, entry, judge)
    except DamagedLog as error:
        if at.active:  # rows are missing or changed; if it is the log, a rebuild says so
            raise DamagedReadModel(
                f"the rows do not fit what follows in the log: {error}"
            ) from error
        raise
    rows.write()


def _records(cursor: Cursor, number: int) -> RecordValues:
    tables: RecordValues = {}
    for record in RECORDS:
        key = ", ".join(columns(record)[: record.key])
        cursor.execute(f"SELECT * FROM {record.table}_{number} ORDER BY {key}")
        tables[record.table] = list(map(tuple, cursor.fetchall()))
    return tables
