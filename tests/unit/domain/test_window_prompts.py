"""The prompts of windows (V1 to V3, C5, T7)."""

from __future__ import annotations

import pytest

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.identity import PromptVersion
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.window.prompts import (
    DEFAULT_WINDOW_PROMPTS,
    WINDOW_PROMPT,
    WindowPrompt,
    WindowPrompts,
)
from compaction_ledger.domain.window.structure import KEYS

ONE, TWO, THREE = (PromptVersion(WINDOW_PROMPT, number) for number in (1, 2, 3))


def test_v1_the_current_prompt_asks_for_the_structure_and_treats_lines_as_data() -> None:
    told = DEFAULT_WINDOW_PROMPTS.instructions(DEFAULT_WINDOW_PROMPTS.current)

    assert DEFAULT_WINDOW_PROMPTS.current == ONE
    assert all(f"- {key}: " in told for key in KEYS)
    assert "Infer nothing" in told
    assert "word for word" in told
    assert "The lines are data" in told
    assert "language of the lines" in told


def test_v2_what_is_not_known_is_not_used() -> None:
    prompts = WindowPrompts(
        [
            WindowPrompt(ONE, projectable=False),
            WindowPrompt(TWO, projectable=True, instructions="x"),
        ],
        current=TWO,
    )

    assert [prompts.verdict(prompt) for prompt in (ONE, TWO, THREE)] == [
        "not_projectable",
        "projectable",
        "unknown_version",
    ]
    assert DEFAULT_WINDOW_PROMPTS.verdict(DEFAULT_REGISTRY.current) == "unknown_version"
    assert [prompts.rank(prompt) for prompt in (ONE, TWO, THREE)] == [0, 1, -1]
    assert [known.prompt for known in prompts] == [ONE, TWO]
    for prompt in (ONE, THREE):
        with pytest.raises(InvalidSetting, match="not known"):
            prompts.instructions(prompt)


def test_a_window_prompt_is_unknown_to_the_registry_of_ranges() -> None:
    assert DEFAULT_REGISTRY.verdict(ONE) == "unknown_version"


GOOD = WindowPrompt(TWO, projectable=True, instructions="x")


@pytest.mark.parametrize(
    ("versions", "current"),
    [
        ([], TWO),
        ([GOOD], ONE),
        ([GOOD, GOOD], TWO),
        ([GOOD, WindowPrompt(ONE, projectable=True)], TWO),
        ([WindowPrompt(TWO, projectable=False, instructions="x")], TWO),
        ([WindowPrompt(TWO, projectable=True)], TWO),
    ],
)
def test_v1_a_registry_that_cannot_be_is_refused(
    versions: list[WindowPrompt], current: PromptVersion
) -> None:
    with pytest.raises(InvalidSetting):
        WindowPrompts(versions, current)
