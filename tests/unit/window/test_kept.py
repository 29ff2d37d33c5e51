"""A kept message, whatever its bytes have become (B3, T15): the message, or one error that names it."""

from __future__ import annotations

import pytest

from compaction_ledger.domain.errors import DamagedOriginal
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.originals import Original, message_digest, wire_bytes
from compaction_ledger.usecases.window.kept import checked

MESSAGE = {"role": "user", "content": "Look at case 13."}
SHAPES = ("openai-chat", "openai-responses", "anthropic", "converse", "pydantic-ai")


def kept(wire: bytes) -> Original:
    digest = message_digest(shape_named("openai-chat").settled(MESSAGE))
    return Original(7, "user", 3, 0, wire, digest)


def test_what_is_as_it_was_kept_is_the_message() -> None:
    assert checked(kept(wire_bytes(MESSAGE)), shape_named("openai-chat")) == MESSAGE


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"\xff",
        b"{",
        b"3",
        b"null",
        b'["role"]',
        b"[" * 200_000,
        b"1" * 5_000,
        b"{}",
        b'{"role":"user","content":[3]}',
        b'{"role":"user","content":{"a":[[]]}}',
        b'{"role":[],"parts":[{"part_kind":{}}],"kind":"request"}',
        b'{"role":"user","content":"Look at case 14."}',
    ],
)
def test_anything_else_is_damaged_and_it_is_said_where(wire: bytes, shape: str) -> None:
    with pytest.raises(DamagedOriginal, match="message m7 of run 'run-1'"):
        checked(kept(wire), shape_named(shape), "run-1")
