"""The contract of a finish (C1 to C4): an attempt succeeds only with plain text that ended normally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from compaction_ledger.domain.canonical import tagged_sha256
from compaction_ledger.domain.identifiers import is_blank, is_well_formed

MAX_SUMMARY_CHARACTERS = 6_000

FinishSignal = Literal[
    "stop", "length", "content_filter", "tool_call", "refusal", "error", "cancelled", "other"
]
Fault = Literal["provider_unavailable", "provider_error", "timeout", "cancelled"]
FailureCode = Literal[
    "provider_unavailable",
    "provider_error",
    "timeout",
    "cancelled",
    "tool_call",
    "refusal",
    "content_filter",
    "truncated",
    "multiple_finishes",
    "missing_finish",
    "abnormal_finish",
    "malformed_text",
    "empty",
    "too_long",
    "lease_expired",
]

FAILURE_CODES: tuple[FailureCode, ...] = get_args(FailureCode)

_SIGNAL_CODES: dict[FinishSignal, FailureCode] = {
    "error": "provider_error",
    "cancelled": "cancelled",
    "tool_call": "tool_call",
    "refusal": "refusal",
    "content_filter": "content_filter",
    "length": "truncated",
    "other": "abnormal_finish",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; ``None`` where it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class FinishFacts:
    """How an answer ended, without its text. ``provider_words`` are the provider's own finish words."""

    signals: tuple[FinishSignal, ...] = ()
    tool_calls: int = 0
    refusal: bool = False
    provider_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call of a summarizing model brought back, normalized by its adapter.

    ``text`` is the answer's plain text alone: reasoning parts are left out by the adapter (C2).
    ``fault`` is set when there was no answer, and then ``retry_after`` (seconds) may be too (D3).
    ``detail`` is a short technical word (an exception's class, an HTTP status), never provider text.
    """

    text: str = ""
    finish: FinishFacts = FinishFacts()
    usage: Usage = Usage()
    fault: Fault | None = None
    retry_after: float | None = None
    detail: str | None = None


def failures(answer: Answer) -> tuple[FailureCode, ...]:
    """Every way in which ``answer`` breaks the contract, in the order of C4; empty for a success."""
    finish = answer.finish
    found: set[FailureCode] = set()
    if answer.fault is not None:
        found.add(answer.fault)
    found.update(_SIGNAL_CODES[signal] for signal in finish.signals if signal != "stop")
    if finish.tool_calls:
        found.add("tool_call")
    if finish.refusal:
        found.add("refusal")
    if len(finish.signals) > 1:
        found.add("multiple_finishes")
    if not finish.signals:
        found.add("missing_finish")
    if not is_well_formed(answer.text) or "\x00" in answer.text:
        found.add("malformed_text")
    if is_blank(answer.text):
        found.add("empty")
    if len(answer.text) > MAX_SUMMARY_CHARACTERS:
        found.add("too_long")
    return tuple(code for code in FAILURE_CODES if code in found)


def output_digest(text: str) -> str:
    """The digest under which a refused output is recorded, instead of the output (C4)."""
    return tagged_sha256(b"compaction-ledger/output/v1", text.encode("utf-8", "surrogatepass"))
