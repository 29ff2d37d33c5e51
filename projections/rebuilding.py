"""Building a generation of rows beside the one that serves, and switching to it (P3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from compaction_ledger.domain.errors import DamagedReadModel, LedgerBusy, RebuildOvertaken
from compaction_ledger.domain.ports import Log, Progress
from compaction_ledger.projections.following import Follower, wait
from compaction_ledger.projections.generations import (
    LAYOUT,
    Generation,
    ReplacedGeneration,
    Session,
    Store,
)
from compaction_ledger.projections.waiting import Pauses

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """Builds generations whose rows are judged by ``verdicts``, with a follower that does not give up."""

    store: Store
    follower: Follower
    verdicts: str

    def prepare(self) -> None:
        """Let an empty generation serve, where there is nothing of read models yet."""
        if self.store.read(lambda session: session.is_prepared()):
            return

        def first(session: Session) -> None:
            session.hold_all()
            if not session.is_prepared():
                number = session.begin(self.verdicts)
                session.index(number)
                session.switch(number)

        self._change_alone(first)

    def build(self, log: Log, progress: Progress | None, *, only_ours: bool) -> int:
        """Build and switch; return the position of what serves then.

        Of several at once the one that began last is carried on by all of them. With ``only_ours``, raises
        :class:`RebuildOvertaken` where that is one whose rows are judged by other verdicts.
        """
        at = self._begin()
        while True:
            try:
                return self._complete(log, at, progress)
            except ReplacedGeneration:
                at = self._later(at, only_ours=only_ours) or self._begin()

    def _begin(self) -> Generation:
        number = self._change_alone(lambda session: session.begin(self.verdicts))
        return Generation(number, 0, LAYOUT, self.verdicts, active=False)

    def _later(self, ours: Generation, *, only_ours: bool) -> Generation | None:
        """The generation that was begun after ours and took its place, if it is as good.

        ``None`` where there is none: ours was lost when the database died, as it did not wait for the disk.
        """
        known = self.store.read(lambda session: session.known())
        later = known[-1] if known else None
        if later is None or later.number < ours.number:
            return None
        if later.layout != ours.layout or (only_ours and later.verdicts != ours.verdicts):
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
            self.follower.follow(log, at, log.size(), progress)
            self._index(at.number)
            before, size = size, log.size()
            at, done = self._change_alone(_switching(at, size, grows=size != before))
            if done:
                self.store.clean()
                return at.position

    def _index(self, number: int) -> None:
        """Make the indexes that readers need: outside of the switch, which nobody shall wait for."""
        pauses = Pauses(self.follower.patience)
        while not self.store.change(_indexing(number), slow=True):
            wait(self.store, pauses)

    def _change_alone(self, work: Callable[[Session], T]) -> T:
        """Change what needs generations for itself. Who has one is waited for, and released in the end."""
        pauses = Pauses(self.follower.patience)
        while True:
            try:
                return self.store.change(work)
            except LedgerBusy:  # it has waited
                if pauses.are_over:
                    raise
            self.store.release()
            pauses.pause()


def _indexing(number: int) -> Callable[[Session], bool]:
    """What makes the indexes of a generation; ``False`` while another has it."""

    def work(session: Session) -> bool:
        if session.hold(number) is None:
            return False
        session.index(number)
        return True

    return work


def _switching(
    ours: Generation, size: int, *, grows: bool
) -> Callable[[Session], tuple[Generation, bool]]:
    """What lets a generation serve that is as far as the log, and tells whether it serves now."""

    def work(session: Session) -> tuple[Generation, bool]:
        session.hold_all()
        at = session.find(ours.number)
        if at.verdicts != ours.verdicts:  # its number was given again: see _later
            raise ReplacedGeneration
        if at.active:  # somebody else was faster
            return at, True
        complete = at.position >= size and (not grows or at.position >= _served(session))
        if complete:
            session.switch(at.number)
        return at, complete

    return work


def _served(session: Session) -> int:
    """How far the rows have come that serve now; 0 where nothing of them can be read."""
    try:
        at = session.serving()
    except DamagedReadModel:
        return 0
    return at.position if at.is_ours else 0
