"""Large tool results as stubs (T14)."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.canonical import encode_ordered
from compaction_ledger.domain.messages.interface import Part
from compaction_ledger.domain.window.externalizing import (
    content_bytes,
    digest_of,
    handle_of,
    large_result,
    result_digest,
    stub_text,
)


def test_a_stub_has_handle_hash_size_and_the_first_lines() -> None:
    text = "first line\nsecond\nthird\nfourth\n" + "x" * 9_000
    content = content_bytes(text)
    digest = hashlib.sha256(content).hexdigest()
    stub = stub_text(text, digest, len(content))
    assert f'"tr_{digest}"' in stub
    assert f"sha256 {digest}" in stub
    assert f"{len(content)} bytes" in stub
    assert "| first line\n| second\n| third\n[" in stub
    assert "fourth" not in stub
    assert len(stub) < 500


@given(st.text())
def test_no_result_can_end_its_stub_or_pose_as_another(text: str) -> None:
    content = content_bytes(text)
    lines = stub_text(text, result_digest(content), len(content)).split("\n")
    assert [line[0] for line in lines] == ["[", *"|" * (len(lines) - 2), "["]


@given(st.text(alphabet=st.characters(), max_size=50))
def test_content_is_kept_bit_for_bit(text: str) -> None:
    assert content_bytes(text).decode("utf-8", "surrogatepass") == text


def test_a_handle_leads_to_the_digest_and_nothing_else_does() -> None:
    digest = "0a" * 32
    assert digest_of(handle_of(digest)) == digest
    for other in ("", "tr_", digest, "tr_" + digest[:-1], "tr_" + digest + "0", "tr_" + "0A" * 32):
        assert digest_of(other) is None


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("库存清单" * 100, False),  # 1,200 bytes, and nearly all of them would be in its stub
        ("库存清单" * 1_000, True),
        ("x" * 1_001, True),
        ("\x01" * 1_001, True),
        ("line\n" * 250, True),
    ],
)
def test_a_result_whose_stub_would_not_be_smaller_stays(text: str, apart: bool) -> None:
    content = large_result(Part(0, "result", text), {}, 1_000)
    assert (content is not None) is apart


@pytest.mark.slow
@given(st.text(min_size=200).map(lambda text: text * 6), st.integers(1_000, 3_000))
def test_a_stub_is_smaller_than_its_result(text: str, over: int) -> None:
    content = large_result(Part(0, "result", text), {}, over)
    if content is not None:
        stub = stub_text(text, result_digest(content), len(content))
        assert len(encode_ordered(stub)) < len(encode_ordered(text))
