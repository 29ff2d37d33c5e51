"""Applying the log to a generation of rows, by any number of followers at once (P2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.errors import DamagedLog, DamagedReadModel, LedgerBusy
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.ports import Log, Progress
from compaction_ledger.projections import verdicts
from compaction_ledger.projections.batch import BatchRows
from compaction_ledger.projections.fold import apply
from compaction_ledger.projections.generations import Generation, Session, Store
from compaction_ledger.projections.pages import Pages
from compaction_ledger.projections.waiting import Pauses


@dataclass(frozen=True, slots=True)
class Follower:
    """Brings generations up to the log. ``patience`` is for how many seconds it waits for another follower
    that does not get on; behind that it gives up, if it is ``content`` with less, or else raises.
    """

    store: Store
    batch: int
    patience: float
    content: bool

    def follow(self, log: Log, at: Generation, size: int, progress: Progress | None) -> int:
        """Apply what stands in the log behind a generation's position, up to ``size``; return its position.

        While another follower has the generation, what that one applies is waited for and not done again.
        Raises :class:`ReplacedGeneration`, and :class:`LedgerBusy` where patience has an end.
        """
        position, is_free = at.position, True
        pauses = Pauses(self.patience)
        with Pages(log, size, self.batch) as pages:
            while position < size:
                if is_free:
                    page = pages.at(position)
                    reached = self.store.change(
                        _applying(at.number, position, page, pages.is_current)
                    )
                    is_free = reached is not None
                elif self.content and pauses.are_over:
                    break
                else:  # without reading what another is at
                    wait(self.store, pauses)
                    reached, is_free = self.store.change(_looking(at.number))
                if reached is not None and reached != position:
                    pauses.begin_anew()
                    position = reached
                    if progress:
                        progress(position, max(size, position))
        return position


def wait(store: Store, pauses: Pauses) -> None:
    """Wait a little for another follower, and see to it that it is not one that stands still.

    Raises :class:`LedgerBusy` where all patience is over.
    """
    if pauses.are_over:
        raise LedgerBusy("another process has held the read models for too long")
    if pauses.are_long:
        store.release()
    pauses.pause()


def _applying(
    number: int,
    position: int,
    entries: Sequence[Recorded],
    is_current: Callable[[], bool],
) -> Callable[[Session], int | None]:
    """What applies a batch to a generation at this position, and returns the position it has then.

    Another follower may have been faster: then nothing is done, and neither where something was erased since
    the batch was read. Who erases deletes rows while nobody has the generation: so no row comes back (S3).
    ``None`` while another has the generation.
    """

    def work(session: Session) -> int | None:
        at = session.hold(number)
        if at is None:
            return None
        if at.position != position or not is_current():
            return at.position
        _apply(session, at, entries)
        session.advance(number, position + len(entries))
        return position + len(entries)

    return work


def _looking(number: int) -> Callable[[Session], tuple[int, bool]]:
    """What tells the position of a generation, and whether nobody has it now."""

    def work(session: Session) -> tuple[int, bool]:
        at = session.hold(number)
        return (at or session.find(number)).position, at is not None

    return work


def _apply(session: Session, at: Generation, entries: Sequence[Recorded]) -> None:
    rows = BatchRows(session, at.number)
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
