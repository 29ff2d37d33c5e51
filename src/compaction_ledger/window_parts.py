"""What a window is put together from: the part of the composition root that is about running agents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from compaction_ledger.composition import Parts, extra, history_search
from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.keys import WindowKey, check_key
from compaction_ledger.domain.window.pins import PinProposer, RulePinProposer
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.prompts import DEFAULT_WINDOW_PROMPTS, WindowPrompts
from compaction_ledger.domain.window.summarization import ChunkSummarizer
from compaction_ledger.domain.window.tokens import TokenCounter, Utf8Counter
from compaction_ledger.infrastructure.summarizers.chunk_extractive import ExtractiveChunkSummarizer
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.reading import follow
from compaction_ledger.usecases.stopping import NeverStop
from compaction_ledger.usecases.window.compacting import ChunkCompactor
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.window import PrepareWires, Window, WindowParts
from compaction_ledger.worker import worker_name


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """How a window is opened; what is ``None`` has its default, but for the proposer, which then is nobody.

    ``strict``: a chunk summary that says what its source does not is a failed attempt (T13).
    """

    budget: WindowBudget | int
    shape: str
    summarizer: ChunkSummarizer | None = None
    counter: TokenCounter | None = None
    proposer: PinProposer | Literal["rules"] | None = "rules"
    strict: bool = False
    prompts: WindowPrompts | None = None


def open_window(
    parts: Parts,
    settings: Settings,
    place: tuple[str, str, str],
    options: WindowOptions,
    *,
    background: bool,
) -> Window:
    """The window of one run: scope, conversation, run. Raises :class:`InvalidInput` kinds.

    Its corrected counts and the gate before its summarizer are those of earlier windows on this ledger.
    """
    key = WindowKey(*place)
    check_key(key)
    _check(options)
    budget = options.budget
    context = WindowContext(
        log=parts.context.log,
        originals=parts.originals,
        registry=options.prompts or DEFAULT_WINDOW_PROMPTS,
        key=key,
        shape=shape_named(options.shape),
        budget=WindowBudget(budget) if isinstance(budget, int) else budget,
        gauge=parts.windows.gauge(key, options.counter or Utf8Counter()),
        telemetry=parts.context.telemetry,
        follow=partial(follow, parts.context),
    )
    summarizer = options.summarizer or ExtractiveChunkSummarizer()
    compactor = ChunkCompactor(
        context=context,
        summarizer=summarizer,
        admission=parts.admission,
        gate=parts.windows.gate(summarizer.model),
        holder=worker_name(),
        lease=int(settings.lease_seconds * 1_000_000),
        longest_attempt=int(settings.longest_attempt_seconds * 1_000_000),
        stop=NeverStop(),
        strict=options.strict,
    )
    history = history_search(parts, key.scope, key.conversation, key.run)
    return Window(
        WindowParts(
            context,
            compactor,
            history,
            _proposer(options.proposer),
            _capability,
            record=settings.record_deliveries == "on",
        ),
        background=background,
    )


def _check(options: WindowOptions) -> None:
    """What is of another kind is found here, not at a turn. Raises :class:`InvalidSetting`."""
    budget = options.budget
    if not isinstance(budget, WindowBudget) and type(budget) is not int:
        raise InvalidSetting(
            f"must be a whole number of tokens or a WindowBudget, not {budget!r}", place="budget"
        )
    for name, wanted in (
        ("summarizer", ("summarize_chunk", "model")),
        ("counter", ("count",)),
        ("proposer", ("propose", "kind")),
    ):
        given: object = getattr(options, name)
        if given is None or given == "rules":
            continue
        missing = [member for member in wanted if not hasattr(given, member)]
        if missing or isinstance(given, str):
            raise InvalidSetting(
                f"a {type(given).__name__} has no {missing[0] if missing else wanted[0]}",
                place=name,
            )


def _capability(prepare: PrepareWires) -> Any:
    with extra("openai"):
        from compaction_ledger.infrastructure.agent_hooks.pydantic_ai import (  # noqa: PLC0415 - an extra
            WindowCapability,
        )

    return WindowCapability(prepare)


def _proposer(proposer: PinProposer | Literal["rules"] | None) -> PinProposer | None:
    if isinstance(proposer, str):
        if proposer != "rules":
            raise InvalidSetting(f"{proposer!r} is none; there is 'rules'", place="proposer")
        return RulePinProposer()
    return proposer
