"""The ledger in an asyncio backend: each call runs in a thread, the event loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar

from compaction_ledger.domain.assembly import Assembly
from compaction_ledger.domain.read_models import SummaryRow
from compaction_ledger.ledger import Ledger
from compaction_ledger.usecases.compaction import CompactionReport
from compaction_ledger.usecases.planning import ConversationPlan
from compaction_ledger.usecases.verifying import Verification

P = ParamSpec("P")
T = TypeVar("T")


class AsyncLedger:
    """A thin asynchronous face of an open :class:`Ledger`. Parameters are those of its methods."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def plan(self, *args: Any, **kwargs: Any) -> ConversationPlan:
        """As :meth:`Ledger.plan`."""
        return await in_thread(self.ledger.plan, *args, **kwargs)

    async def compact(self, *args: Any, **kwargs: Any) -> CompactionReport:
        """As :meth:`Ledger.compact`. A cancelled task leaves its range to be finished in the thread."""
        return await in_thread(self.ledger.compact, *args, **kwargs)

    async def assemble(self, *args: Any, **kwargs: Any) -> Assembly:
        """As :meth:`Ledger.assemble`."""
        return await in_thread(self.ledger.assemble, *args, **kwargs)

    async def record_delivery(self, *args: Any, **kwargs: Any) -> int:
        """As :meth:`Ledger.record_delivery`."""
        return await in_thread(self.ledger.record_delivery, *args, **kwargs)

    async def summaries(self, *args: Any, **kwargs: Any) -> list[SummaryRow]:
        """As :meth:`Ledger.summaries`."""
        return list(await in_thread(self.ledger.summaries, *args, **kwargs))

    async def verify(self) -> Verification:
        """As :meth:`Ledger.verify`."""
        return await in_thread(self.ledger.verify)

    async def close(self) -> None:
        """As :meth:`Ledger.close`."""
        await in_thread(self.ledger.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``function`` in a thread of the default executor."""
    return await asyncio.to_thread(function, *args, **kwargs)
