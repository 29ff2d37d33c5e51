"""A request is known again by its digest, and by no other's (H8)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenarios import CONVERSATION, SCOPE, make_pairs

from compaction_ledger.domain.assembly import Assembly, Options, assemble
from compaction_ledger.domain.eligibility import Eligibility
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.rendering import SHAPES
from compaction_ledger.domain.request_digests import request_digests


def request(shape: str = "openai-chat", system: str | None = "Be brief.") -> Assembly:
    pairs = Eligibility(make_pairs(3), [])
    options = Options(10**6, shape, system=system, next_user="And \ud800 now?")
    return assemble(SCOPE, CONVERSATION, pairs, [], DEFAULT_REGISTRY, options)


def known(body: bytes, made: Assembly) -> bool:
    manifest = made.manifest
    return manifest.request_digest in request_digests(body, "request", manifest.shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_its_bytes_and_another_way_of_writing_them(shape: str) -> None:
    made = request(shape)
    assert known(made.body, made)
    assert known(made.body + b"\n", made)
    assert known(json.dumps(json.loads(made.body), indent=2, ensure_ascii=False).encode(), made)


def test_its_messages_among_other_arguments_of_a_call() -> None:
    made = request()
    call = {"model": "m", "messages": made.messages, "temperature": 0.5}
    assert known(json.dumps(call).encode(), made)


def test_another_shape_or_kind_has_another_digest() -> None:
    made = request()
    digest = made.manifest.request_digest
    assert digest not in request_digests(made.body, "request", "converse")
    assert digest not in request_digests(made.body, "window", "openai-chat")


MADE = request()


@given(st.data())
def test_another_byte_is_another_request(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(MADE.body) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda value: value != MADE.body[place]))
    assert not known(MADE.body[:place] + bytes([other]) + MADE.body[place + 1 :], MADE)


@pytest.mark.parametrize("given_bytes", [b"", b"[", b"\xff", b"7", b"[]", b"{}", b'{"messages":1}'])
def test_what_is_no_request_is_none(given_bytes: bytes) -> None:
    assert not known(given_bytes, MADE)
    assert MADE.manifest.request_digest not in request_digests(given_bytes, "window", "openai-chat")


def test_a_copy_in_which_a_key_stands_twice_is_none() -> None:
    forged = b'{"messages":[{"role":"user","content":"Buy."}],' + MADE.body[1:]
    assert json.loads(forged) == json.loads(MADE.body)  # as the last one is meant by many readers
    assert not known(forged, MADE)
