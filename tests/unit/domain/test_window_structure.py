"""T7: the structured summary, read strictly."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.canonical import canonical_json
from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.window.structure import (
    KEYS,
    STRUCTURE_SCHEMA,
    StructuredSummary,
    parse_structure,
)

EMPTY: dict[str, Any] = {key: [] for key in KEYS}
GOOD = EMPTY | {"decisions": ["LG12 it is."]}

said = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
statements = st.lists(said.filter(str.strip), max_size=3).map(tuple)
summaries = st.builds(StructuredSummary, *[statements] * 5).filter(StructuredSummary.texts)


def test_t7_the_keys_are_those_of_the_rule_in_its_order() -> None:
    assert KEYS == ("decisions", "entities", "constraints", "open_questions", "tool_outcomes")
    assert tuple(STRUCTURE_SCHEMA["properties"]) == tuple(STRUCTURE_SCHEMA["required"]) == KEYS


@pytest.mark.slow
@given(summaries)
def test_t7_what_was_written_is_read_back_and_is_canonical(summary: StructuredSummary) -> None:
    text = summary.canonical()

    assert parse_structure(text) == summary
    assert text.encode() == canonical_json(json.loads(text))
    jsonschema.validate(json.loads(text), dict(STRUCTURE_SCHEMA))


def test_t7_entries_are_kept_exactly_and_white_space_around_the_object_is_none_of_its() -> None:
    odd = "  e\u0301 \u202e\u200b 2 %\n"

    found = parse_structure("\n\t " + json.dumps(EMPTY | {"entities": [odd]}) + "\r\n")

    assert found.entities == (odd,)


REFUSED = {
    "nothing": ("", "not one JSON"),
    "prose": ("The flight is LG12.", "not one JSON"),
    "truncated": (json.dumps(GOOD)[:-5], "not one JSON"),
    "a fence": (f"```json\n{json.dumps(GOOD)}\n```", "not one JSON"),
    "prose behind": (json.dumps(GOOD) + "\nDone.", "not one JSON"),
    "two objects": (json.dumps(GOOD) * 2, "not one JSON"),
    "a byte order mark": ("\ufeff" + json.dumps(GOOD), "not one JSON"),
    "a space that JSON does not know": ("\u00a0" + json.dumps(GOOD), "not one JSON"),
    "single quotes": (repr(GOOD), "not one JSON"),
    "a trailing comma": (json.dumps(GOOD)[:-1] + ",}", "not one JSON"),
    "a raw line break": (json.dumps(GOOD).replace("LG12", "LG\n12"), "not one JSON"),
    "depth": ("[" * 100_000, "not one JSON"),
    "a huge number": ('{"decisions":' + "9" * 5_000 + "}", "not one JSON"),
    "a list": (json.dumps([GOOD]), "not a JSON object"),
    "null": ("null", "not a JSON object"),
    "NaN": (json.dumps(GOOD | {"entities": [float("nan")]}), "NaN"),
    "a key too many": (json.dumps(GOOD | {"notes": []}), "unknown key 'notes'"),
    "another case": (json.dumps(EMPTY | {"Decisions": ["x"]}), "unknown key"),
    "no list": (json.dumps(GOOD | {"entities": "x"}), "entities is not a list"),
    "null for a list": (json.dumps(GOOD | {"entities": None}), "entities is not a list"),
    "a number": (json.dumps(GOOD | {"entities": ["x", 1]}), "entities[1] is not text"),
    "an object": (json.dumps(GOOD | {"entities": [{"a": "b"}]}), "entities[0] is not text"),
    "an empty entry": (json.dumps(GOOD | {"entities": [""]}), "entities[0] is blank"),
    "a blank entry": (json.dumps(GOOD | {"entities": ["\u3000\n"]}), "entities[0] is blank"),
    "a surrogate": (json.dumps(GOOD | {"entities": ["\ud800"]}), "surrogate"),
    "NUL": (json.dumps(GOOD | {"entities": ["a\0"]}), "NUL"),
    "nothing said": (json.dumps(EMPTY), "it says nothing"),
    "a key twice": ('{"decisions":["a"],' + json.dumps(GOOD)[1:], "stands twice"),
    "a key twice further in": (
        json.dumps(GOOD | {"entities": [0]}).replace("0", '{"a":1,"a":2}'),
        "stands twice",
    ),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_t7_nothing_is_repaired(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_structure(text)

    assert words in str(caught.value)
    assert caught.value.place == "structured summary"


@pytest.mark.parametrize("key", KEYS)
def test_t7_every_key_is_required(key: str) -> None:
    members = {name: ["x"] for name in KEYS if name != key}

    with pytest.raises(InvalidInput, match=f"{key} is missing"):
        parse_structure(json.dumps(members))


def test_lines_show_the_lists_that_say_something() -> None:
    summary = StructuredSummary(decisions=("One.", "Two."), constraints=("Never.",))

    assert summary.lines() == ("decisions:", "- One.", "- Two.", "constraints:", "- Never.")


@given(summaries)
def test_h7_no_line_of_a_statement_poses_as_another(summary: StructuredSummary) -> None:
    lines = summary.lines()

    assert sum(line.startswith("- ") for line in lines) == len(summary.texts())
    assert [line[:-1] for line in lines if line[0] not in "- "] == [
        name for name, entries in summary.lists() if entries
    ]
    assert all(len(line.splitlines()) == 1 for line in lines)
