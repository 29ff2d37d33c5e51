"""How much of each request a provider's cache has seen before, over a long run: ours and the peers'."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import window_peers
import window_workload
from window_workload import Json

from compaction_ledger import Ledger
from compaction_ledger.domain.window.policy import REGROUP, WindowBudget
from compaction_ledger.domain.window.reuse import common_prefix, sent
from compaction_ledger.domain.window.tokens import Utf8Counter
from compaction_ledger.window import Window

Figures = dict[str, float]
BYTES_PER_TOKEN = 4.0
LIMIT, TURNS = 128_000, 400
SMALL_LIMIT, SMALL_TURNS = 16_000, 120
COUNTER = Utf8Counter(BYTES_PER_TOKEN)


class Contestant(Protocol):
    """Holds the messages of one agent, and prepares each request of it."""

    def add(self, messages: Sequence[Json]) -> None:
        """The run has these new messages."""
        ...

    def request(self) -> list[bytes]:
        """What the model would be sent now: the JSON of each message, in the form of OpenAI Chat."""
        ...

    @property
    def calls(self) -> int:
        """How often a model was asked for a summary."""
        ...


@dataclass(slots=True)
class Ours:
    """A window on a ledger; its chunks are summarized between the turns."""

    window: Window
    messages: list[Json] = field(default_factory=list[Json])
    calls: int = 0
    regrouped: int = 0
    _chunks: int = 0

    def add(self, messages: Sequence[Json]) -> None:
        """See :class:`Contestant`."""
        self.messages += messages

    def request(self) -> list[bytes]:
        """See :class:`Contestant`."""
        outcome = self.window.compact()
        if outcome is not None:
            if outcome.result != "completed":
                raise AssertionError(f"a chunk is {outcome.result}: {outcome.detail}")
            self.calls += 1
        prepared = self.window.prepare(self.messages)
        chunks = len(prepared.manifest.chunks)
        self.regrouped += chunks < self._chunks
        self._chunks = chunks
        return list(prepared.encoded)


@dataclass(frozen=True, slots=True)
class Reuse:
    """Of one contestant over a run. Bytes are those of its requests' JSON."""

    requests: int
    bytes_sent: int
    bytes_reused: int
    calls: int
    kept: int

    def figures(self, name: str) -> Figures:
        """The share that was reused; constraints still word for word in the last request; what it took."""
        return {
            f"{name}_prefix_reuse": self.bytes_reused / self.bytes_sent,
            f"{name}_constraints_kept": self.kept,
            f"{name}_model_calls": self.calls,
            f"{name}_mib_sent": self.bytes_sent / 2**20,
            f"{name}_mib_not_reused": (self.bytes_sent - self.bytes_reused) / 2**20,
        }


def run(contestant: Contestant, turns: int) -> Reuse:
    """The whole run, request by request."""
    before: Sequence[bytes] = ()
    requests = total = reused = 0
    for step in window_workload.steps(turns):
        contestant.add(step.new)
        request = contestant.request()
        requests += 1
        total += sent(request)
        reused += common_prefix(before, request)
        before = request
        contestant.add([step.answer])
    return Reuse(requests, total, reused, contestant.calls, kept(before))


def kept(request: Sequence[bytes]) -> int:
    """How many of the planted constraints stand in a request, character for character."""
    text = b"\n".join(request).decode()
    return sum(
        json.dumps(each, ensure_ascii=False)[1:-1] in text for each in window_workload.CONSTRAINTS
    )


def ours(path: Path, budget: WindowBudget, turns: int) -> tuple[Reuse, int]:
    """The run with a window of ours on a ledger at ``path``, and how often chunks were regrouped in it."""
    with (
        Ledger.open(path) as ledger,
        ledger.window(
            "bench",
            run="run",
            shape="openai-chat",
            budget=budget,
            counter=COUNTER,
            background=False,
        ) as window,
    ):
        contestant = Ours(window)
        return run(contestant, turns), contestant.regrouped


def prefix_reuse(turns: int = TURNS, limit: int = LIMIT) -> Figures:
    """With a window as large as models have them, at which no chunk of the run is regrouped; with a share of
    the summaries so small that they are; and the peers, all on the same run.
    """
    usual = WindowBudget(limit)
    tight = WindowBudget(limit, summaries=limit // 25, when_outgrown=REGROUP)
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        measured, regrouped = ours(Path(folder) / "usual.db", usual, turns)
        if regrouped:
            raise AssertionError("chunks were regrouped: the run is too long for this figure")
        figures |= measured.figures("window")
        measured, regrouped = ours(Path(folder) / "tight.db", tight, turns)
        figures |= measured.figures("window_regrouping")
        figures["window_regrouping_times"] = regrouped
    for peer, make in peers(usual).items():
        figures |= run(make(), turns).figures(peer)
    return figures


def small_window(turns: int = SMALL_TURNS, limit: int = SMALL_LIMIT) -> Figures:
    """The same with a window in which a turn takes much more room."""
    budget = WindowBudget(limit)
    with tempfile.TemporaryDirectory() as folder:
        measured, regrouped = ours(Path(folder) / "small.db", budget, turns)
    figures = measured.figures("small_window")
    figures["small_window_regrouping_times"] = regrouped
    for peer, make in peers(budget).items():
        figures |= run(make(), turns).figures(f"small_{peer}")
    return figures


def peers(budget: WindowBudget) -> dict[str, Callable[[], Contestant]]:
    """The peers with the limit, trigger and keep of our window, counted by the same counter."""
    lang, strands = window_peers.LangChain, window_peers.Strands
    count: Callable[[Sequence[bytes]], int] = lambda messages: sum(COUNTER.count(messages))  # noqa: E731
    share = 1 - budget.keep / budget.trigger
    return {
        "langchain": lambda: lang(budget, count),
        "langchain_untrimmed": lambda: lang(budget, count, trimmed=False),
        "strands": lambda: strands(budget, count),
        "strands_same_share": lambda: strands(budget, count, share),
    }


def versions() -> dict[str, Any]:
    """The peers' versions, for the head of the table."""
    return window_peers.versions()
