"""Writes conversations in the native format, so that reading them back gives equal ones (E6)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.transcript import NewMessage
from compaction_ledger.infrastructure.importers.fields import to_iso_time
from compaction_ledger.infrastructure.importers.interface import (
    ImportedConversation,
    JsonObject,
)
from compaction_ledger.infrastructure.importers.reading import to_json

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def write_native(conversation: ImportedConversation, stream: BinaryIO) -> None:
    """Write ``conversation`` to ``stream`` as UTF-8 JSON Lines."""
    stream.writelines(native_lines(conversation))


def native_lines(conversation: ImportedConversation) -> Iterator[bytes]:
    """The lines of ``conversation``: its own record, its runs, its messages.

    Raises :class:`InvalidInput` for the one text that JSON cannot carry: a high surrogate and a low
    one side by side as two separate code points, which every reader would join into one character.
    """
    head: JsonObject = {"type": "conversation", "id": conversation.conversation}
    if conversation.title is not None:
        head["title"] = conversation.title
    yield _line(head, "conversation")
    for run in conversation.runs:
        yield _line({"type": "run", "id": run.id, "state": run.state}, f"run {run.id!r}")
    for message in conversation.messages:
        yield _line(_message(message), f"message {message.id!r}")


def _message(message: NewMessage) -> JsonObject:
    record: JsonObject = {
        "type": "message",
        "id": message.id,
        "run": message.run,
        "role": message.role,
        "status": message.status,
        "kind": message.kind,
        "text": message.text,
    }
    if message.created_at is not None:
        record["created_at"] = to_iso_time(message.created_at, f"message {message.id!r}")
    return record


def _line(record: JsonObject, place: str) -> bytes:
    text = to_json(record, place)
    if _SPLIT_PAIR.search(text):
        raise InvalidInput("JSON cannot carry a surrogate pair as two code points", place=place)
    escaped = _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    return escaped.encode("utf-8") + b"\n"
