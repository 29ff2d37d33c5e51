"""Workers and jobs of Procrastinate for a ledger on PostgreSQL. Needs the extra ``procrastinate``.

See ``docs/how-to/dispatch-with-procrastinate.md``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from compaction_ledger.domain.errors import StoreUnavailable, UnknownConversation
from compaction_ledger.domain.ports import Summarizer
from compaction_ledger.ledger import LOOK_RANGES, Ledger
from compaction_ledger.serving import Pace
from compaction_ledger.usecases.stopping import NeverStop, Stop, Stopped
from compaction_ledger.worker import SignalStop

try:
    from procrastinate import App

    from compaction_ledger.infrastructure.dispatch import procrastinate as engine
    from compaction_ledger.infrastructure.dispatch.procrastinate import (
        LOOK,
        QUEUE,
        Dispatcher,
        app_on,
        dispatcher,
        free_stalled,
        install,
    )
except ImportError as error:
    raise ImportError(
        f"this needs: pip install 'compaction-ledger[procrastinate]' ({error})"
    ) from error

__all__ = [
    "LOOK",
    "QUEUE",
    "Dispatcher",
    "add_looks",
    "app_on",
    "dispatcher",
    "free_stalled",
    "install",
    "run_procrastinate_worker",
]

TICK = 0.2


def add_looks(
    app: App,
    ledger: Ledger,
    *,
    summarizer: Summarizer | None = None,
    upgrade: bool = False,
    queue: str = QUEUE,
    ranges: int = LOOK_RANGES,
) -> None:
    """Let the workers of ``app`` look at conversations of ``ledger``, whoever runs them.

    After so many ``ranges`` of one conversation it is another's turn.
    """

    def look(scope: str, conversation: str, is_over: Callable[[], bool]) -> float | None:
        try:
            return ledger.look(
                conversation,
                scope=scope,
                summarizer=summarizer,
                upgrade=upgrade,
                stop=_Aborted(is_over),
                at_most=ranges,
            ).again_in
        except UnknownConversation:  # deleted meanwhile
            return None
        except Stopped:
            return 0.0

    engine.add_tasks(app, look, queue)


def run_procrastinate_worker(
    ledger: Ledger,
    app: App,
    *,
    summarizer: Summarizer | None = None,
    upgrade: bool = False,
    pace: Pace | None = None,
    stop: Stop | None = None,
    queue: str = QUEUE,
    listen: bool = True,
) -> None:
    """Run a worker of Procrastinate that looks at conversations, until it is told to stop.

    In the main thread SIGINT and SIGTERM tell it, unless a ``stop`` is given. Then nothing new is begun; when
    the ``drain`` of its pace is over, looks that are under way end before their next step, and calls of the
    model are interrupted if the ``summarizer`` that is given has a method ``cancel``. With ``until_idle`` it
    ends when no job is left that could be run. Behind a pooler in transaction mode it must not ``listen``.

    Raises :class:`StoreUnavailable` where it ends by itself: start it again.
    """
    pace = pace or Pace()
    add_looks(app, ledger, summarizer=summarizer, upgrade=upgrade, queue=queue, ranges=pace.ranges)
    cancel = getattr(summarizer, "cancel", None)
    if stop is not None or threading.current_thread() is not threading.main_thread():
        asyncio.run(_Worker(app, queue, pace, stop or NeverStop(), listen, cancel).run())
        return
    signals = SignalStop()
    with signals.on_signals():
        asyncio.run(_Worker(app, queue, pace, signals, listen, cancel).run())


@dataclass(frozen=True, slots=True)
class _Worker:
    """One run of a worker."""

    app: App
    queue: str
    pace: Pace
    stop: Stop
    listen: bool
    cancel: Callable[[], None] | None

    async def run(self) -> None:
        """Until it is told to stop. Raises :class:`StoreUnavailable`."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(
            ThreadPoolExecutor(self.pace.threads + 2, "compaction-ledger look")
        )
        async with self.app.open_async():
            working = asyncio.create_task(self._work())
            while not working.done() and not self.stop.requested:
                await asyncio.wait([working], timeout=TICK)
            if self.stop.requested:
                await self._end(working)
                return
            try:
                await working
            except Exception as error:
                raise StoreUnavailable(
                    f"the worker of Procrastinate ended: {type(error).__name__}"
                ) from error
        if not self.pace.until_idle:
            raise StoreUnavailable("the worker of Procrastinate ended by itself")

    async def _work(self) -> None:
        await self._run_worker()
        while self.pace.until_idle and await self._has_more():
            await self._run_worker()

    async def _has_more(self) -> bool:
        """Whether a look has deferred another one that can be run at once, behind the worker's back."""
        now = datetime.now(UTC)
        waiting = await self.app.job_manager.list_jobs_async(queue=self.queue, status="todo")
        return any(job.scheduled_at is None or job.scheduled_at <= now for job in waiting)

    async def _run_worker(self) -> None:
        await self.app.run_worker_async(
            queues=[self.queue],
            concurrency=self.pace.threads,
            wait=not self.pace.until_idle,
            fetch_job_polling_interval=self.pace.poll,
            install_signal_handlers=False,
            delete_jobs="successful",
            shutdown_graceful_timeout=self.pace.drain,
            listen_notify=self.listen,
        )

    async def _end(self, working: asyncio.Task[None]) -> None:
        """Let the worker end in its own way; after a while interrupt the model."""
        loop = asyncio.get_running_loop()
        timer = None if self.cancel is None else loop.call_later(self.pace.drain, self.cancel)
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        if timer is not None:
            timer.cancel()


@dataclass(frozen=True, slots=True)
class _Aborted:
    """The stop of one look: its job is aborted, because its worker ends or somebody wants it to."""

    is_over: Callable[[], bool]

    @property
    def requested(self) -> bool:
        return self.is_over()

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Nothing interrupts but the summarizer's ``cancel``."""
        yield
