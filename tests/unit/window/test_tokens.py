"""Counting tokens (T3)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.window.tokens import Gauge, TokenizerCounter, Utf8Counter


def wire(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "text", ["four words of English", "風險上限是五千", "x = {a: b for a, b in c}"]
)
def test_the_built_in_counter_counts_bytes(text: str) -> None:
    message = wire({"role": "user", "content": text})
    assert Utf8Counter().count([message]) == [len(message)]
    assert Utf8Counter(3).count([message]) == [-(-len(message) // 3)]


IMAGE = base64.b64encode(b"\x89" * 300_000).decode()


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": IMAGE},
        },
        {"image": {"format": "png", "source": {"bytes": IMAGE}}},
    ],
)
def test_an_image_is_no_text(block: dict[str, Any]) -> None:
    (tokens,) = Utf8Counter().count([wire({"role": "user", "content": [block]})])
    assert 5_000 <= tokens < 5_300


def test_a_text_that_looks_like_an_image_is_text() -> None:
    inside = json.dumps({"url": f"data:image/png;base64,{IMAGE}"})
    message = wire({"role": "user", "content": inside})
    assert Utf8Counter().count([message]) == [len(message)]


def test_a_tokenizer_is_asked_for_the_whole_message() -> None:
    counter = TokenizerCounter(str.split, beside=3)
    assert counter.count([b'{"content":"one two three"}', b"{}"]) == [6, 4]


def test_the_providers_own_figures_correct_the_counts() -> None:
    gauge = Gauge(Utf8Counter())
    assert gauge.count([b"x" * 400]) == [400]
    gauge.observe(400, 100)
    (corrected,) = gauge.count([b"x" * 400])
    assert 110 <= corrected <= 111  # on the high side
    gauge.observe(corrected, 200)  # other texts: more tokens for the bytes
    assert 218 <= gauge.count([b"x" * 400])[0] <= 222
    gauge.observe(gauge.count([b"x" * 400])[0], 200)
    assert 218 <= gauge.count([b"x" * 400])[0] <= 222  # the margin is not taken twice


@pytest.mark.parametrize(("counted", "reported"), [(0, 10), (10, 0), (10, -1)])
def test_a_figure_that_cannot_be_changes_nothing(counted: int, reported: int) -> None:
    gauge = Gauge(Utf8Counter())
    gauge.observe(counted, reported)
    assert gauge.scale == 1.0


def test_a_counter_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="bytes_per_token"):
        Utf8Counter(0)
