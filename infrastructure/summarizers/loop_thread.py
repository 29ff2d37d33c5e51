"""An event loop on a thread of its own, so that a synchronous port can use asynchronous clients."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Lock, Thread, current_thread
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for any number of threads. Starts with the first one; ends with ``close``.

    The thread is a daemon, and it is stopped when its owner is collected or the interpreter exits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._running: (
            tuple[asyncio.AbstractEventLoop, Thread, weakref.finalize[..., Any]] | None
        ) = None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run ``coroutine`` on the loop; cancelling the future cancels it."""
        with self._lock:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop())

    def close(self) -> None:
        """Cancel what runs, wait for it, and stop. The next ``submit`` starts anew."""
        with self._lock:
            running, self._running = self._running, None
            if running is not None:
                running[2]()

    def _loop(self) -> asyncio.AbstractEventLoop:
        # After a fork the child has the object but not the thread.
        if self._running is None or not self._running[1].is_alive():
            loop = asyncio.new_event_loop()
            thread = Thread(target=_run, args=(loop,), name=self._name, daemon=True)
            thread.start()
            self._running = loop, thread, weakref.finalize(self, _stop, loop, thread)
        return self._running[0]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: Thread) -> None:
    if thread is current_thread():  # the last reference was dropped by a call that had just ended
        loop.stop()
    elif thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
