"""What an open ledger remembers of its windows between one opening of a run and the next, in this process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.ports import Gate
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.tokens import Gauge, TokenCounter

MOST_RUNS = 1_000


class WindowMemory:
    """The corrected counts of runs (T3), and whether the summarizers' providers are there (D3).

    A backend may open a window for every request: what a provider reported must not be forgotten with it.
    """

    def __init__(self, make_gate: Callable[[], Gate]) -> None:
        self._make_gate = make_gate
        self._gauges: OrderedDict[WindowKey, tuple[TokenCounter, Gauge]] = OrderedDict()
        self._gates: dict[ModelIdentity, Gate] = {}
        self._lock = Lock()

    def gauge(self, key: WindowKey, counter: TokenCounter) -> Gauge:
        """The gauge of a run; a new one where it is counted by another counter, or was long not opened."""
        with self._lock:
            known = self._gauges.pop(key, None)
            gauge = known[1] if known is not None and known[0] == counter else Gauge(counter)
            self._gauges[key] = (counter, gauge)
            if len(self._gauges) > MOST_RUNS:
                self._gauges.popitem(last=False)
            return gauge

    def gate(self, model: ModelIdentity) -> Gate:
        """The gate before one summarizer, for all windows."""
        with self._lock:
            return self._gates.setdefault(model, self._make_gate())
