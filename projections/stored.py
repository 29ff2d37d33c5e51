"""Read models in a database: questions, following the log, and rebuilding, in any database (P1 to P4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.domain.identifiers import is_well_formed
from compaction_ledger.domain.ports import Log, OnDamaged, Progress, RecordValues
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.read_models import (
    AttemptRow,
    DeliveryRow,
    GenerationProgress,
    RangeCensus,
    RangeRow,
    SummaryRow,
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)
from compaction_ledger.projections import verdicts
from compaction_ledger.projections.following import Follower
from compaction_ledger.projections.generations import (
    Generation,
    ReplacedGeneration,
    Session,
    Store,
    Values,
)
from compaction_ledger.projections.rebuilding import Rebuilder
from compaction_ledger.projections.records import (
    RECORDS,
    AttemptRecord,
    DeliveryRecord,
    RangeRecord,
    Record,
    SummaryRecord,
    WindowChunkRecord,
    WindowDeliveryRecord,
    WindowPinRecord,
    columns,
)

FOLLOWING_PATIENCE = 5.0
"""For how many seconds a follower waits for another that has the rows and does not get on."""
REBUILDING_PATIENCE = 600.0
"""As above, for one that rebuilds: it has nothing to give instead."""

T = TypeVar("T")


class StoredReadModels:
    """The read models in tables of a database.

    Rows are asked of the serving generation, if it is of our layout; else there are none, until a follower
    has built them anew. What is damaged is :class:`DamagedReadModel`, and a rebuild mends it.
    """

    def __init__(
        self, store: Store, registry: PromptRegistry, patience: float = FOLLOWING_PATIENCE
    ) -> None:
        self._store = store
        self._follower = Follower(store, store.batch, patience, content=True)
        self._rebuilder = Rebuilder(
            store,
            Follower(store, store.rebuild_batch, REBUILDING_PATIENCE, content=False),
            verdicts.written(registry),
        )
        if not store.read_only:
            self._rebuilder.prepare()

    # --- questions ---

    def position(self) -> int:
        """How many facts the rows of the serving generation reflect."""
        at = self._serving()
        return at.position if at else 0

    def registry_fingerprint(self) -> str:
        """Under which registry the serving generation was built."""
        at = self._serving()
        return verdicts.read(at.verdicts).fingerprint if at else ""

    def progress(self) -> Sequence[GenerationProgress]:
        """How far the rows have come that serve, and those that are being rebuilt."""
        known = self._ask(lambda: self._store.read(lambda session: session.known())) or ()
        return [GenerationProgress(at.number, at.position, at.active) for at in known]

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
        rows = self._select(RangeRecord, (scope, conversation), order)
        return list(map(RangeRecord.row_of, rows))

    def census(self) -> RangeCensus:
        """How many ranges there are of each status."""
        found = self._ask(lambda: self._store.read(_counted))
        return found or RangeCensus(0, {}, None)

    def attempts(self, scope: str, conversation: str) -> Sequence[AttemptRow]:
        """The attempts, in the log's order."""
        rows = self._select(AttemptRecord, (scope, conversation), "started_index")
        return list(map(AttemptRecord.row_of, rows))

    def deliveries(self, scope: str, conversation: str) -> Sequence[DeliveryRow]:
        """Recorded deliveries, in the log's order."""
        rows = self._select(DeliveryRecord, (scope, conversation), "idx")
        return list(map(DeliveryRecord.row_of, rows))

    def window_chunks(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowChunkRow]:
        """Every identity of a chunk, by run and first message."""
        order = "run, first_message, identity"
        rows = self._select(WindowChunkRecord, (scope, conversation), order, run)
        return list(map(WindowChunkRecord.row_of, rows))

    def window_pins(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowPinRow]:
        """Every pin, in the log's order."""
        rows = self._select(WindowPinRecord, (scope, conversation), "idx", run)
        return list(map(WindowPinRecord.row_of, rows))

    def window_deliveries(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowDeliveryRow]:
        """Recorded requests, in the log's order."""
        rows = self._select(WindowDeliveryRecord, (scope, conversation), "idx", run)
        return list(map(WindowDeliveryRecord.row_of, rows))

    def records(self) -> RecordValues:
        """Every row of every table as plain values, by table name and in order of the primary key."""
        return self.snapshot()[2]

    def snapshot(self) -> tuple[int, str, RecordValues]:
        """Position, registry fingerprint and records, as they are at one moment."""
        empty: RecordValues = {record.table: [] for record in RECORDS}
        found = self._ask(lambda: self._store.read(_everything, lenient=True))
        return found or (0, "", empty)

    # --- following the log ---

    def catch_up(self, log: Log, progress: Progress | None = None) -> int:
        """Apply what is new; any number of followers may do so at once, each fact is applied once (P2).

        New rows are judged by the verdicts that the serving generation was begun with, whatever registry
        we have: rows of one generation are judged alike, until somebody rebuilds (P4). Only where the
        tables are of an older layout are they built anew here; those of a newer one are left alone.

        Another follower that has the rows and does not get on is not waited for longer than a few seconds:
        then the answer is the position that was reached.
        """
        while True:
            try:
                at = self._serving()
                if at is None:
                    return self._renew(log, progress)
                return self._follower.follow(log, at, log.size(), progress)
            except ReplacedGeneration:  # a rebuild switched meanwhile: its tables go on from here
                continue

    def rebuild(self, log: Log, progress: Progress | None = None) -> int:
        """Build a new generation beside the serving one and switch (P3). Begins anew after a kill.

        Of several rebuilds at once the one that began last is carried on by all of them. Raises
        :class:`RebuildOvertaken` where that is one under another registry.
        """
        return self._rebuilder.build(log, progress, only_ours=True)

    def _renew(self, log: Log, progress: Progress | None) -> int:
        """Build the rows where there are none of our layout."""
        if self._store.read(lambda session: session.is_kept_by_others()):
            return 0
        return self._rebuilder.build(log, progress, only_ours=False)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete a conversation's rows in every generation.

        Those of another layout are left: nothing is known of their tables, and the next rebuild drops them.
        """
        self._store.change(partial(_forget, scope=scope, conversation=conversation), slow=True)

    # --- inside ---

    def _serving(self) -> Generation | None:
        """The generation that serves; ``None`` where it is none of our layout."""
        at = self._ask(self._store.serving)
        return at if at and at.is_ours else None

    def _ask(self, question: Callable[[], T]) -> T | None:
        """Ask; ``None`` where there are no read models that we know. Raises :class:`DamagedReadModel`."""
        try:
            return question()
        except DamagedReadModel:
            if self._store.read(lambda session: session.is_prepared()):
                raise
            return None  # nobody has opened the ledger yet who could begin them
        except self._store.damage as error:
            if not self._store.read(lambda session: session.is_known()):
                return None
            raise DamagedReadModel(f"the read models cannot be read: {error}") from error

    def _select(
        self,
        kind: type[Record],
        of: tuple[str | None, str | None],
        order: str,
        run: str | None = None,
    ) -> Sequence[Values]:
        """The rows of one table as they stand there, of one scope or conversation or run, or of all."""
        named = zip(("scope", "conversation", "run"), (*of, run), strict=True)
        given = {name: value for name, value in named if value is not None}
        if not all(map(is_well_formed, given.values())):
            return []  # there is no such conversation, and no database takes the question (E4)
        try:
            return self._ask(lambda: self._store.select(kind, given, order)) or []
        except DamagedReadModel:  # perhaps for one row alone
            return self._ask(lambda: self._store.select(kind, given, order, lenient=True)) or []


def _forget(session: Session, *, scope: str, conversation: str) -> None:
    if not session.is_known():
        return
    session.hold_all()
    for at in session.known():
        for kind in RECORDS if at.is_ours else ():
            session.forget(kind, at.number, scope, conversation)


def _counted(session: Session) -> RangeCensus | None:
    """The ranges counted; ``None`` where the rows are none of our layout."""
    at = session.serving()
    if not at.is_ours:
        return None
    tally = session.tally(at.number)
    known = RangeRecord.words["status"]
    if any(status not in known for status, _, _ in tally):
        raise DamagedReadModel("a row of ranges: status is none of those that there are")
    expiries = [expiry for _, _, expiry in tally if expiry is not None]
    counts = {status: count for status, count, _ in tally}
    return RangeCensus(at.position, counts, min(expiries, default=None))


def _everything(session: Session) -> tuple[int, str, RecordValues] | None:
    """Position, registry fingerprint and all rows; ``None`` where they are none of our layout."""
    at = session.serving()
    if not at.is_ours:
        return None
    tables: RecordValues = {}
    for kind in RECORDS:
        key = ", ".join(columns(kind)[: kind.key])
        tables[kind.table] = list(map(tuple, session.rows(kind, at.number, {}, key)))
    return at.position, verdicts.read(at.verdicts).fingerprint, tables
