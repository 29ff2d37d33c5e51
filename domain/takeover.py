"""Taking conversations over from outside: what is new, what has changed, and what is refused.

The stores hold the lines; what is to be done with new ones is decided here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.conversation import Message, MessageStatus, Run
from compaction_ledger.domain.errors import DuplicateMessageId, InvalidInput, NotAnUpdate
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.transcript import NewMessage, NewRun, check_lines

FIXED = ("run", "role", "kind")
"""What a revision cannot change."""


@dataclass(frozen=True, slots=True)
class NewThread:
    """A conversation as it stands outside: all of its messages, in order, and its runs."""

    conversation: str
    messages: Sequence[NewMessage]
    runs: Sequence[NewRun] = ()


ScopeFrom = Literal["option", "folder", "file"]
"""Whose the conversations of an archive are: one scope's, or whose their folder or file is named after."""


@dataclass(frozen=True, slots=True)
class ArchivedThread:
    """A conversation as an archive has it. ``place`` is where it begins there, ``size`` counts its bytes."""

    scope: str
    place: str
    thread: NewThread
    size: int


@dataclass(frozen=True, slots=True)
class UnreadThread:
    """A part of an archive that cannot be read. ``conversation`` is its id, where that can be told."""

    scope: str | None
    place: str
    conversation: str | None
    error: InvalidInput
    size: int


@dataclass(frozen=True, slots=True)
class KnownThread:
    """The same conversation in a store. ``positions`` has every id ever used, of deleted messages too."""

    messages: Sequence[Message]
    positions: Mapping[str, int]
    runs: Mapping[str, Run]


@dataclass(frozen=True, slots=True)
class Revision:
    """A message's new text or status; ``None`` where it stays as it is."""

    message_id: str
    text: str | None
    status: MessageStatus | None


@dataclass(frozen=True, slots=True)
class ThreadChanges:
    """What is to be stored of one conversation. ``runs`` are those that are new or in another state."""

    conversation: str
    revised: Sequence[Revision]
    appended: Sequence[NewMessage]
    runs: Sequence[NewRun]
    unchanged: int

    @property
    def any(self) -> bool:
        """Whether there is anything to store."""
        return bool(self.revised or self.appended or self.runs)


def check_threads(scope: str, threads: Sequence[NewThread]) -> None:
    """Check whatever can be checked without a store; raises :class:`InvalidInput` kinds (E4)."""
    check_id(scope, "scope")
    names: set[str] = set()
    for thread in threads:
        check_id(thread.conversation, "conversation")
        if thread.conversation in names:
            raise InvalidInput("stands twice", place=f"conversation {thread.conversation!r}")
        names.add(thread.conversation)
        check_lines(thread.messages, thread.runs)
        _check_unique(thread)


def thread_changes(thread: NewThread, known: KnownThread | None, *, update: bool) -> ThreadChanges:
    """What is to be stored of ``thread``, which was checked.

    Without ``update`` every message must be new: raises :class:`DuplicateMessageId`. With it, ``thread`` is
    the whole conversation at a later time: the known messages in their order, perhaps with another text or
    status, and new ones behind them. Raises :class:`NotAnUpdate` for anything else.
    """
    revised: list[Revision] = []
    same = 0
    if known is not None and update:
        _check_all_there(thread, known)
        for message, given in zip(known.messages, thread.messages, strict=False):
            revision = _revision(thread, known, message, given)
            if revision is not None:
                revised.append(revision)
        same = len(known.messages)
    appended = thread.messages[same:]
    if known is not None:
        for place, given in enumerate(appended, start=same):
            if given.id in known.positions:
                raise _deleted(thread, given) if update else _known(thread, known, given, place)
    states = {} if known is None else {run.id: run.state for run in known.runs.values()}
    newest = {run.id: run for run in thread.runs}  # the last one said stands
    return ThreadChanges(
        conversation=thread.conversation,
        revised=revised,
        appended=appended,
        runs=[run for run in newest.values() if states.get(run.id) != run.state],
        unchanged=same - len(revised),
    )


def _check_unique(thread: NewThread) -> None:
    seen: dict[str, int] = {}
    for place, message in enumerate(thread.messages):
        if seen.setdefault(message.id, place) != place:
            first, second = (f"message {at}" for at in (seen[message.id], place))
            raise DuplicateMessageId(message.id, first, second)


def _check_all_there(thread: NewThread, known: KnownThread) -> None:
    """Nothing is deleted because it is not mentioned."""
    given = {message.id for message in thread.messages}
    for message in known.messages:
        if message.id not in given:
            raise NotAnUpdate(
                "is in the ledger and not in the import; if that is meant, delete it in the ledger first",
                place=_place(thread, message.id),
            )


def _revision(
    thread: NewThread, known: KnownThread, message: Message, given: NewMessage
) -> Revision | None:
    """What has changed in the message that stands at one place in both."""
    if message.id != given.id:
        raise _out_of_place(thread, known, message, given)
    for field in FIXED:
        before, after = getattr(message, field), getattr(given, field)
        if before != after:
            raise NotAnUpdate(
                f"has the {field} {before!r} in the ledger and {after!r} in the import;"
                " only text and status can change",
                place=_place(thread, given.id),
            )
    text = None if given.text == message.text else given.text
    status = None if given.status == message.status else given.status
    return None if text is None and status is None else Revision(given.id, text, status)


def _out_of_place(
    thread: NewThread, known: KnownThread, message: Message, given: NewMessage
) -> NotAnUpdate:
    if given.id not in known.positions:
        return NotAnUpdate(
            f"is new and stands before {message.id!r}, which the ledger has; new messages come behind",
            place=_place(thread, given.id),
        )
    if all(given.id != there.id for there in known.messages):
        return _deleted(thread, given)
    return NotAnUpdate(
        f"stands where the ledger has {message.id!r}; the order cannot change",
        place=_place(thread, given.id),
    )


def _deleted(thread: NewThread, given: NewMessage) -> NotAnUpdate:
    return NotAnUpdate(
        "was deleted in the ledger, and an id is never used again", place=_place(thread, given.id)
    )


def _known(
    thread: NewThread, known: KnownThread, given: NewMessage, place: int
) -> DuplicateMessageId:
    return DuplicateMessageId(
        given.id,
        f"position {known.positions[given.id]} of conversation {thread.conversation!r} in the ledger",
        f"message {place} of the import",
        hint="to take over what is new or changed, import it as an update (--update)",
    )


def _place(thread: NewThread, message_id: str) -> str:
    return f"conversation {thread.conversation!r}: message {message_id!r}"
