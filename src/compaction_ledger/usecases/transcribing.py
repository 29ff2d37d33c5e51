"""Take over conversations from a file that another program wrote, and say what came of each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction_ledger.domain.eligibility import LeftOut, eligible
from compaction_ledger.domain.errors import DuplicateMessageId
from compaction_ledger.domain.ports import Transcripts
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


class Store(Transcripts, Protocol):
    """A transcript store that can be appended to."""

    def append(
        self,
        scope: str,
        conversation: str,
        messages: Iterable[NewMessage],
        runs: Iterable[NewRun] = (),
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class TranscribedConversation:
    """One conversation of the file, and how its lines count now that they are in the store (E1, E2)."""

    scope: str
    conversation: str
    title: str | None
    messages: int
    runs: int
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


def transcribe(store: Store, scope: str, found: ImportedFile) -> FileImport:
    """Append every conversation of ``found`` to ``store``.

    Raises :class:`DuplicateMessageId` before anything is stored where a message is there already.
    """
    known = set(store.conversations())
    for thread in found.conversations:
        if (scope, thread.conversation) in known:
            _check_new(store, scope, thread)
    for thread in found.conversations:
        store.append(scope, thread.conversation, thread.messages, thread.runs)
    return FileImport(
        found.report, tuple(_transcribed(store, scope, thread) for thread in found.conversations)
    )


def _check_new(store: Store, scope: str, thread: ImportedThread) -> None:
    present = store.conversation(scope, thread.conversation).messages
    positions = {message.id: position for position, message in enumerate(present)}
    for place, message in enumerate(thread.messages):
        if message.id in positions:
            raise DuplicateMessageId(
                message.id,
                f"position {positions[message.id]} of conversation {thread.conversation!r} in the ledger",
                f"message {place} of the file",
            )


def _transcribed(store: Store, scope: str, thread: ImportedThread) -> TranscribedConversation:
    lines = eligible(store.conversation(scope, thread.conversation))
    return TranscribedConversation(
        scope=scope,
        conversation=thread.conversation,
        title=thread.title,
        messages=len(thread.messages),
        runs=len(thread.runs),
        pairs=len(lines.pairs),
        left_out=tuple(lines.left_out),
    )
