"""B1: canonical JSON is RFC 8785, and stays injective on lone surrogates."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.canonical import (
    MAX_INTEGER,
    canonical_json,
    encode_ordered,
    tagged_sha256,
)
from compaction_ledger.domain.errors import InvalidInput

WELL_FORMED = st.text()
ANY_TEXT = st.text(st.characters())
HARD_TEXT = st.text(st.sampled_from('\x00\x1f\x7f\x80"\\/\b\f\n\r\tz\u2028\u2029é\ufffd\uffff😀𐀀'))

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | WELL_FORMED | HARD_TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WELL_FORMED | HARD_TEXT, inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(VALUES)
def test_b1_well_formed_values_have_rfc_8785s_bytes(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


def test_b1_every_single_character_has_rfc_8785s_bytes() -> None:
    codes = [*range(0xD800), *range(0xE000, 0x3000 + 0xE000), 0x1F600, 0x10FFFF]
    texts = [chr(code) for code in codes]
    assert canonical_json(texts) == rfc8785.dumps(texts)


def test_b1_control_characters_are_escaped_as_rfc_8785_says() -> None:
    short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
    for code in range(0x20):
        expected = short.get(code, f"\\u{code:04x}")
        assert canonical_json(chr(code)) == f'"{expected}"'.encode()
    assert canonical_json("\x7f\x80\u2028/") == '"\x7f\x80\u2028/"'.encode()


def test_b1_the_slow_path_gives_the_same_bytes() -> None:
    """A lone surrogate anywhere takes the other encoder: all else must be encoded as before."""
    texts = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x10000), 0x1F600)]
    fast = encode_ordered({"a": texts, "b": ""})
    slow = encode_ordered({"a": texts, "b": "\ud800"})
    assert slow == fast[:-2] + b'\xed\xa0\x80"}'


@given(ANY_TEXT, ANY_TEXT)
def test_b1_different_texts_have_different_bytes(one: str, other: str) -> None:
    assert (canonical_json(one) == canonical_json(other)) == (one == other)


def test_b1_a_lone_surrogate_is_its_three_byte_form() -> None:
    assert canonical_json("\ud800") == b'"\xed\xa0\x80"'
    assert canonical_json("\udfff") == b'"\xed\xbf\xbf"'
    apart = "\ud83d\ude00"  # two code points, not the character that they would spell in UTF-16
    assert canonical_json(apart) == b'"\xed\xa0\xbd\xed\xb8\x80"'
    assert canonical_json("😀") == b'"\xf0\x9f\x98\x80"'
    seen = {canonical_json(chr(code)) for code in range(0xD7FF, 0xE001)}
    assert len(seen) == 0x802


@given(ANY_TEXT)
def test_b1_nothing_is_lost(text: str) -> None:
    assert json.loads(canonical_json(text).decode("utf-8", "surrogatepass")) == text


def test_b1_keys_are_ordered_by_utf_16_units() -> None:
    # U+FB33 is above the surrogate that begins U+1F600 in UTF-16, and below it as a code point.
    value = {"\ufb33": 1, "😀": 2, "b": 3, "\r": 4, "": 5}
    assert canonical_json(value) == rfc8785.dumps(value)
    assert list(json.loads(canonical_json(value))) == ["", "\r", "b", "😀", "\ufb33"]


@pytest.mark.parametrize(
    "value",
    [1.0, float("nan"), MAX_INTEGER + 1, -MAX_INTEGER - 1, {1: "a"}, {"a": {1}}, b"x", object()],
)
def test_b1_anything_else_has_no_place_in_a_binding(value: Any) -> None:
    with pytest.raises(InvalidInput):
        canonical_json(value)


@pytest.mark.parametrize("edge", [MAX_INTEGER, -MAX_INTEGER])
def test_b1_the_last_exact_integers_have_their_digits(edge: int) -> None:
    assert canonical_json([edge]) == f"[{edge}]".encode()


def test_b1_digests_are_separated_by_their_tag() -> None:
    assert tagged_sha256(b"t", b"d") == hashlib.sha256(b"t\x00d").hexdigest()
