"""Maps what pydantic-ai returns or raises to the facts of a finish (C1 to C4).

The table of ``docs/reference/finish-codes.md`` is this module in prose.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelTimeoutError,
    ModelUnavailableError,
    OutputTokenLimitExceeded,
)
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    ModelResponse,
    TextPart,
    ThinkingPart,
)

from compaction_ledger.domain.finish import Answer, Fault, FinishFacts, FinishSignal, Usage
from compaction_ledger.domain.identifiers import replace_surrogates

EVERY_FINISH = "every_finish_reason"
"""Where ``openai_chat`` puts how each choice ended, under this key, if there were several."""

_LONGEST_WORD = 64
# Refused, not reached, or reached only as far as a gateway: another try may find it back (D3).
_UNAVAILABLE = (ModelRateLimitError, ModelQuotaExceededError, ModelUnavailableError)
_UNAVAILABLE_STATUSES = frozenset({429, 502, 503, 504})
_BEFORE_SENDING = frozenset({"pool", "connect"})

_SIGNALS: dict[str, FinishSignal] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_call": "tool_call",
    "error": "error",
}
# Providers' words that pydantic-ai folds into a wider one.
_WORDS: dict[str, FinishSignal] = {
    "refusal": "refusal",
    "cancelled": "cancelled",
    "compaction": "other",
}
_CHAT_WORDS: dict[str, FinishSignal] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
}
# These models report no word of the provider's; all others do, unless there was none.
_WORDLESS = frozenset({"xai"})


def answer_from(response: ModelResponse) -> Answer:
    """The answer in ``response``: its text without reasoning, and how it ended."""
    details = response.provider_details or {}
    calls = sum(isinstance(part, BaseToolCallPart) for part in response.parts)
    refusal = bool(details.get("refusal")) or details.get("finish_reason") == "refusal"
    return Answer(
        text=response.text or "",
        finish=FinishFacts(
            signals=_signals(response, details, refusal=refusal),
            tool_calls=calls,
            refusal=refusal,
            provider_words=_words(details),
        ),
        usage=_usage(response),
    )


def _signals(
    response: ModelResponse, details: dict[str, Any], *, refusal: bool
) -> tuple[FinishSignal, ...]:
    if every := details.get(EVERY_FINISH):
        return tuple(_CHAT_WORDS.get(word, "other") for word in every)
    if refusal:
        return ("refusal",)
    if response.state != "complete":
        return ("cancelled",) if response.state == "interrupted" else ("other",)
    signal = _signal(response, details)
    if signal == "stop" and _more_than_text(response):
        return ("other",)
    return () if signal is None else (signal,)


def _signal(response: ModelResponse, details: dict[str, Any]) -> FinishSignal | None:
    word = details.get("finish_reason")
    if isinstance(word, str) and word in _WORDS:
        return _WORDS[word]
    if response.finish_reason is None:
        return "other" if word else None
    if response.finish_reason == "stop" and not word and response.provider_name not in _WORDLESS:
        return None  # pydantic-ai's own guess, where the server sent no finish reason
    return _SIGNALS.get(response.finish_reason, "other")


def _more_than_text(response: ModelResponse) -> bool:
    """Whether something stands beside the text that is neither reasoning nor a tool's business."""
    plain = (TextPart, ThinkingPart, BaseToolCallPart, BaseToolReturnPart)
    return not all(isinstance(part, plain) for part in response.parts)


def _words(details: dict[str, Any]) -> tuple[str, ...]:
    found = details.get(EVERY_FINISH) or [details.get("finish_reason")]
    return tuple(_tidy(word) for word in found if isinstance(word, str) and word)


def _tidy(word: str) -> str:
    """A provider's word as it may be stored: short, and of printable characters."""
    shown = replace_surrogates(word[:_LONGEST_WORD])[0]
    return "".join(character if character.isprintable() else "\ufffd" for character in shown)


def _usage(response: ModelResponse) -> Usage:
    usage = response.usage
    if not usage.input_tokens and not usage.output_tokens:
        return Usage()
    return Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)


def answer_from_error(error: Exception) -> Answer:
    """What an error says of the attempt. Its class and status are kept, never its text (C4)."""
    if isinstance(error, ContentFilterError):
        return Answer(finish=FinishFacts(signals=("content_filter",)), detail=_detail(error))
    if isinstance(error, OutputTokenLimitExceeded):
        return Answer(finish=FinishFacts(signals=("length",)), detail=_detail(error))
    return Answer(fault=_fault(error), retry_after=_retry_after(error), detail=_detail(error))


def _fault(error: Exception) -> Fault:
    if isinstance(error, ModelRequestTimeout):
        return "timeout"
    if isinstance(error, ModelTimeoutError) and error.phase not in _BEFORE_SENDING:
        return "timeout"
    if isinstance(error, (ModelConnectionError, *_UNAVAILABLE)):
        return "provider_unavailable"
    if isinstance(error, ModelHTTPError) and error.status_code in _UNAVAILABLE_STATUSES:
        return "provider_unavailable"
    return "provider_error"


def _retry_after(error: Exception) -> float | None:
    asked = error.retry_after if isinstance(error, ModelAPIError) else None
    return asked if asked is not None and math.isfinite(asked) and asked >= 0 else None


def _detail(error: Exception) -> str:
    name = type(error).__name__
    return f"{name} HTTP {error.status_code}" if isinstance(error, ModelHTTPError) else name
