"""V1 and V2: what is known of each prompt version."""

from __future__ import annotations

import hashlib

import pytest
from scenarios import CURRENT, MIXED, SECOND

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.identity import PromptVersion
from compaction_ledger.domain.prompts import (
    DEFAULT_REGISTRY,
    NAME,
    Given,
    PromptRegistry,
    PromptSpec,
)


def spec(version: int, *, projectable: bool = True) -> PromptSpec:
    """A prompt version that was given replies alone."""
    return PromptSpec(
        PromptVersion(NAME, version), "assistant_only", "plain_text", projectable, "Condense."
    )


def test_v1_the_registry_says_what_each_version_was_given_and_returned() -> None:
    assert [(s.prompt.version, s.given, s.returns, s.projectable) for s in DEFAULT_REGISTRY] == [
        (1, "mixed", "plain_text", False),
        (2, "assistant_only", "plain_text", True),
        (3, "assistant_only", "plain_text", True),
    ]
    assert DEFAULT_REGISTRY.current == CURRENT


@pytest.mark.parametrize(
    ("prompt", "verdict"),
    [
        (MIXED, "mixed_input"),
        (SECOND, "projectable"),
        (CURRENT, "projectable"),
        (PromptVersion(NAME, 4), "unknown_version"),
        (PromptVersion("another", 3), "unknown_version"),
    ],
)
def test_v2_closed_by_default(prompt: PromptVersion, verdict: str) -> None:
    assert DEFAULT_REGISTRY.verdict(prompt) == verdict


def test_v1_a_version_can_be_withdrawn() -> None:
    registry = PromptRegistry([spec(2, projectable=False), spec(3)], CURRENT)
    assert registry.verdict(SECOND) == "not_projectable"
    assert registry.verdict(MIXED) == "unknown_version"


@pytest.mark.parametrize("given", ["mixed", "assistant_only"])
def test_v2_mixed_input_is_never_projected_whatever_a_registry_says(given: Given) -> None:
    with pytest.raises(InvalidSetting, match="mixed"):
        PromptRegistry([PromptSpec(MIXED, given, "plain_text", projectable=True), spec(3)], CURRENT)


def test_v3_the_order_of_the_registry_is_the_age_of_its_versions() -> None:
    other = PromptVersion("another", 9)
    specs = [spec(2), PromptSpec(other, "assistant_only", "plain_text", projectable=True), spec(3)]
    registry = PromptRegistry(specs, CURRENT)
    assert registry.rank(SECOND) < registry.rank(other) < registry.rank(CURRENT)
    assert registry.rank(PromptVersion("unknown", 1)) == -1
    with pytest.raises(InvalidSetting, match="behind a newer version"):
        PromptRegistry([spec(3), spec(2)], CURRENT)


def test_i1_the_instructions_belong_to_their_version() -> None:
    """A change of the text is a new version: the digest of each text that was ever used stands here."""
    digest = hashlib.sha256(DEFAULT_REGISTRY.instructions(CURRENT).encode()).hexdigest()
    assert digest == "88fa87e80ab67351a1a28691fee5aa09ecbd0a729e91fb24a15526fbf042826d"
    for prompt in (SECOND, PromptVersion("another", 1)):
        with pytest.raises(InvalidSetting, match="not known"):
            DEFAULT_REGISTRY.instructions(prompt)


def test_i2_the_current_version_has_instructions() -> None:
    silent = PromptSpec(CURRENT, "assistant_only", "plain_text", projectable=True)
    with pytest.raises(InvalidSetting, match="instructions"):
        PromptRegistry([silent], CURRENT)


def test_i2_new_jobs_use_the_version_that_is_said_to_be_current() -> None:
    for number, current in ((2, SECOND), (3, CURRENT)):
        assert PromptRegistry([spec(2), spec(3)], current).current.version == number


def test_i2_the_current_version_is_known_and_projectable() -> None:
    with pytest.raises(InvalidSetting, match="current"):
        PromptRegistry([spec(2)], CURRENT)
    with pytest.raises(InvalidSetting, match="current"):
        PromptRegistry([spec(3, projectable=False)], CURRENT)
    with pytest.raises(InvalidSetting, match="twice"):
        PromptRegistry([spec(3), spec(3, projectable=False)], CURRENT)


def test_p4_read_models_know_under_which_registry_they_were_built() -> None:
    registries = [
        DEFAULT_REGISTRY,
        PromptRegistry([spec(2), spec(3)], CURRENT),
        PromptRegistry([spec(2, projectable=False), spec(3)], CURRENT),
        PromptRegistry([spec(3)], CURRENT),
    ]
    assert len({registry.fingerprint for registry in registries}) == len(registries)
    again = PromptRegistry([spec(2), spec(3)], CURRENT)
    assert again.fingerprint == registries[1].fingerprint
