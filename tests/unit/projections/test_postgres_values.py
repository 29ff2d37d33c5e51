"""Text as PostgreSQL can hold it, and columns as arrays (E6)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.projections.postgres_values import (
    TYPES,
    array,
    escaped,
    escaped_rows,
    unescaped,
    unescaped_rows,
)
from compaction_ledger.projections.records import DeliveryRecord, RangeRecord

# Lone surrogates are characters here: whatever Python can hold.
ANY_TEXT = st.text(
    st.one_of(st.characters(exclude_categories=()), st.sampled_from('\x00\x1b\x1f0d\\",{}'))
)


def read_array(text: str) -> list[str | None]:
    """What PostgreSQL reads in the text of an array of one dimension, by its manual (section 8.15.6)."""
    assert (text[0], text[-1]) == ("{", "}")
    found: list[str | None] = []
    rest = text[1:-1]
    while rest:
        if rest[0] == '"':
            value, place = "", 1
            while rest[place] != '"':
                place += rest[place] == "\\"
                value += rest[place]
                place += 1
            found.append(value)
            rest = rest[place + 1 :]
        else:
            word, _, after = rest.partition(",")
            found.append(None if word == "NULL" else word)
            rest = "," + after if after else ""
        assert not rest or rest[0] == ","
        rest = rest[1:]
    return found


@given(ANY_TEXT)
def test_escaped_text_can_be_stored_and_comes_back(text: str) -> None:
    stored = escaped(text)
    assert "\x00" not in stored
    stored.encode()
    assert unescaped(stored) == text


@given(ANY_TEXT, ANY_TEXT)
def test_no_two_texts_are_stored_alike(one: str, other: str) -> None:
    assert (escaped(one) == escaped(other)) == (one == other)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\x1b")))
def test_other_text_is_stored_as_it_is(text: str) -> None:
    assert escaped(text) is text


@given(st.lists(st.tuples(*[ANY_TEXT] * 3, st.none() | ANY_TEXT, ANY_TEXT, st.integers())))
def test_rows_come_back(values: list[tuple[Any, ...]]) -> None:
    """Also where one column of one row alone has to be changed."""
    rows = [(*value[:5], value[5], value[5], "0" * 64, 1, 2) for value in values]
    stored = escaped_rows(DeliveryRecord, rows)
    for row in stored:
        "".join(value for value in row if isinstance(value, str)).encode()
        assert not any("\x00" in value for value in row if isinstance(value, str))
    assert list(unescaped_rows(DeliveryRecord, stored)) == rows


def test_rows_without_such_text_are_not_copied() -> None:
    rows = [("id", "scope", "c", None, "shape", 1, 2, "0" * 64, 3, 4)]
    assert escaped_rows(DeliveryRecord, rows) is rows
    assert unescaped_rows(DeliveryRecord, rows) is rows
    assert escaped_rows(DeliveryRecord, []) == []


@given(st.lists(st.none() | ANY_TEXT.map(escaped)))
def test_an_array_of_text_is_read_as_it_was(values: list[str | None]) -> None:
    assert read_array(array(values, "text")) == values


@given(st.lists(ANY_TEXT.map(escaped)))
def test_an_array_of_text_alone_is_read_as_it_was(values: list[str]) -> None:
    assert read_array(array(values, "text")) == values


@given(st.lists(st.none() | st.integers()))
def test_an_array_of_numbers(values: list[int | None]) -> None:
    found = read_array(array(values, "int8"))
    assert [None if value is None else int(value) for value in found] == values


def test_columns_have_the_types_of_their_fields() -> None:
    assert TYPES[RangeRecord] == ("text",) * 2 + ("int8",) * 2 + ("text",) * 3 + ("int8",) * 4
