"""Read models of which nothing erased is read, whatever their rows still say."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.erasure import Erasures
from compaction_ledger.domain.ports import (
    Log,
    OnDamaged,
    Progress,
    ReadModelStore,
    RecordValues,
)
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


class GuardedReadModels:
    """Any read models. Raises :class:`Erased` for a conversation that is asked for by name."""

    def __init__(self, store: ReadModelStore, erasures: Erasures) -> None:
        self._store = store
        self._erasures = erasures

    def position(self) -> int:
        """How many facts the rows reflect."""
        return self._store.position()

    def registry_fingerprint(self) -> str:
        """Under which prompt registry the rows were built."""
        return self._store.registry_fingerprint()

    def progress(self) -> Sequence[GenerationProgress]:
        """How far the rows have come."""
        return self._store.progress()

    def census(self) -> RangeCensus:
        """How many ranges there are of each status."""
        return self._store.census()

    def summaries(
        self, scope: str, conversation: str, on_damaged: OnDamaged | None = None
    ) -> Sequence[SummaryRow]:
        """Every identity of this conversation."""
        self._erasures.check(scope, conversation)
        return self._store.summaries(scope, conversation, on_damaged)

    def ranges(
        self, scope: str | None = None, conversation: str | None = None
    ) -> Sequence[RangeRow]:
        """The ranges of whatever is not erased."""
        if scope is not None and conversation is not None:
            self._erasures.check(scope, conversation)
        found = self._store.ranges(scope, conversation)
        erased = {
            place
            for place in {(row.scope, row.conversation) for row in found}
            if self._erasures.was_erased(*place)
        }
        return [row for row in found if (row.scope, row.conversation) not in erased]

    def attempts(self, scope: str, conversation: str) -> Sequence[AttemptRow]:
        """The attempts, in the log's order."""
        self._erasures.check(scope, conversation)
        return self._store.attempts(scope, conversation)

    def deliveries(self, scope: str, conversation: str) -> Sequence[DeliveryRow]:
        """Recorded deliveries."""
        self._erasures.check(scope, conversation)
        return self._store.deliveries(scope, conversation)

    def window_chunks(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowChunkRow]:
        """Every identity of a chunk."""
        self._erasures.check(scope, conversation)
        return self._store.window_chunks(scope, conversation, run)

    def window_pins(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowPinRow]:
        """Every pin."""
        self._erasures.check(scope, conversation)
        return self._store.window_pins(scope, conversation, run)

    def window_deliveries(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowDeliveryRow]:
        """Recorded requests of a run or of all."""
        self._erasures.check(scope, conversation)
        return self._store.window_deliveries(scope, conversation, run)

    def catch_up(self, log: Log, progress: Progress | None = None) -> int:
        """Apply what is new."""
        return self._store.catch_up(log, progress)

    def rebuild(self, log: Log, progress: Progress | None = None) -> int:
        """Build everything anew."""
        return self._store.rebuild(log, progress)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete every row that tells of a conversation."""
        self._store.forget(scope, conversation)

    def records(self) -> RecordValues:
        """Every row of every table, as plain values."""
        return self._store.records()

    def snapshot(self) -> tuple[int, str, RecordValues]:
        """Position, registry fingerprint and records."""
        return self._store.snapshot()


class FollowedReadModels:
    """Read models to be purged: brought up to the log first.

    Else one who follows it, and holds facts that were read before the key was destroyed, could add their
    rows afterwards. Where the rows are ahead, it finds that its facts are applied already.
    """

    def __init__(self, store: ReadModelStore, log: Log) -> None:
        self._store = store
        self._log = log

    def forget(self, scope: str, conversation: str) -> None:
        """Delete every row that tells of a conversation."""
        self._store.catch_up(self._log)
        self._store.forget(scope, conversation)
