"""The sealed log as the rest of the software sees it: one dense order of recorded facts (L1, L2)."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.window.keys import WindowKey


@dataclass(frozen=True, slots=True)
class RangeKey:
    """Which stream: one per scope, conversation and range."""

    scope: str
    conversation: str
    from_pair: int


StreamKey = RangeKey | WindowKey
"""Whose stream: a range's, or that of a run's window."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A fact with its place: ``index`` in the log (from 0), stream and version in it (from 1), time in µs."""

    index: int
    stream: str
    version: int
    recorded_at: int
    fact: Fact


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that verification found. ``index`` is the place in the log, where it has one.

    ``sides`` are checkpoints that contradict each other: the signed one first, then what the log says now.
    """

    code: str
    message: str
    index: int | None = None
    sides: tuple[str, ...] = ()
