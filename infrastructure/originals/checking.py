"""What is the same in every store of originals: what may come in, who was first, and what must come out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeGuard, cast, get_args

from compaction_ledger.domain.errors import ConcurrentAppend, DamagedOriginal, InvalidInput
from compaction_ledger.domain.identifiers import check_id, is_hash
from compaction_ledger.domain.messages.interface import EntryRole
from compaction_ledger.domain.window.keys import WindowKey, check_key
from compaction_ledger.domain.window.originals import NewOriginal, Original

ROLES = frozenset[str](get_args(EntryRole))
MOST_MESSAGES = 1 << 31
LARGEST = 500_000_000
"""Bytes of one message or result: what every store can take in one piece."""

_INT64 = 1 << 63


class Identity(NamedTuple):
    """By what two appends of a message are told to be of the same one (A9)."""

    role: str
    exchange: int
    digest: str


# --- on the way in ---


def check_append(key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]) -> None:
    """Raises :class:`InvalidInput` naming the message, and :class:`InvalidId` (E4)."""
    check_key(key)
    check_id(shape, "shape")
    _check_number(first, 0, MOST_MESSAGES - len(messages), "first")
    for number, message in enumerate(messages):
        _check_message(message, f"message {first + number}")


def _check_message(message: NewOriginal, place: str) -> None:
    if message.role not in ROLES:
        raise InvalidInput(f"has the unknown role {message.role!r}", place=place)
    _check_number(message.exchange, -1, MOST_MESSAGES, f"{place} exchange")
    _check_number(message.at, -_INT64, _INT64, f"{place} at")
    check_bytes(message.wire, f"{place} wire")
    if not _is_digest(message.digest):
        raise InvalidInput("is no SHA-256 in hexadecimal", place=f"{place} digest")


def check_bytes(content: object, place: str) -> None:
    """Raises :class:`InvalidInput` for what is not bytes, or more than every store can take."""
    if not isinstance(content, bytes):
        raise InvalidInput(f"must be bytes, not {type(content).__name__}", place=place)
    if len(content) > LARGEST:
        raise InvalidInput(f"has {len(content)} bytes, at most {LARGEST} are kept", place=place)


def check_conversation(scope: str, conversation: str) -> None:
    """Raises :class:`InvalidId` (E4)."""
    check_id(scope, "scope")
    check_id(conversation, "conversation")


def check_result(scope: str, conversation: str, digest: object) -> bool:
    """Whether there can be a result of this digest. Raises :class:`InvalidId` for the conversation."""
    check_conversation(scope, conversation)
    return _is_digest(digest)


def check_part(start: int, stop: int | None) -> None:
    """Raises :class:`InvalidInput` where a part of a run begins or ends before its beginning."""
    _check_number(start, 0, _INT64, "start")
    if stop is not None:
        _check_number(stop, 0, _INT64, "stop")


def _check_number(value: object, lowest: int, below: int, place: str) -> None:
    if not isinstance(value, int) or not lowest <= value < below:
        raise InvalidInput(f"must be a number from {lowest}, not {value!r}", place=place)


def _is_digest(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and is_hash(value)


# --- who was first ---


def check_shape(key: WindowKey, present: str, shape: str) -> None:
    """Raises :class:`InvalidInput` where a run is of another shape than the messages."""
    if present != shape:
        raise InvalidInput(
            f"run {key.run!r} has the shape {present!r}, not {shape!r}", place="shape"
        )


def is_kept_already(
    key: WindowKey,
    first: int,
    messages: Sequence[NewOriginal],
    count: int,
    stored: Callable[[], Iterable[Identity]],
) -> bool:
    """Whether ``messages`` are kept at their places already (A9), or else are to be kept now.

    ``stored`` gives what is kept at those places. Raises :class:`ConcurrentAppend` where there is something
    else.
    """
    if not messages and first <= count:
        return True
    if first == count:
        return False
    if first + len(messages) <= count and list(stored()) == identities(messages):
        return True
    raise other_first(key, first, count)


def identities(messages: Iterable[NewOriginal]) -> list[Identity]:
    """Of each message."""
    return [Identity(message.role, message.exchange, message.digest) for message in messages]


def other_first(key: WindowKey, first: int, count: int) -> ConcurrentAppend:
    """The error for messages whose place others have, or that would leave a gap."""
    return ConcurrentAppend(
        f"run {key.run!r} has {count} messages, and others than these stand behind the first {first}"
        if first < count
        else f"run {key.run!r} has {count} messages and not {first}"
    )


# --- on the way out ---


def original_of(
    key: WindowKey,
    position: int,
    role: object,
    exchange: object,
    at: object,
    digest: object,
    wire: object,
) -> Original:
    """The message of a row. Raises :class:`DamagedOriginal` where it cannot be what was kept."""
    if (
        isinstance(role, str)
        and role in ROLES
        and type(exchange) is int
        and type(at) is int
        and isinstance(wire, bytes)
    ):
        return Original(
            position,
            cast("EntryRole", role),
            exchange,
            at,
            wire,
            digest_of(key, position, digest),
        )
    raise damaged(key, position, "is not what a message is stored as")


def digest_of(key: WindowKey, position: int, digest: object) -> str:
    """The digest of a row. Raises :class:`DamagedOriginal`."""
    if _is_digest(digest):
        return digest
    raise damaged(key, position, "has no digest")


def check_dense(key: WindowKey, found: Iterable[int], start: int, stop: int) -> None:
    """Raises :class:`DamagedOriginal` unless ``found`` are the positions from ``start``, below ``stop``."""
    expected = start
    for position in found:
        if position != expected:
            raise damaged(key, expected, "is missing")
        expected += 1
    if expected < stop:
        raise damaged(key, expected, "is missing")


def damaged(key: WindowKey, position: int, why: str) -> DamagedOriginal:
    """The error for a message that is not as it was kept."""
    return DamagedOriginal(f"message m{position} of run {key.run!r} {why}")


def sha256(content: bytes) -> str:
    """In lower-case hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def checked_result(content: object, digest: str) -> bytes:
    """A stored result, if it is what was kept. Raises :class:`DamagedOriginal` (T14)."""
    if isinstance(content, bytes) and sha256(content) == digest:
        return content
    raise DamagedOriginal(f"the tool result {digest} is not what was kept")
