"""Under which names the telemetry goes out, and which attributes go with what. Nothing else goes out.

What is said of calls to a model follows OpenTelemetry's semantic conventions for generative AI, version
0.1.0; the rest has names of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SCOPE = "compaction-ledger"
"""The instrumentation scope of every span and metric."""

ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {
        "from_pair": "compaction_ledger.range.from",
        "to_pair": "compaction_ledger.range.to",
        "provider": "gen_ai.provider.name",
        "model": "gen_ai.request.model",
        "prompt_name": "gen_ai.prompt.name",
        "prompt_version": "gen_ai.prompt.version",
        "attempt": "compaction_ledger.attempt.number",
        "result": "compaction_ledger.result",
        "error": "error.type",
        "finish": "gen_ai.response.finish_reasons",
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
        "due": "compaction_ledger.ranges.due",
        "completed": "compaction_ledger.ranges.completed",
        "position": "compaction_ledger.position",
        "mode": "compaction_ledger.assembly.mode",
        "summaries": "compaction_ledger.assembly.summaries",
        "rejected": "compaction_ledger.assembly.rejected",
        "bytes_used": "compaction_ledger.assembly.bytes_used",
        "bytes_allowed": "compaction_ledger.assembly.bytes_allowed",
        "state": "compaction_ledger.work.state",
    }
)
"""Each attribute of the use cases, and its name outside."""

PROVIDERS: Mapping[str, str] = MappingProxyType(
    {
        "azure": "azure.ai.openai",
        "bedrock": "aws.bedrock",
        "bedrock-mantle": "aws.bedrock",
        "google": "gcp.gemini",
        "google-cloud": "gcp.vertex_ai",
        "mistral": "mistral_ai",
        "moonshotai": "moonshot_ai",
        "xai": "x_ai",
    }
)
"""Providers whose name in the conventions is not the one in the identity of a job (I1)."""

_CHAT = (("gen_ai.operation.name", "chat"),)
_TEXT_TOKENS = (*_CHAT, ("gen_ai.token.modality", "text"))
_MODEL = ("provider", "model")
_RANGE = ("from_pair", "to_pair", *_MODEL, "prompt_name", "prompt_version")


@dataclass(frozen=True, slots=True)
class SpanShape:
    """A kind of span. In ``name``, ``{model}`` stands for the model's name. ``always`` is said of each."""

    name: str
    attributes: tuple[str, ...]
    client: bool = False
    always: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MetricShape:
    """A kind of number. ``buckets`` are upper bounds, of a histogram."""

    name: str
    unit: str
    description: str
    attributes: tuple[str, ...]
    always: tuple[tuple[str, str], ...] = ()
    buckets: tuple[float, ...] = ()


SPANS: Mapping[str, SpanShape] = MappingProxyType(
    {
        "compact": SpanShape("compact", (*_MODEL, "due", "completed", "result", "error")),
        "claim": SpanShape("claim", (*_RANGE, "result", "error")),
        "attempt": SpanShape(
            "chat {model}",
            (*_RANGE, "attempt", "finish", "input_tokens", "output_tokens", "result", "error"),
            client=True,
            always=_CHAT,
        ),
        "catch_up": SpanShape("catch_up", ("position", "result", "error")),
        "rebuild": SpanShape("rebuild", ("position", "result", "error")),
        "assemble": SpanShape(
            "assemble",
            ("mode", "summaries", "rejected", "bytes_used", "bytes_allowed", "result", "error"),
        ),
    }
)

COUNTERS: Mapping[str, MetricShape] = MappingProxyType(
    {
        "ranges": MetricShape(
            "compaction_ledger.ranges",
            "{range}",
            "Due ranges, by what became of them.",
            ("result", *_MODEL),
        ),
        "claims_refused": MetricShape(
            "compaction_ledger.claims.refused",
            "{claim}",
            "Claims that were refused, by the reason.",
            ("error", *_MODEL),
        ),
        "admissions_refused": MetricShape(
            "compaction_ledger.admissions.refused",
            "{request}",
            "Requests for a slot that were told: not now.",
            (),
        ),
        "attempts": MetricShape(
            "compaction_ledger.attempts",
            "{attempt}",
            "Attempts, by how they ended and the code of their failure.",
            ("result", "error", *_MODEL),
        ),
        "renewals": MetricShape(
            "compaction_ledger.renewals",
            "{renewal}",
            "Renewals of a lease while an attempt runs.",
            ("result", "error"),
        ),
        "errors": MetricShape(
            "compaction_ledger.work.errors",
            "{error}",
            "Errors that a worker met and went on after.",
            ("error",),
        ),
        "input_tokens": MetricShape(
            "gen_ai.client.inference.usage.input_tokens",
            "{token}",
            "Tokens of requests, as the provider counted them.",
            _MODEL,
            _TEXT_TOKENS,
        ),
        "output_tokens": MetricShape(
            "gen_ai.client.inference.usage.output_tokens",
            "{token}",
            "Tokens of answers, as the provider counted them.",
            _MODEL,
            _TEXT_TOKENS,
        ),
    }
)

MEASURES: Mapping[str, MetricShape] = MappingProxyType(
    {
        "attempt_seconds": MetricShape(
            "gen_ai.client.inference.duration",
            "s",
            "How long calls to a model took.",
            ("error", *_MODEL),
            _CHAT,
            tuple(2**power / 100 for power in range(14)),
        ),
    }
)

GAUGES: Mapping[str, MetricShape] = MappingProxyType(
    {
        "projection_lag": MetricShape(
            "compaction_ledger.projection.lag",
            "{event}",
            "Events of the log that the read models do not reflect yet.",
            (),
        ),
        "backlog": MetricShape(
            "compaction_ledger.work.backlog",
            "{conversation}",
            "Conversations on the work list, by their state.",
            ("state",),
        ),
    }
)
