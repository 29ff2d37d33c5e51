"""Take over conversations from a file that another program wrote, and say what came of each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction_ledger.domain.eligibility import LeftOut, eligible
from compaction_ledger.domain.ports import TranscriptStore
from compaction_ledger.domain.takeover import NewThread, ThreadChanges, check_threads
from compaction_ledger.domain.transcript import NewMessage, NewRun


class ImportedThread(Protocol):
    """One conversation as a file has it."""

    @property
    def conversation(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def messages(self) -> Sequence[NewMessage]: ...
    @property
    def runs(self) -> Sequence[NewRun]: ...


class RecordLeftOut(Protocol):
    """A record of the file that became no message, or a part of one; named by its place."""

    @property
    def place(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def part(self) -> bool: ...


class FileReport(Protocol):
    """The importer's account of the file: every record was imported or is named in ``left_out``."""

    @property
    def importer(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def records(self) -> int: ...
    @property
    def imported(self) -> int: ...
    @property
    def left_out(self) -> Sequence[RecordLeftOut]: ...


class ImportedFile(Protocol):
    """What an importer hands over."""

    @property
    def conversations(self) -> Sequence[ImportedThread]: ...
    @property
    def report(self) -> FileReport: ...


@dataclass(frozen=True, slots=True)
class TranscribedConversation:
    """One conversation of the file, and how its lines count now that they are in the store (E1, E2).

    Of its ``messages`` some were ``appended``, some ``revised`` and the others ``unchanged``; ``run_states``
    counts the runs that are new or in another state.
    """

    scope: str
    conversation: str
    title: str | None
    messages: int
    appended: int
    revised: int
    unchanged: int
    runs: int
    run_states: int
    pairs: int
    left_out: tuple[LeftOut, ...]

    @property
    def left_out_by_reason(self) -> Mapping[str, int]:
        """How many lines make no pair, by reason code."""
        return Counter(line.reason for line in self.left_out)


@dataclass(frozen=True, slots=True)
class FileImport:
    """What was read from the file, and what became of it."""

    report: FileReport
    conversations: tuple[TranscribedConversation, ...]
    update: bool = False


def check_file(scope: str, found: ImportedFile) -> None:
    """Check all that can be checked before there is a store. Raises :class:`InvalidInput` kinds."""
    check_threads(scope, _threads(found))


def transcribe(
    store: TranscriptStore, scope: str, found: ImportedFile, *, update: bool = False
) -> FileImport:
    """Append every conversation of ``found`` to ``store``, or with ``update`` bring them up to date.

    Raises :class:`DuplicateMessageId` where a message is there already, with ``update``
    :class:`NotAnUpdate` where the file is no later state of what is there; then nothing is stored.
    """
    changed = store.take_over(scope, _threads(found), update=update)
    conversations = tuple(
        _transcribed(store, scope, thread, changes)
        for thread, changes in zip(found.conversations, changed, strict=True)
    )
    return FileImport(found.report, conversations, update)


def _threads(found: ImportedFile) -> list[NewThread]:
    return [
        NewThread(thread.conversation, thread.messages, thread.runs)
        for thread in found.conversations
    ]


def _transcribed(
    store: TranscriptStore, scope: str, thread: ImportedThread, changes: ThreadChanges
) -> TranscribedConversation:
    lines = eligible(store.conversation(scope, thread.conversation))
    return TranscribedConversation(
        scope=scope,
        conversation=thread.conversation,
        title=thread.title,
        messages=len(thread.messages),
        appended=len(changes.appended),
        revised=len(changes.revised),
        unchanged=changes.unchanged,
        runs=len(thread.runs),
        run_states=len(changes.runs),
        pairs=len(lines.pairs),
        left_out=tuple(lines.left_out),
    )
