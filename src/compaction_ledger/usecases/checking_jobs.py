"""Whether the facts of each job stand in one stream, and complete it once (A2, K4), while they go by."""

from __future__ import annotations

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.events import RangeCompleted, SummaryImported
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.window.events import ChunkCompleted

_COMPLETIONS = (RangeCompleted, SummaryImported, ChunkCompleted)


class JobCheck:
    """Is told of every fact, in order. Memory grows with the number of jobs."""

    def __init__(self) -> None:
        self._streams: dict[str, str] = {}
        self._completed: set[str] = set()

    def on_fact(self, entry: Recorded) -> None:
        """Look at the next fact. Raises :class:`DamagedLog` for a summary that was replayed."""
        identity: str | None = getattr(entry.fact, "identity", None)
        if identity is None:
            return
        if self._streams.setdefault(identity, entry.stream) != entry.stream:
            raise DamagedLog(
                f"a fact of job {identity} stands outside of its stream", index=entry.index
            )
        if isinstance(entry.fact, _COMPLETIONS):
            if identity in self._completed:
                raise DamagedLog(f"job {identity} is completed twice", index=entry.index)
            self._completed.add(identity)
