"""The rows as the fold sees them, wherever they are kept."""

from __future__ import annotations

from typing import Protocol

from compaction_ledger.projections.records import (
    AttemptRecord,
    RangeRecord,
    Record,
    SummaryRecord,
    WindowChunkRecord,
    WindowPinRecord,
)


class Rows(Protocol):
    """The rows as they are so far. What is got may be changed when it is put again."""

    def summary(self, identity: str) -> SummaryRecord | None: ...
    def range(self, key: tuple[str, str, int]) -> RangeRecord | None: ...
    def attempt(self, key: tuple[str, int]) -> AttemptRecord | None: ...
    def chunk(self, identity: str) -> WindowChunkRecord | None: ...
    def pin(self, key: str) -> WindowPinRecord | None: ...
    def put(self, record: Record) -> None: ...
