"""Take over an archive of many conversations, in batches that are stored as a whole.

It can be ended anywhere and begun again: what the ledger has is compared and not stored twice. The archive
counts as the later state of a conversation, as a file of ``import --update`` does; but one that goes on in
the ledger, behind all that the archive has of it, is left as it is. What fails is told at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from compaction_ledger.domain.conversation import Conversation, Message, Run
from compaction_ledger.domain.eligibility import eligible
from compaction_ledger.domain.errors import DamagedReadModel, InvalidInput, NotAnUpdate
from compaction_ledger.domain.ports import ReadModels, TranscriptStore, WorkList
from compaction_ledger.domain.takeover import (
    ArchivedThread,
    NewThread,
    ThreadChanges,
    UnreadThread,
)
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.usecases.stopping import Stop

BATCH_MESSAGES = 2_000
BATCH_CONVERSATIONS = 200
BATCH_CHARACTERS = 4_000_000
"""What goes into one transaction: a batch is full when it has so many of any of them."""

Outcome = Literal["new", "updated", "unchanged", "ahead", "refused"]
"""``ahead``: the ledger has all of it and more."""


@dataclass(frozen=True, slots=True)
class RefusedConversation:
    """A conversation of the archive that was not taken over, and why; ``place`` is where it begins there."""

    scope: str | None
    place: str
    conversation: str | None
    error: InvalidInput


@dataclass(frozen=True, slots=True)
class ArchiveProgress:
    """How far it is: bytes of the archive read, conversations and pairs that are in the ledger."""

    bytes: int
    size: int
    conversations: int
    pairs: int
    refused: int


@dataclass(frozen=True, slots=True)
class ArchiveImport:
    """What became of the archive. ``stopped`` if it was asked to stop before its end.

    ``pairs`` are those that count (E1), ``targets`` the ranges that the policy names (W1), of which ``done``
    had a summary before.
    """

    outcomes: Counter[Outcome]
    pairs: int
    targets: int
    done: int
    refused: tuple[RefusedConversation, ...]
    stopped: bool


OnArchive = Callable[[ArchiveProgress], None]


@dataclass(slots=True)
class _Account:
    """What has become of the archive so far."""

    size: int
    bytes: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter[Outcome])
    pairs: int = 0
    targets: int = 0
    done: int = 0
    refused: list[RefusedConversation] = field(default_factory=list[RefusedConversation])

    def refuse(self, refused: RefusedConversation) -> None:
        self.outcomes["refused"] += 1
        self.refused.append(refused)

    def progress(self) -> ArchiveProgress:
        known = self.outcomes.total() - self.outcomes["refused"]
        return ArchiveProgress(self.bytes, self.size, known, self.pairs, len(self.refused))


@dataclass(frozen=True, slots=True)
class ArchiveTaker:
    """Takes conversations over into one ledger, and puts those with news on its work list."""

    store: TranscriptStore
    work: WorkList
    read_models: ReadModels
    policy: WindowPolicy
    stop: Stop

    def take_over(
        self,
        archive: Iterable[ArchivedThread | UnreadThread],
        size: int = 0,
        on_progress: OnArchive | None = None,
    ) -> ArchiveImport:
        """Take over everything; while a batch is stored, the next one is read. ``size`` is only passed on.

        Raises kinds of :class:`StoreError`.
        """
        account = _Account(size)
        with ThreadPoolExecutor(1, "compaction-ledger-archive") as writer:
            storing: Future[None] | None = None

            def settle() -> None:
                if storing is not None:
                    storing.result()
                    if on_progress:
                        on_progress(account.progress())

            for batch in _batches(archive):
                settle()
                if self.stop.requested:
                    break
                storing = writer.submit(self._take_batch, batch, account)
            else:
                settle()
        if not self.stop.requested:  # what a run stored that was killed before it told the workers
            self.work.discover(self.store)
        return ArchiveImport(
            account.outcomes,
            account.pairs,
            account.targets,
            account.done,
            tuple(account.refused),
            self.stop.requested,
        )

    def _take_batch(self, batch: _Batch, account: _Account) -> None:
        for unread in batch.unread:
            account.refuse(
                RefusedConversation(unread.scope, unread.place, unread.conversation, unread.error)
            )
        found = batch.threads
        if found:
            try:
                self._store(found, account)
            except InvalidInput:  # of one of them, and nothing of any is stored: one by one
                for one in found:
                    self._store_alone(one, account)
        account.bytes += batch.size

    def _store(self, found: Sequence[ArchivedThread], account: _Account) -> None:
        scope = found[0].scope
        stored = self.store.take_over(scope, [one.thread for one in found], update=True)
        self.work.notice((scope, changes.conversation) for changes in stored if changes.any)
        for one, changes in zip(found, stored, strict=True):
            self._count(account, _outcome(changes), conversation_of(scope, one.thread))

    def _store_alone(self, one: ArchivedThread, account: _Account) -> None:
        """Store one conversation, where it is not known yet that the ledger has more of it."""
        try:
            self._store([one], account)
        except InvalidInput as error:
            known = self._further(one) if isinstance(error, NotAnUpdate) else None
            if known is None:
                name = one.thread.conversation
                account.refuse(RefusedConversation(one.scope, one.place, name, error))
            else:
                self._count(account, "ahead", known)

    def _further(self, one: ArchivedThread) -> Conversation | None:
        """The conversation in the ledger, if it begins with all messages of the archive's and goes on."""
        known = self.store.conversation(one.scope, one.thread.conversation)
        ids = [message.id for message in one.thread.messages]
        begins_alike = ids == [message.id for message in known.messages[: len(ids)]]
        return known if begins_alike and len(known.messages) > len(ids) else None

    def _count(self, account: _Account, outcome: Outcome, conversation: Conversation) -> None:
        pairs = len(eligible(conversation).pairs)
        targets = self.policy.targets(pairs)
        account.outcomes[outcome] += 1
        account.pairs += pairs
        account.targets += len(targets)
        if outcome != "new":
            account.done += self._done(conversation, {window.from_pair for window in targets})

    def _done(self, conversation: Conversation, targets: set[int]) -> int:
        """How many of the targets have a summary. It is only shown: what cannot be read counts as none."""
        with suppress(DamagedReadModel):
            rows = self.read_models.ranges(conversation.scope, conversation.id)
            return sum(row.status == "done" and row.from_pair in targets for row in rows)
        return 0


def conversation_of(scope: str, thread: NewThread) -> Conversation:
    """A conversation as it stands outside."""
    name = thread.conversation
    messages = [
        Message(m.id, m.run, m.role, m.status, m.kind, m.text, name, scope) for m in thread.messages
    ]
    runs = {run.id: Run(run.id, run.state, name, scope) for run in thread.runs}
    return Conversation(scope, name, messages, runs)


def _outcome(changes: ThreadChanges) -> Outcome:
    if not changes.any:
        return "unchanged"
    return "updated" if changes.unchanged or changes.revised else "new"


@dataclass(slots=True)
class _Batch:
    """What is stored in one transaction, all of one scope, and what stood between that cannot be read."""

    threads: list[ArchivedThread] = field(default_factory=list[ArchivedThread])
    unread: list[UnreadThread] = field(default_factory=list[UnreadThread])
    names: set[str] = field(default_factory=set[str])
    messages: int = 0
    characters: int = 0
    size: int = 0

    def add(self, item: ArchivedThread | UnreadThread) -> None:
        self.size += item.size
        if isinstance(item, UnreadThread):
            self.unread.append(item)
            return
        self.threads.append(item)
        self.names.add(item.thread.conversation)
        self.messages += len(item.thread.messages)
        self.characters += sum(len(message.text) for message in item.thread.messages)

    def takes(self, item: ArchivedThread | UnreadThread) -> bool:
        """Whether it may go into this batch, too."""
        return (
            isinstance(item, UnreadThread)
            or not self.threads
            or (item.scope == self.threads[0].scope and item.thread.conversation not in self.names)
        )

    @property
    def is_full(self) -> bool:
        return (
            self.messages >= BATCH_MESSAGES
            or len(self.threads) + len(self.unread) >= BATCH_CONVERSATIONS
            or self.characters >= BATCH_CHARACTERS
        )


def _batches(archive: Iterable[ArchivedThread | UnreadThread]) -> Iterator[_Batch]:
    batch = _Batch()
    for item in archive:
        if batch.is_full or not batch.takes(item):
            yield batch
            batch = _Batch()
        batch.add(item)
    if batch.size or batch.threads or batch.unread:
        yield batch
