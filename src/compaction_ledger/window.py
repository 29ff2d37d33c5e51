"""The public face of a running agent's window: prepare each request, compact between turns, pin, search,
wrap.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from threading import RLock
from types import TracebackType
from typing import Any, Self, cast

from compaction_ledger.domain.errors import (
    DamagedLog,
    InvalidSetting,
    StoreError,
    WindowTooSmall,
)
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.pins import PinProposer
from compaction_ledger.domain.window.window_stream import current_pins
from compaction_ledger.usecases.history import HistorySearch
from compaction_ledger.usecases.history_tools import call_tool, tool_definitions
from compaction_ledger.usecases.window.background import Background
from compaction_ledger.usecases.window.compacting import ChunkCompactor, ChunkOutcome
from compaction_ledger.usecases.window.context import Messages, WindowContext
from compaction_ledger.usecases.window.delivering import (
    record_window_by_setting,
    record_window_delivery,
)
from compaction_ledger.usecases.window.pinning import Pinning, RefusedQuote
from compaction_ledger.usecases.window.preparing import Prepared, Preparer
from compaction_ledger.usecases.window.reading import Turn
from compaction_ledger.usecases.window.wires import (
    ARGUMENTS,
    HostMessages,
    reported_tokens,
    told_beside,
)

logger = logging.getLogger(__name__)


Observe = Callable[[int], None]
PrepareWires = Callable[[Messages], tuple[Sequence[Any], Observe]]
"""Prepares messages; with what to tell the tokens that the provider reports for these very ones."""


@dataclass(frozen=True, slots=True)
class WindowParts:
    """What the composition root puts a window together from."""

    context: WindowContext
    compactor: ChunkCompactor
    history: HistorySearch
    proposer: PinProposer | None
    capability: Callable[[PrepareWires], Any]
    """Makes the capability for agents of Pydantic AI, from what prepares: an extra."""
    record: bool = False
    """Whether each prepared request is recorded (:attr:`Settings.record_deliveries`)."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """The state of the gauge at one request: what its provider reports is held against that."""

    scale: float
    apart: int


class Window:
    """The window of one run. Use one for each run and process; it may be used from several threads.

    Each request is prepared from the run's complete list of messages. Chunks that are due are summarized
    in the background, unless ``background`` is off: then :meth:`compact` does it when it is called.
    """

    def __init__(self, parts: WindowParts, *, background: bool = True) -> None:
        self._parts = parts
        self._preparer = Preparer(parts.context, parts.compactor.summarizer.model)
        self._pinning = Pinning(parts.context, parts.proposer)
        self._background = Background("compaction-ledger window") if background else None
        self._lock = RLock()
        self._due: ChunkJob | None = None
        self._last: Prepared | None = None
        self._counted = _Counted(1.0, 0)  # how the tokens of the last request were counted
        self._turn: Turn | None = None
        self._beside = 0
        self._sent = self._reused = 0
        self._outcome: ChunkOutcome | None = None
        self._error: Exception | None = None

    @property
    def key(self) -> WindowKey:
        """Scope, conversation and run."""
        return self._parts.context.key

    # --- a turn ---

    def prepare(self, messages: Messages, *, beside: int = 0) -> Prepared:
        """The request for the run's complete list of messages, as JSON objects of its shape.

        ``beside``: tokens of what stands apart from them (system prompt, tools). The list is not changed.
        Raises :class:`MalformedMessage`, :class:`BrokenTranscript`, :class:`HistoryChanged` (T2),
        :class:`WindowTooSmall` (T6), :class:`DamagedOriginal`, kinds of :class:`StoreError`.
        """
        return self._prepare(messages, beside)[0]

    def _prepare(self, messages: Messages, beside: int) -> tuple[Prepared, _Counted]:
        """A request, and how its tokens were counted."""
        if type(beside) is not int or beside < 0:
            raise InvalidSetting(f"must be a number of tokens, not {beside!r}", place="beside")
        with self._lock:
            gauge = self._parts.context.gauge
            counted = _Counted(gauge.scale, gauge.apart)
            beside += counted.apart
            turn = self._preparer.keep(messages, beside)
            self._pinning.look(turn)
            prepared = self._preparer.prepare(turn, beside)
            self._due, self._last, self._counted = prepared.due, prepared, counted
            self._turn, self._beside = turn, beside
            self._sent += prepared.bytes_sent
            self._reused += prepared.bytes_reused
        if self._parts.record:
            record_window_by_setting(self._parts.context, prepared)
            self._parts.context.follow()
        if prepared.due is not None and self._background is not None:
            self._background.give(self._compact_in_background)
        return prepared, counted

    def observe(self, tokens: int) -> None:
        """The provider reported so many tokens for the last prepared request: counts are corrected by it
        (T3). Telling it twice is telling it once.
        """
        with self._lock:
            if self._last is not None:
                self._observe_of(self._last, self._counted, tokens)

    def _observe_of(self, prepared: Prepared, how: _Counted, tokens: int) -> None:
        if type(tokens) is not int:
            raise InvalidSetting(f"must be a number of tokens, not {tokens!r}", place="tokens")
        counted = prepared.manifest.tokens + prepared.manifest.beside - how.apart
        with self._lock:
            self._parts.context.gauge.observe(counted, tokens, how.scale)

    @property
    def prefix_reuse(self) -> float:
        """The share of all bytes sent that stood at the same place in the request before (T10); 0.0 before
        any.
        """
        return self._reused / self._sent if self._sent else 0.0

    def deliver(self, prepared: Prepared, *, delivery_id: str | None = None) -> int:
        """Record that ``prepared`` was really sent; the delivery's index in the log.

        Raises :class:`InvalidSetting` for a request of another window, or none.
        """
        if getattr(prepared, "key", None) != self.key:
            raise InvalidSetting("is no request of this window", place="prepared")
        index = record_window_delivery(self._parts.context, prepared, delivery_id)
        self._parts.context.follow()
        return index

    # --- compaction ---

    def compact(self) -> ChunkOutcome | None:
        """Summarize the chunk that was due at the last turn, now and here; ``None`` if none was.

        If more was due than one chunk, call it again.
        """
        with self._lock:
            job, self._due = self._due, None
        if job is None:
            return None
        try:
            outcome = self._outcome = self._parts.compactor.compact(job)
        except Exception as error:
            self._error = error
            raise
        self._parts.context.follow()
        if outcome.result == "completed":
            self._plan_again()
        return outcome

    def _plan_again(self) -> None:
        """What is due of the last turn behind the chunk that was completed: a backlog is several."""
        with self._lock:
            if self._turn is not None and self._due is None:
                try:
                    due = self._preparer.plan(self._turn, self._beside)
                except (StoreError, WindowTooSmall) as error:
                    # The next turn plans anew, or is refused.
                    logger.info("nothing more is planned now: %s", error)
                else:
                    self._due = due if isinstance(due, ChunkJob) else None

    @property
    def last_outcome(self) -> ChunkOutcome | None:
        """What became of the newest chunk that was tried here, in the background or by :meth:`compact`."""
        return self._outcome

    @property
    def last_error(self) -> Exception | None:
        """The newest error that ended a compaction here; in the background it is logged and told nowhere
        else.
        """
        return self._error

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for what runs in the background; whether it ended within about ``timeout`` seconds."""
        pinned = self._pinning.wait(timeout)
        return (self._background is None or self._background.wait(timeout)) and pinned

    def _compact_in_background(self) -> None:
        while (outcome := self.compact()) is not None:
            logger.info("messages %d to %d: %s", outcome.first, outcome.last, outcome.result)
            if outcome.result != "completed" or self._background is None or self._background.closed:
                return

    # --- pins ---

    def pin(
        self, quote: str, *, message: int | None = None, supersedes: str | None = None
    ) -> PinAccepted:
        """Pin the user's exact words (T9). Without ``message`` the newest user message that has them.

        The message must have been part of a prepared request. Raises :class:`PinRefused`.
        """
        pin = self._pinning.pin(quote, message, supersedes)
        self._parts.context.follow()
        return pin

    def pins(self) -> tuple[PinAccepted, ...]:
        """The current pins of this run, in the order they were accepted."""
        return current_pins(self._parts.context.log.load_window(self.key))

    def all_pins(self) -> tuple[PinAccepted, ...]:
        """Every pin that was accepted, those that a newer one has replaced included."""
        return tuple(self._parts.context.log.load_window(self.key).pins.values())

    @property
    def refused_pins(self) -> tuple[RefusedQuote, ...]:
        """The newest quotes that were proposed here and are no pins, with the reasons."""
        return self._pinning.refused

    # --- the whole transcript ---

    @property
    def history(self) -> HistorySearch:
        """Search and rereading, bound to this scope and conversation (T15)."""
        return self._parts.history

    def tools(self) -> list[dict[str, Any]]:
        """The rereading tools, as definitions in the shape of this run."""
        return tool_definitions(self._parts.context.shape.name)

    def call_tool(self, name: str, arguments: str | Mapping[str, Any]) -> str:
        """Answer a call of one of :meth:`tools`, as JSON text for the tool's result. Never raises for bad
        arguments.
        """
        return call_tool(self._parts.history, name, arguments)

    # --- hooks ---

    def wrap(
        self, call: Callable[..., Any], *, argument: str | None = None, record: bool = False
    ) -> Callable[..., Any]:
        """``call`` of a provider's library, with its messages prepared: an agent's loop stays as it is.

        Where the store fails or is damaged, the messages go as they are. ``argument`` names the parameter
        with the messages, if it is not the usual one of the shape. With ``record`` each request that was
        answered is recorded as sent (:meth:`deliver`), unless all are recorded by
        :attr:`Settings.record_deliveries`. Raises :class:`InvalidSetting` for a coroutine function.
        """
        if inspect.iscoroutinefunction(call):
            raise InvalidSetting("is asynchronous: use awrap", place="call")
        name = self._argument(argument)

        @wraps(call)
        def prepared_call(*args: Any, **kwargs: Any) -> Any:
            prepared, observe = self._prepared(name, kwargs, record=record)
            response = call(*args, **prepared)
            observe(response)
            return response

        return prepared_call

    def awrap(
        self,
        call: Callable[..., Awaitable[Any]],
        *,
        argument: str | None = None,
        record: bool = False,
    ) -> Callable[..., Awaitable[Any]]:
        """As :meth:`wrap`, of an asynchronous call: preparing runs in a thread."""
        name = self._argument(argument)

        @wraps(call)
        async def prepared_call(*args: Any, **kwargs: Any) -> Any:
            prepare = partial(self._prepared, name, kwargs, record=record)
            prepared, observe = await asyncio.to_thread(prepare)
            response = await call(*args, **prepared)
            await asyncio.to_thread(observe, response)
            return response

        return prepared_call

    def capability(self) -> Any:
        """For an agent of Pydantic AI: ``Agent(…, capabilities=[window.capability()])``.

        The model is handed prepared messages, and the agent's own history stays complete.
        """
        if self._parts.context.shape.name != "pydantic-ai":
            raise InvalidSetting("needs a window of the shape pydantic-ai", place="shape")
        return self._parts.capability(self._prepare_wires)

    def _prepare_wires(self, messages: Messages) -> tuple[Sequence[Any], Observe]:
        try:
            prepared, counted = self._prepare(messages, 0)
        except (StoreError, DamagedLog) as error:
            logger.warning("a request goes as it is: %s", error)
            return messages, lambda _: None
        return prepared.messages, partial(self._observe_of, prepared, counted)

    def _argument(self, argument: str | None) -> str:
        name = argument or ARGUMENTS.get(self._parts.context.shape.name)
        if name is None:
            raise InvalidSetting("name the argument that holds the messages", place="argument")
        return name

    def _prepared(
        self, name: str, kwargs: Mapping[str, Any], *, record: bool
    ) -> tuple[dict[str, Any], Callable[[object], None]]:
        """The arguments with messages prepared, and what to tell the response to these very messages."""
        given = kwargs.get(name)
        if not isinstance(given, list):
            kind = "nothing" if name not in kwargs else f"a {type(given).__name__}"
            raise InvalidSetting(
                f"must be given by name, as the run's list of messages, and was {kind}", place=name
            )
        host = HostMessages(cast("Sequence[Any]", given))
        try:
            prepared, counted = self._prepare(host.wires, self._tokens_beside(kwargs))
        except (StoreError, DamagedLog) as error:
            logger.warning("a request goes as it is: %s", error)
            return dict(kwargs), lambda _: None
        given_back = host.back(prepared.messages)

        def observe(response: object) -> None:
            tokens = reported_tokens(response)
            if tokens is not None:
                self._observe_of(prepared, counted, tokens)
            if record and not self._parts.record:
                self._record(prepared)

        return {**kwargs, name: given_back}, observe

    def _record(self, prepared: Prepared) -> None:
        """Record what was sent; the answer is there, and is not lost for that (A11)."""
        try:
            self.deliver(prepared)
        except (StoreError, DamagedLog) as error:
            logger.warning("a request that was sent is not recorded: %s", error)

    def _tokens_beside(self, kwargs: Mapping[str, Any]) -> int:
        return sum(self._parts.context.gauge.count(told_beside(kwargs)))

    # --- its end ---

    def close(self, timeout: float | None = None) -> bool:
        """Begin nothing more and wait for what runs in the background; whether it ended within about
        ``timeout`` seconds."""
        pinned = self._pinning.close(timeout)
        ended = self._background is None or self._background.close(timeout)
        self._parts.context.follow()
        return ended and pinned

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
