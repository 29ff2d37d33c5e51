"""Pins: constraints in the user's exact words, proven against the original (T9).

:func:`prove` says where a quote stands, :func:`check_pin` that a stored pin still does. Who proposes quotes
is a :class:`PinProposer`: the built-in rules, a model, or a host's own; whatever it says is proven alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from compaction_ledger.domain.window.pin_corrections import superseded_by_rules
from compaction_ledger.domain.window.pin_proof import (
    MAX_QUOTE_CHARACTERS,
    check_pin,
    check_quote,
    pin_id,
    prove,
)
from compaction_ledger.domain.window.pin_rules import propose_by_rules

__all__ = [
    "MAX_QUOTE_CHARACTERS",
    "PinProposer",
    "ProposingFailed",
    "RulePinProposer",
    "check_pin",
    "check_quote",
    "pin_id",
    "propose_by_rules",
    "prove",
    "superseded_by_rules",
]


class ProposingFailed(Exception):
    """A proposer had no usable answer; ``reason`` is a failure code, as of a summarizing attempt."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no usable answer: {reason}")
        self.reason = reason


class PinProposer(Protocol):
    """Says which words of a user's message may be a constraint. It is believed nothing."""

    @property
    def kind(self) -> Literal["rule", "model", "caller"]:
        """What is recorded with the pins: ``caller`` is a host's own proposer."""
        ...

    def propose(self, text: str) -> Sequence[str]:
        """Exact quotes of ``text``, each of which :func:`prove` then accepts or refuses. May be empty.

        Raises :class:`ProposingFailed` where it cannot tell; no turn fails by that.
        """
        ...


class RulePinProposer:
    """Proposes by the built-in rules (:func:`propose_by_rules`): offline, at once, always the same."""

    @property
    def kind(self) -> Literal["rule"]:
        """``rule``."""
        return "rule"

    def propose(self, text: str) -> Sequence[str]:
        """At most eight whole sentences that state a constraint."""
        return propose_by_rules(text)
