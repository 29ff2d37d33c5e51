"""What the use cases of one window work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction_ledger.domain.messages.interface import MessageShape
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import Originals
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.prompts import WindowPrompts
from compaction_ledger.domain.window.tokens import Gauge
from compaction_ledger.usecases.telemetry import NO_TELEMETRY, Telemetry


@dataclass(frozen=True, slots=True)
class WindowContext:
    """One window: its ports, its run and shape, its budget and how its tokens are counted."""

    log: Log
    originals: Originals
    registry: WindowPrompts
    key: WindowKey
    shape: MessageShape
    budget: WindowBudget
    gauge: Gauge
    telemetry: Telemetry = field(default=NO_TELEMETRY)
    follow: Callable[[], None] = field(default=lambda: None)
    """Brings the read models up to the log, as far as that can be done now; no error of anybody's (P2)."""


Messages = Sequence[Any]
"""Messages of a provider as a caller has them: JSON objects."""
