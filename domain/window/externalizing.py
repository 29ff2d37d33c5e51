"""Large tool results taken out of the request and reread exactly (T14)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compaction_ledger.domain.canonical import encode_ordered
from compaction_ledger.domain.messages.interface import Part

HANDLE_PREFIX = "tr_"
FIRST_LINES = 3
FIRST_LINES_CHARACTERS = 400
# In bytes of JSON: 400 characters of six each at most, and what is around them.
_LARGEST_STUB = 4_000
_HANDLE = re.compile(r"tr_([0-9a-f]{64})")

REREADING_TOOLS = frozenset({"search_conversation_history", "read_message", "read_tool_result"})
"""What these bring was asked for word for word: it is never taken out again."""


@dataclass(frozen=True, slots=True)
class Stub:
    """A tool result that stands in requests as a stub: where it is, its SHA-256, its size in bytes."""

    message: int
    part: int
    digest: str
    size: int


def content_bytes(text: str) -> bytes:
    """A result's text as it is kept: UTF-8, a lone surrogate in its three-byte form (E6)."""
    return text.encode("utf-8", "surrogatepass")


def large_result(part: Part, names: Mapping[str, str], over: int) -> bytes | None:
    """The content of a result of more than ``over`` bytes; ``None`` for what is left where it is, as a
    stub would not be smaller: the first lines of one may be most of the other, as in Chinese.

    ``names``: the tools of the calls before it, by the calls' ids.
    """
    if part.kind != "result" or (part.name or names.get(part.call_id or "")) in REREADING_TOOLS:
        return None
    if len(part.text) * 4 <= over:  # no character has more bytes
        return None
    content = content_bytes(part.text)
    return content if len(content) > over and _stub_is_smaller(part.text, len(content)) else None


def _stub_is_smaller(text: str, size: int) -> bool:
    """Whether the stub of a result has fewer bytes in a request than the result, both as JSON."""
    if size > _LARGEST_STUB:
        return True
    stub = stub_text(text, "0" * 64, size)  # all digests are of one length
    return len(encode_ordered(stub)) < len(encode_ordered(text))


def result_digest(content: bytes) -> str:
    """The content hash under which a result is kept: plain SHA-256, so that anybody can check it."""
    return hashlib.sha256(content).hexdigest()


def handle_of(digest: str) -> str:
    """The handle by which the model rereads a result."""
    return HANDLE_PREFIX + digest


def digest_of(handle: str) -> str | None:
    """The content hash in a handle; ``None`` where it is none."""
    found = _HANDLE.fullmatch(handle)
    return found[1] if found else None


def stub_text(text: str, digest: str, size: int) -> str:
    """What stands in the result's place: handle, hash, size, the first lines. A function of the content
    alone.
    """
    return "\n".join(
        (
            f"[tool result kept apart; {size} bytes; sha256 {digest}]",
            *(f"| {line}" for line in _first_lines(text)),
            (
                "[only its first lines stand here; all of it is read by read_tool_result with handle "
                f'"{handle_of(digest)}"]'
            ),
        )
    )


def _first_lines(text: str) -> Iterable[str]:
    left = FIRST_LINES_CHARACTERS
    for line in text[: 4 * FIRST_LINES_CHARACTERS].splitlines()[:FIRST_LINES]:
        yield line[:left]
        left -= len(line)
        if left <= 0:
            return
