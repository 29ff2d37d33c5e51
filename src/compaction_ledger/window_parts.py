"""What a window is put together from: the part of the composition root that is about running agents."""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.keys import WindowKey, check_key
from compaction_ledger.domain.window.pins import PinProposer, RulePinProposer
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.prompts import DEFAULT_WINDOW_PROMPTS, WindowPrompts
from compaction_ledger.domain.window.summarization import ChunkSummarizer
from compaction_ledger.domain.window.tokens import Gauge, TokenCounter, Utf8Counter
from compaction_ledger.infrastructure.admission.outage import OutageGate
from compaction_ledger.infrastructure.summarizers.chunk_extractive import ExtractiveChunkSummarizer
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.history import HistorySearch
from compaction_ledger.usecases.stopping import NeverStop
from compaction_ledger.usecases.window.compacting import ChunkCompactor
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.window import WindowParts
from compaction_ledger.worker import worker_name


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """How a window is opened. Without a summarizer the embedded one is used, offline; without a proposer the
    built-in rules propose pins, and with ``proposer=None`` nobody does.

    ``strict``: a chunk summary that says what its source does not is a failed attempt (T13).
    """

    budget: WindowBudget
    shape: str
    summarizer: ChunkSummarizer | None = None
    counter: TokenCounter = field(default_factory=Utf8Counter)
    proposer: PinProposer | None = field(default_factory=RulePinProposer)
    prompts: WindowPrompts = DEFAULT_WINDOW_PROMPTS
    strict: bool = False


def window_parts(
    parts: Parts, settings: Settings, key: WindowKey, options: WindowOptions, history: HistorySearch
) -> WindowParts:
    """The parts of the window of one run. Raises :class:`InvalidId` or :class:`InvalidSetting`."""
    check_key(key)
    if not isinstance(options.budget, WindowBudget):
        raise InvalidSetting("must be a WindowBudget", place="budget")
    context = WindowContext(
        log=parts.context.log,
        originals=parts.originals,
        registry=options.prompts,
        key=key,
        shape=shape_named(options.shape),
        budget=options.budget,
        gauge=Gauge(options.counter),
        telemetry=parts.context.telemetry,
    )
    compactor = ChunkCompactor(
        context=context,
        summarizer=options.summarizer or ExtractiveChunkSummarizer(),
        admission=parts.admission,
        gate=OutageGate(settings.outage_after),
        holder=worker_name(),
        lease=int(settings.lease_seconds * 1_000_000),
        longest_attempt=int(settings.longest_attempt_seconds * 1_000_000),
        stop=NeverStop(),
        strict=options.strict,
    )
    return WindowParts(context, compactor, history, options.proposer)
