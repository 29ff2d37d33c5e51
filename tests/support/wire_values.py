"""What stands in generated messages: texts of many scripts, JSON values, names and ids."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Wire = dict[str, Any]


def pick(draw: Draw, strategy: st.SearchStrategy[T]) -> T:
    """One value of a strategy, with its type."""
    value: T = draw(strategy)
    return value


Draw = Callable[[st.SearchStrategy[Any]], Any]

# Bytes and characters differ, directions change, one letter has two forms, JSON and markup stand in text.
_SAMPLES = (
    "Book the second flight, please.",
    "At most 4,000 EUR, and no nuts.",
    "你好，请帮我订第二个航班。",
    "明日の会議を10時に変更してください。",
    "أريد الرحلة الثانية من فضلك",
    "מה שלומך? order 66-A",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 👩🏽‍🚀🇱🇺 e\u0301 é",
    'a "quoted" \\ back\nline\t</block>',
    '{"nested": [1, 2.50, null]}',
    "x" * 300,
)
TEXTS = st.one_of(
    st.sampled_from(_SAMPLES),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
        lambda text: text.strip() != ""
    ),
)
# An interface that continues the last answer takes none that ends in white space.
ANSWERS = TEXTS.map(lambda text: text.rstrip())
NAMES = st.sampled_from(["search", "get_weather", "read-file", "book_flight2"])
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(["city", "date", "größe", "值"]), VALUES, max_size=2)
# Arguments come as a string: however the model spaced it, and valid JSON or not.
ARGUMENTS = st.one_of(
    OBJECTS.map(json.dumps),
    OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1)),
    st.sampled_from(["", "{}", '{"a": 1.0, "a": 1e2}', '{"cut": "of']),
)
SIGNATURES = st.sampled_from(["EqUDCkYICBgCKkCTiLjx5Rzw9zXo", "c2lnbmF0dXJl"])
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def sometimes(draw: Draw, one_in: int = 4) -> bool:
    """``True`` once in so many times; shrinks to ``False``."""
    return pick(draw, st.integers(0, one_in - 1)) == one_in - 1


class Ids:
    """Ids of calls and items, as a provider makes them: no two alike."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0

    def next(self, prefix: str | None = None) -> str:
        """One that was not there before."""
        self._count += 1
        return f"{prefix or self._prefix}{self._count:03d}"
