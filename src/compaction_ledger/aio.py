"""The ledger in an asyncio backend: each call runs in a thread, the event loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from compaction_ledger.ledger import Ledger
from compaction_ledger.worker import SignalStop

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
    status = _in_thread(Ledger.status)
    rebuild = _in_thread(Ledger.rebuild)
    verify = _in_thread(Ledger.verify)

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
