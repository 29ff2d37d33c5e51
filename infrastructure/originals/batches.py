"""How originals are stored as objects: one immutable object for all messages of one append.

An object is a head and a body. The head of a batch is one JSON object, ``{"v":1,"scope":…,
"conversation":…,"run":…,"shape":…,"first":12,"messages":[[role,exchange,at,digest,bytes],…]}``; the body is
the messages' bytes, one behind the other. So a batch tells itself where it belongs, and what is to be known
of its messages is read without them.

Names: ``C/run/R/P-F`` for a batch whose first message is at F, ``C/runs/P-N`` for the conversation's run
number N, ``C/results/D`` for a tool result. C and R are digests, since ids may hold anything (E4); P is
counted down, so that what is newest is listed first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

from compaction_ledger.domain.errors import DamagedOriginal
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import NewOriginal, Original
from compaction_ledger.infrastructure.originals import checking

HEAD_VERSION = 1
_HIGHEST = 9_999_999_999


class Blob(NamedTuple):
    """What is stored under one name."""

    head: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class BatchHead:
    """What is to be known of a batch without its messages."""

    shape: str
    first: int
    messages: Sequence[Sequence[Any]]

    @property
    def end(self) -> int:
        """The position behind its last message."""
        return self.first + len(self.messages)


# --- names ---


def conversation_folder(scope: str, conversation: str) -> str:
    """Where all that belongs to a conversation is."""
    return checking.sha256(f"{scope}\0{conversation}".encode()) + "/"


def run_folder(key: WindowKey) -> str:
    """Where the batches of a run are."""
    place = conversation_folder(key.scope, key.conversation)
    return f"{place}run/{run_hash(key.run)}/"


def run_hash(run: str) -> str:
    """What stands for a run in names."""
    return checking.sha256(run.encode())


def numbered(number: int) -> str:
    """The last part of a name: higher numbers sort first."""
    return f"{_HIGHEST - number:010d}-{number:010d}"


def before(number: int) -> str:
    """What sorts before this number, and behind every higher one."""
    return f"{_HIGHEST - number:010d}"


def number_of(name: str) -> int:
    """The number in a name. Raises :class:`DamagedOriginal` for a name that is not ours."""
    last = name.rpartition("/")[2]
    number = last.rpartition("-")[2]
    if number.isdecimal() and number.isascii() and numbered(int(number)) == last:
        return int(number)
    raise DamagedOriginal(f"an object has the name {name!r}, which no object of a ledger has")


# --- batches ---


def encode_batch(key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]) -> Blob:
    """The messages of one append."""
    rows = [[m.role, m.exchange, m.at, m.digest, len(m.wire)] for m in messages]
    head = encode_head(
        key.scope, key.conversation, run=key.run, shape=shape, first=first, messages=rows
    )
    return Blob(head, b"".join(m.wire for m in messages))


def encode_head(scope: str, conversation: str, **more: Any) -> bytes:
    """A head, which says where its object belongs."""
    fields = {"v": HEAD_VERSION, "scope": scope, "conversation": conversation, **more}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def decode_head(name: str, head: bytes, scope: str, conversation: str) -> Mapping[str, Any]:
    """The fields of a head. Raises :class:`DamagedOriginal` also where it belongs to another conversation."""
    try:
        fields: Any = json.loads(head)
    except ValueError as error:
        raise DamagedOriginal(f"the head of {name} cannot be read") from error
    expected = {"v": HEAD_VERSION, "scope": scope, "conversation": conversation}
    if not isinstance(fields, dict) or not expected.items() <= fields.items():
        raise DamagedOriginal(
            f"{name} does not belong to conversation {conversation!r}, or is not known here"
        )
    return fields  # pyright: ignore[reportUnknownVariableType]


def decode_batch_head(name: str, head: bytes, key: WindowKey) -> BatchHead:
    """The head of a batch. Raises :class:`DamagedOriginal`."""
    fields = decode_head(name, head, key.scope, key.conversation)
    shape, rows = fields.get("shape"), fields.get("messages")
    first = number_of(name)
    belongs = (fields.get("run"), fields.get("first")) == (key.run, first)
    if belongs and isinstance(shape, str) and _is_rows(rows):
        return BatchHead(shape, first, rows)
    raise DamagedOriginal(f"the head of {name} is not that of a batch of run {key.run!r}")


def _is_rows(value: object) -> TypeGuard[Sequence[Sequence[Any]]]:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(row, list) and len(row) == 5 for row in value)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]


def decode_batch(name: str, blob: Blob, key: WindowKey) -> list[Original]:
    """The messages of a batch. Raises :class:`DamagedOriginal`."""
    head = decode_batch_head(name, blob.head, key)
    originals: list[Original] = []
    begin = 0
    for position, row in enumerate(head.messages, start=head.first):
        role, exchange, at, digest, length = row
        if type(length) is not int or length < 0 or begin + length > len(blob.body):
            raise checking.damaged(key, position, "is cut off")
        wire = blob.body[begin : begin + length]
        originals.append(checking.original_of(key, position, role, exchange, at, digest, wire))
        begin += length
    if begin != len(blob.body):
        raise DamagedOriginal(f"{name} holds more than its messages")
    return originals
