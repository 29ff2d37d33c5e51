"""Bringing the index of a conversation up to its originals and lines: what is new, what has changed (T15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compaction_ledger.domain.errors import LedgerBusy
from compaction_ledger.domain.history import Document
from compaction_ledger.domain.terms import LAYOUT
from compaction_ledger.usecases.history_sources import (
    HistoryStores,
    Lines,
    Runs,
    digest_of_lines,
    documents_of,
)

MESSAGES_AT_ONCE = 500
LINES_PER_SHELF = 256
"""A line that changes makes so many be indexed again."""

ROUNDS = 1_000
RUN, BLOCK, ALL_LINES = "run:", "lines:", "lines"


class RunMark(NamedTuple):
    """How far a run is indexed: so many messages, and the digest of the last."""

    messages: int
    digest: str

    def __str__(self) -> str:
        return f"{LAYOUT} {self.messages} {self.digest}"


NOTHING = RunMark(0, "")


class HistoryIndexer:
    """Indexes one conversation. Any number of processes may do so at once."""

    def __init__(self, stores: HistoryStores, scope: str, conversation: str) -> None:
        self._stores = stores
        self._place = scope, conversation
        self._runs = Runs(stores, scope, conversation)

    def catch_up(self, lines: Lines) -> None:
        """Index what is not. Where others are at it, what they did is not done again."""
        for _ in range(ROUNDS):
            marks = self._stores.index.marks(*self._place)
            if self._index_runs(marks) and self._index_lines(marks, lines):
                return
        raise LedgerBusy("the index of this conversation is being changed all the time")

    # --- runs ---

    def _index_runs(self, marks: Mapping[str, str]) -> bool:
        names = self._runs.names()
        for run in names:
            if not self._index_run(run, marks.get(RUN + run)):
                return False
        known = {RUN + run for run in names}
        gone = [shelf for shelf in marks if shelf.startswith(RUN) and shelf not in known]
        return all(self._put(shelf, [], marks[shelf], None) for shelf in gone)

    def _index_run(self, run: str, mark: str | None) -> bool:
        count = self._stores.originals.count(self._runs.key(run))
        done = _run_mark(mark)
        if done.messages == count and (mark is not None or not count):
            return True
        shape = self._runs.shape(run)
        if shape is None:  # forgotten at this moment
            return mark is None or self._put(RUN + run, [], mark, None)
        if done.messages > count or not self._is_same(run, done):
            done = NOTHING
        while done.messages < count:
            stop = min(done.messages + MESSAGES_AT_ONCE, count)
            originals = self._runs.read(run, done.messages, stop)
            documents = [
                Document(place, text)
                for original in originals
                for place, text in documents_of(run, original, shape)
            ]
            last = originals[-1].digest if originals and originals[-1].position == stop - 1 else ""
            after = RunMark(stop, last)
            if not self._put(RUN + run, documents, mark, str(after), replace=not done.messages):
                return False
            done, mark = after, str(after)
        return True

    def _is_same(self, run: str, done: RunMark) -> bool:
        """Whether the run goes on from what is indexed: one that was forgotten may have begun anew."""
        if not done.messages:
            return True
        last = self._runs.read(run, done.messages - 1, done.messages)
        return (last[0].digest if last else "") == done.digest

    # --- lines ---

    def _index_lines(self, marks: Mapping[str, str], lines: Lines) -> bool:
        whole = f"{LAYOUT} {lines.revision}"
        if lines.revision is not None and marks.get(ALL_LINES) == whole:
            return True
        blocks = {
            f"{BLOCK}{start}": lines.documents[start : start + LINES_PER_SHELF]
            for start in range(0, len(lines.documents), LINES_PER_SHELF)
        }
        for shelf in [shelf for shelf in marks if shelf.startswith(BLOCK) and shelf not in blocks]:
            if not self._put(shelf, [], marks[shelf], None):
                return False
        for shelf, block in blocks.items():
            before, after = marks.get(shelf), f"{LAYOUT} {digest_of_lines(block)}"
            documents = [line for line in block if line is not None]
            if before != after and not self._put(shelf, documents, before, after, replace=True):
                return False
        known = marks.get(ALL_LINES)
        mark = None if lines.revision is None else whole
        return known == mark or self._put(ALL_LINES, [], known, mark)

    def _put(
        self,
        shelf: str,
        documents: list[Document],
        before: str | None,
        after: str | None,
        *,
        replace: bool = False,
    ) -> bool:
        return self._stores.index.put(
            *self._place, shelf, documents, before=before, after=after, replace=replace
        )


def _run_mark(mark: str | None) -> RunMark:
    """What a mark says; nothing is indexed where it is of another layout."""
    words = mark.split(" ") if mark else []
    if len(words) != 3 or words[0] != LAYOUT:
        return NOTHING
    return RunMark(int(words[1]), words[2])
