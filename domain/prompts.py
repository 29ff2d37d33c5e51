"""The registry of prompt versions (V1, V2, V3) and the prompt that new jobs use (I2, C5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.canonical import canonical_json, tagged_sha256
from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.identity import PromptVersion

Given = Literal["assistant_only", "mixed"]
Verdict = Literal["projectable", "mixed_input", "not_projectable", "unknown_version"]

NAME = "conversation-compaction"


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """What is known of one prompt version (V1)."""

    prompt: PromptVersion
    given: Given
    returns: Literal["plain_text"]
    projectable: bool


class PromptRegistry:
    """The prompt versions this software knows, and which of them new jobs use. Closed by default (V2)."""

    def __init__(self, specs: Sequence[PromptSpec], current: PromptVersion) -> None:
        self._specs = {spec.prompt: spec for spec in specs}
        if len(self._specs) != len(specs):
            raise InvalidSetting("a prompt version is registered twice", place="prompt registry")
        for spec in specs:
            if spec.given != "assistant_only" and spec.projectable:
                raise InvalidSetting(
                    f"{spec.prompt} had mixed input and is never projected", place="prompt registry"
                )
        if current not in self._specs or not self._specs[current].projectable:
            raise InvalidSetting(
                f"the current prompt {current} must be projectable", place="prompt registry"
            )
        self.current = current

    def __iter__(self) -> Iterator[PromptSpec]:
        return iter(sorted(self._specs.values(), key=lambda spec: spec.prompt))

    def verdict(self, prompt: PromptVersion) -> Verdict:
        """Whether summaries of this version may be projected, or the reason why not."""
        spec = self._specs.get(prompt)
        if spec is None:
            return "unknown_version"
        if spec.given != "assistant_only":
            return "mixed_input"
        return "projectable" if spec.projectable else "not_projectable"

    @property
    def fingerprint(self) -> str:
        """A digest of the verdicts, by which read models know under which registry they were built (P4)."""
        verdicts = {str(spec.prompt): self.verdict(spec.prompt) for spec in self._specs.values()}
        return tagged_sha256(b"compaction-ledger/registry/v1", canonical_json(verdicts))


DEFAULT_REGISTRY = PromptRegistry(
    [
        PromptSpec(PromptVersion(NAME, 1), "mixed", "plain_text", projectable=False),
        PromptSpec(PromptVersion(NAME, 2), "assistant_only", "plain_text", projectable=True),
        PromptSpec(PromptVersion(NAME, 3), "assistant_only", "plain_text", projectable=True),
    ],
    current=PromptVersion(NAME, 3),
)
