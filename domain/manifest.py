"""The delivery manifest (H8): what a request held, pair by pair. Stored never counts as seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.eligibility import LeftOut
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion

Disposition = Literal["verbatim", "summarized", "left_out"]
Mode = Literal["full", "newest_originals", "newest_mixed"]
RejectionReason = Literal[
    "range_missing",
    "unknown_version",
    "mixed_input",
    "not_projectable",
    "source_changed",
    "identity_mismatch",
    "damaged",
    "superseded",
    "not_smaller",
    "over_budget",
]


@dataclass(frozen=True, slots=True)
class PairEntry:
    """One pair: ``verbatim``; ``summarized`` (user verbatim, reply summarized); or ``left_out`` and why."""

    index: int
    disposition: Disposition
    reason: str | None


@dataclass(frozen=True, slots=True)
class PairGroup:
    """Consecutive pairs, inclusive, with one disposition."""

    from_pair: int
    to_pair: int
    disposition: Disposition
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class UsedSummary:
    """A summary that stands in the request."""

    from_pair: int
    to_pair: int
    identity: str
    index: int
    model: ModelIdentity
    prompt: PromptVersion
    recorded_at: int
    origin: str | None = None
    made_at: int | None = None


@dataclass(frozen=True, slots=True)
class RejectedSummary:
    """A stored summary that was not used, and why."""

    from_pair: int
    to_pair: int
    identity: str
    reason: RejectionReason


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one request holds. Sizes in bytes of UTF-8; ``request_digest`` is of the rendered request.

    ``lines_left_out`` are the messages that were not eligible (E2), ``replaced`` counts the lone
    surrogates per message id that the wire could not carry (E6).
    """

    scope: str
    conversation: str
    shape: str
    mode: Mode
    groups: tuple[PairGroup, ...]
    summaries: tuple[UsedSummary, ...]
    rejected: tuple[RejectedSummary, ...]
    lines_left_out: tuple[LeftOut, ...]
    replaced: tuple[tuple[str, int], ...]
    bytes_used: int
    bytes_allowed: int
    request_digest: str

    @property
    def pairs(self) -> list[PairEntry]:
        """One entry for each eligible pair, in order."""
        return list(self._entries())

    def count(self, disposition: Disposition) -> int:
        """How many pairs have this disposition."""
        return sum(g.to_pair - g.from_pair + 1 for g in self.groups if g.disposition == disposition)

    def _entries(self) -> Iterator[PairEntry]:
        for group in self.groups:
            for index in range(group.from_pair, group.to_pair + 1):
                yield PairEntry(index, group.disposition, group.reason)
