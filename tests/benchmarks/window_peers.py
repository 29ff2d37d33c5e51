"""The peers of the window, driven as their own agents drive them, with a model that needs no network.

All three summarize with the same rules: those of our embedded summarizer, on the messages that each hands
to its model, with the same bounds of length. It is no language model: what one would keep is not measured.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any

from window_workload import SYSTEM, Json, in_shape

from compaction_ledger.domain.messages.interface import EntryRole, PartKind
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.prompts import DEFAULT_WINDOW_PROMPTS
from compaction_ledger.domain.window.structure import parse_structure
from compaction_ledger.domain.window.summarization import ChunkLine
from compaction_ledger.infrastructure.summarizers.chunk_extractive import ExtractiveChunkSummarizer
from compaction_ledger.usecases.window.reading import encode_all

Count = Callable[[Sequence[bytes]], int]
READABLE = frozenset({"text", "call", "result"})
MARK = "Summary so far:"
_SIDES: dict[str, tuple[EntryRole, PartKind]] = {
    "decisions:": ("assistant", "text"),
    "entities:": ("assistant", "text"),
    "constraints:": ("user", "text"),
    "open_questions:": ("user", "text"),
    "tool_outcomes:": ("tool", "result"),
}


def versions() -> dict[str, str]:
    """Of each peer."""
    return {name: version(name) for name in ("langchain", "langgraph", "strands-agents")}


def summary_of(shape_name: str, messages: Sequence[Json]) -> str:
    """What the embedded summarizer makes of these messages, as text with headings.

    An earlier summary among them is read by its headings, entry by entry: as good as when it was first read.
    """
    shape = shape_named(shape_name)
    lines = [
        line
        for entry in shape.read(messages)
        for part in shape.parts(entry.wire)
        if part.kind in READABLE
        for line in (
            _entries(entry.id, part.text)
            if entry.role == "user" and MARK in part.text
            else [ChunkLine(entry.id, entry.role, part.kind, part.name, part.text)]
        )
    ]
    registry = DEFAULT_WINDOW_PROMPTS
    request = registry.request(registry.current, tuple(lines))
    text = ExtractiveChunkSummarizer().summarize_chunk(request).text
    return "\n".join((MARK, *parse_structure(text).lines())) if text else MARK


def _entries(message_id: str, summary: str) -> list[ChunkLine]:
    """The entries of an earlier summary, each as said by the side that it was first heard of."""
    found: list[ChunkLine] = []
    side: tuple[EntryRole, PartKind] = ("assistant", "text")
    for line in summary.partition(MARK)[2].splitlines():
        if line.startswith("- "):
            found.append(ChunkLine(message_id, *side, None, line[2:]))
        else:
            side = _SIDES.get(line, side)
    return found


class LangChain:
    """``SummarizationMiddleware`` of LangChain, whose hook runs before each call of the model.

    Trigger and keep are those of our window. ``trimmed``: with its default, by which the summarizer is given
    the last 4,000 tokens of what it is to summarize; otherwise all of it.
    """

    def __init__(self, budget: WindowBudget, count: Count, *, trimmed: bool = True) -> None:
        from langchain.agents.middleware import SummarizationMiddleware  # noqa: PLC0415
        from langchain_core.language_models import FakeListChatModel  # noqa: PLC0415

        self._count = count
        self._encoded: dict[tuple[str, str], bytes] = {}
        self._messages: list[Any] = []
        self.calls = 0
        settings: dict[str, Any] = {} if trimmed else {"trim_tokens_to_summarize": None}
        self._middleware = SummarizationMiddleware(
            FakeListChatModel(responses=["not asked: the summarizer is"]),
            trigger=("tokens", budget.trigger),
            keep=("tokens", budget.keep),
            token_counter=self._tokens,
            summarizer=self._summarize,
            **settings,
        )

    def add(self, messages: Sequence[Json]) -> None:
        """The run has these new messages; its system prompt stands apart in an agent's state."""
        from langchain_core.messages import convert_to_messages  # noqa: PLC0415
        from langgraph.graph.message import add_messages  # noqa: PLC0415

        new: Any = convert_to_messages([each for each in messages if each["role"] != "system"])
        self._messages = list(add_messages(self._messages, new))

    def request(self) -> list[bytes]:
        """The hook, the agent's reducer of its state, and the request that follows."""
        from langgraph.graph.message import add_messages  # noqa: PLC0415
        from langgraph.runtime import Runtime  # noqa: PLC0415

        update = self._middleware.before_model({"messages": self._messages}, Runtime())
        if update is not None:
            self._messages = list(add_messages(self._messages, update["messages"]))
        return [
            *encode_all([{"role": "system", "content": SYSTEM}]),
            *map(self._json, self._messages),
        ]

    def _tokens(self, messages: Iterable[Any]) -> int:
        return self._count([self._json(message) for message in messages])

    def _json(self, message: Any) -> bytes:
        from langchain_core.messages import convert_to_openai_messages  # noqa: PLC0415

        key = (str(message.id), str(message.content))
        found = self._encoded.get(key)
        if found is None:
            found = self._encoded[key] = encode_all([convert_to_openai_messages(message)])[0]
        return found

    def _summarize(self, messages: list[Any]) -> str:
        self.calls += 1
        return summary_of("openai-chat", [json.loads(self._json(message)) for message in messages])


class Strands:
    """``SummarizingConversationManager`` of Strands Agents, in an agent of theirs.

    Its proactive compression begins at the same share of the limit as ours; what exceeds the limit after it
    is reduced as an overflow. ``share``: how much of the messages is summarized each time (default: 0.3).
    """

    def __init__(self, budget: WindowBudget, count: Count, share: float | None = None) -> None:
        from strands import Agent  # noqa: PLC0415
        from strands.agent.conversation_manager import (  # noqa: PLC0415
            SummarizingConversationManager,
        )

        self._limit, self._count = budget.limit, count
        self._encoded: dict[int, tuple[Any, list[bytes]]] = {}
        self._model = _strands_model(budget.limit)
        settings: dict[str, Any] = {} if share is None else {"summary_ratio": share}
        self._manager = SummarizingConversationManager(
            proactive_compression={"compression_threshold": budget.trigger / budget.limit},
            **settings,
        )
        self._agent = Agent(
            model=self._model,
            system_prompt=SYSTEM,
            conversation_manager=self._manager,
            callback_handler=None,
        )

    @property
    def calls(self) -> int:
        """How often the model was asked for a summary."""
        return int(self._model.calls)

    def add(self, messages: Sequence[Json]) -> None:
        """The run has these new messages."""
        new: Any = in_shape("converse", messages)
        self._agent.messages.extend(new)

    def request(self) -> list[bytes]:
        """The event before a model's call, and what an overflow does; then the request."""
        from strands.hooks import BeforeModelCallEvent  # noqa: PLC0415
        from strands.types.exceptions import ContextWindowOverflowException  # noqa: PLC0415

        tokens = self._count(self._request())
        self._agent.hooks.invoke_callbacks(
            BeforeModelCallEvent(agent=self._agent, projected_input_tokens=tokens)
        )
        request = self._request()
        while self._count(request) > self._limit:
            self._manager.reduce_context(self._agent, ContextWindowOverflowException("too long"))
            request = self._request()
        return request

    def _request(self) -> list[bytes]:
        found = encode_all([{"role": "system", "content": SYSTEM}])
        for message in self._agent.messages:
            known = self._encoded.get(id(message))
            if known is None:  # the message is kept with it, so that its id stays its own
                known = self._encoded[id(message)] = (message, encode_all(_as_chat(message)))
            found += known[1]
        return found


def _as_chat(message: Any) -> list[Json]:
    """A message of Strands as OpenAI Chat messages."""
    results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
    if results:
        return [
            {
                "role": "tool",
                "tool_call_id": result["toolUseId"],
                "content": "\n".join(each["text"] for each in result["content"]),
            }
            for result in results
        ]
    texts = [block["text"] for block in message["content"] if "text" in block]
    calls = [
        {
            "id": use["toolUseId"],
            "type": "function",
            "function": {"name": use["name"], "arguments": json.dumps(use["input"])},
        }
        for use in (block["toolUse"] for block in message["content"] if "toolUse" in block)
    ]
    said: Json = {"role": message["role"], "content": "\n".join(texts) if texts else None}
    return [{**said, "tool_calls": calls} if calls else said]


def _strands_model(limit: int) -> Any:
    """A model of Strands that answers a request for a summary by our rules."""
    from strands.models import Model  # noqa: PLC0415

    class RulesModel(Model):
        """Counts its calls."""

        def __init__(self) -> None:
            self.calls = 0
            self._config: Json = {"context_window_limit": limit}

        def get_config(self) -> Any:
            return self._config

        def update_config(self, **model_config: Any) -> None:
            self._config |= model_config

        def structured_output(self, *_args: Any, **_options: Any) -> Any:
            raise TypeError("this model writes summaries as text, and nothing by a schema")

        async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            self.calls += 1
            asked = messages[:-1]  # the last one only asks for the summary
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": summary_of("converse", asked)}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    return RulesModel()
