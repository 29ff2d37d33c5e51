"""The contract of a finish (C1 to C4): an attempt succeeds only with plain text that ended normally.

What else is asked of a summary of a window's chunk has its codes behind those of C4 (T7, T12, T13); whoever
knows the source judges it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from compaction_ledger.domain.canonical import MAX_INTEGER, tagged_sha256
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
    "invalid_structure",
    "not_smaller",
    "ungrounded",
    "lease_expired",
]

FINISH_SIGNALS: tuple[FinishSignal, ...] = get_args(FinishSignal)
FAULTS: tuple[Fault, ...] = get_args(Fault)
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


def sound_answer(answer: object) -> Answer:
    """``answer``, if it is made of what its type says; otherwise a ``provider_error`` in its place.

    What a host's summarizer returns is not believed: it goes into facts that are read for ever (A10).
    """
    if isinstance(answer, Answer) and _is_sound(answer):
        return answer
    return Answer(fault="provider_error", detail="malformed_answer")


def _is_sound(answer: Answer) -> bool:
    finish, usage = answer.finish, answer.usage
    return (
        _are(str, answer.text)
        and _are(FinishFacts, finish)
        and _are(Usage, usage)
        and _are(tuple, finish.signals, finish.provider_words)
        and all(signal in FINISH_SIGNALS for signal in finish.signals)
        and _are(str, *finish.provider_words)
        and _are(bool, finish.refusal)
        and _is_count(finish.tool_calls)
        and all(n is None or _is_count(n) for n in (usage.input_tokens, usage.output_tokens))
        and (answer.fault is None or answer.fault in FAULTS)
        and (answer.retry_after is None or type(answer.retry_after) in (int, float))
        and (answer.detail is None or _are(str, answer.detail))
    )


def _are(kind: type, *values: object) -> bool:
    return all(type(value) is kind for value in values)


def _is_count(number: object) -> bool:
    return type(number) is int and 0 <= number <= MAX_INTEGER


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
