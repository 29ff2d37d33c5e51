"""The ledger in an asyncio backend: each call runs in a thread, the event loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from compaction_ledger.ledger import Ledger
from compaction_ledger.worker import SignalStop

if TYPE_CHECKING:
    from compaction_ledger.domain.window.events import PinAccepted
    from compaction_ledger.domain.window.policy import WindowBudget
    from compaction_ledger.usecases.window.compacting import ChunkOutcome
    from compaction_ledger.usecases.window.context import Messages
    from compaction_ledger.usecases.window.preparing import Prepared
    from compaction_ledger.window import Window

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8


def _in_thread(
    method: Callable[Concatenate[Ledger, P], T],
) -> Callable[Concatenate[AsyncLedger, P], Coroutine[Any, Any, T]]:
    """``method`` of a ledger, as a coroutine function of its asynchronous face."""

    @wraps(method)
    async def call(self: AsyncLedger, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(partial(method, self.ledger, *args, **kwargs))

    return call


def _stoppable(
    method: Callable[Concatenate[Ledger, P], T],
) -> Callable[Concatenate[AsyncLedger, P], Coroutine[Any, Any, T]]:
    """As :func:`_in_thread`; a cancelled task asks the compaction to stop before its next step."""

    @wraps(method)
    async def call(self: AsyncLedger, /, *args: P.args, **kwargs: P.kwargs) -> T:
        options: dict[str, Any] = dict(kwargs)
        stop = options.get("stop") or SignalStop()
        options["stop"] = stop
        try:
            return await self.run(partial(method, self.ledger, *args, **options))
        except asyncio.CancelledError:
            if isinstance(stop, SignalStop):
                stop.request()
            raise

    return call


class AsyncWindow:
    """A thin asynchronous face of a :class:`Window`: each call runs in a thread of the ledger's.

    Whatever only looks and is not here is used on ``window`` itself.
    """

    def __init__(self, window: Window, ledger: AsyncLedger) -> None:
        self.window = window
        self._ledger = ledger

    def awrap(
        self, call: Callable[..., Awaitable[Any]], **options: Any
    ) -> Callable[..., Awaitable[Any]]:
        """As :meth:`Window.awrap`."""
        return self.window.awrap(call, **options)

    def capability(self) -> Any:
        """As :meth:`Window.capability`."""
        return self.window.capability()

    def tools(self) -> list[dict[str, Any]]:
        """As :meth:`Window.tools`."""
        return self.window.tools()

    async def prepare(self, messages: Messages, *, beside: int = 0) -> Prepared:
        """As :meth:`Window.prepare`."""
        return await self._ledger.run(partial(self.window.prepare, messages, beside=beside))

    async def compact(self) -> ChunkOutcome | None:
        """As :meth:`Window.compact`. What has begun goes on when the task is cancelled."""
        return await self._ledger.run(self.window.compact)

    async def deliver(self, prepared: Prepared, *, delivery_id: str | None = None) -> int:
        """As :meth:`Window.deliver`."""
        return await self._ledger.run(
            partial(self.window.deliver, prepared, delivery_id=delivery_id)
        )

    async def pin(
        self, quote: str, *, message: int | None = None, supersedes: str | None = None
    ) -> PinAccepted:
        """As :meth:`Window.pin`."""
        return await self._ledger.run(
            partial(self.window.pin, quote, message=message, supersedes=supersedes)
        )

    async def pins(self) -> tuple[PinAccepted, ...]:
        """As :meth:`Window.pins`."""
        return await self._ledger.run(self.window.pins)

    async def call_tool(self, name: str, arguments: str | Mapping[str, Any]) -> str:
        """As :meth:`Window.call_tool`."""
        return await self._ledger.run(partial(self.window.call_tool, name, arguments))

    async def wait(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as of Window
        """As :meth:`Window.wait`."""
        return await self._ledger.run(partial(self.window.wait, timeout))

    async def close(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as of Window
        """As :meth:`Window.close`."""
        return await self._ledger.run(partial(self.window.close, timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


class AsyncLedger:
    """A thin asynchronous face of an open :class:`Ledger`. Parameters are those of its methods.

    Calls run in threads of their own, at most ``threads`` at once. A call that has begun goes on when
    its task is cancelled: what it records it records. A compaction then stops before its next range or
    attempt; a model call in flight is waited for by nobody and ends by itself.
    """

    def __init__(self, ledger: Ledger, *, threads: int = THREADS) -> None:
        self.ledger = ledger
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="compaction-ledger")

    plan = _in_thread(Ledger.plan)
    compact = _stoppable(Ledger.compact)
    compact_all = _stoppable(Ledger.compact_all)
    look = _stoppable(Ledger.look)
    assemble = _in_thread(Ledger.assemble)
    record_delivery = _in_thread(Ledger.record_delivery)
    import_file = _in_thread(Ledger.import_file)
    import_archive = _in_thread(Ledger.import_archive)
    import_summary = _in_thread(Ledger.import_summary)
    summaries = _in_thread(Ledger.summaries)
    grounding = _in_thread(Ledger.grounding)
    ranges = _in_thread(Ledger.ranges)
    attempts = _in_thread(Ledger.attempts)
    deliveries = _in_thread(Ledger.deliveries)
    replay = _in_thread(Ledger.replay)
    replay_all = _in_thread(Ledger.replay_all)
    diff = _in_thread(Ledger.diff)
    delivered = _in_thread(Ledger.delivered)
    status = _in_thread(Ledger.status)
    rebuild = _in_thread(Ledger.rebuild)
    verify = _in_thread(Ledger.verify)
    export = _in_thread(Ledger.export)
    checkpoint = _in_thread(Ledger.checkpoint)
    spread = _in_thread(Ledger.spread)

    async def window(
        self, conversation: str, *, run: str, shape: str, budget: WindowBudget | int, **options: Any
    ) -> AsyncWindow:
        """The window of one run; ``options`` are those of :meth:`Ledger.window`."""
        opened = partial(
            self.ledger.window, conversation, run=run, shape=shape, budget=budget, **options
        )
        return AsyncWindow(await self.run(opened), self)

    async def run(self, call: Callable[[], T]) -> T:
        """Run ``call`` in one of the ledger's threads, for what has no method here."""
        context = copy_context()  # so that spans lie in the caller's
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, context.run, call)

    async def close(self) -> None:
        """Wait for the calls that have begun, then close the ledger."""
        await asyncio.to_thread(self._executor.shutdown)
        self.ledger.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()
