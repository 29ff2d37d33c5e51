"""The sealed recorder in memory, for users' own tests: ``eventsourcing``'s recorder with leaves."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from eventsourcing.persistence import StoredEvent
from eventsourcing.popo import POPOApplicationRecorder

from compaction_ledger.infrastructure.event_store.rows import PlainRow, Row, Subject
from compaction_ledger.infrastructure.event_store.sealing import check_time, seal, stream_hex


class SealedMemoryRecorder(POPOApplicationRecorder):
    """Keeps events with their leaves in lists, by dense index."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__()
        self.clock = clock
        self._origin = f"compaction-ledger/{uuid.uuid4().hex}"
        self._leaves: list[tuple[bytes, bytes]] = []
        self._last_leaf: dict[str, str] = {}
        self._subjects: dict[tuple[str, str], str] = {}

    def _update_table(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        recorded, subject = self.clock(), kwargs.get("subject", "")
        check_time(recorded, kwargs.get("within"))
        leaves: list[tuple[bytes, bytes]] = []
        last: dict[str, str] = {}
        for event in stored_events:
            stream = stream_hex(event.originator_id)
            previous = last.get(stream) or self._last_leaf.get(stream, "")
            envelope, leaf = seal(event, self._origin, subject, previous, recorded)
            leaves.append((envelope, leaf))
            last[stream] = leaf.hex()
        self._leaves += leaves  # only now: nothing is kept of what cannot be sealed as a whole
        self._last_leaf |= last
        return super()._update_table(stored_events)

    def rows(self, start: int, limit: int, stop: int | None = None) -> list[Row]:
        """At most ``limit`` rows from index ``start``, below ``stop``, in order."""
        with self._database_lock:
            end = min(len(self._stored_events), start + limit, *([] if stop is None else [stop]))
            return [self._row(index) for index in range(start, end)]

    def plain_rows(self, start: int, limit: int) -> Sequence[PlainRow]:
        """At most ``limit`` rows from index ``start``, in order."""
        return self.rows(start, limit)

    def rows_before(self, events: Sequence[tuple[str, int]]) -> Sequence[PlainRow]:
        """The rows of these streams and versions, in any order."""
        wanted = set(events)
        with self._database_lock:
            rows = map(self._row, range(len(self._stored_events)))
            return [row for row in rows if (row.stream, row.version) in wanted]

    def rows_at(self, indices: Sequence[int]) -> list[Row]:
        """The rows at these indices; those that are missing are left out."""
        with self._database_lock:
            return [self._row(index) for index in indices if 0 <= index < len(self._stored_events)]

    def rows_of(self, stream: str) -> list[Row]:
        """All rows of one stream, in its order."""
        with self._database_lock:
            rows = map(self._row, range(len(self._stored_events)))
            return [row for row in rows if row.stream == stream]

    def head(self) -> tuple[int, str]:
        """The log's size and origin."""
        with self._database_lock:
            return len(self._stored_events), self._origin

    def totals(self) -> tuple[int, str, int]:
        """The log's size and origin, and how many events are stored."""
        with self._database_lock:
            return (*self.head(), len(self._leaves))

    def subject(self, scope: str, conversation: str, new_reference: str) -> str:
        """The reference of a conversation; ``new_reference`` is kept for one that has none."""
        with self._database_lock:
            return self._subjects.setdefault((scope, conversation), new_reference)

    def find_subject(self, scope: str, conversation: str) -> str | None:
        """The reference of a conversation, if it has one."""
        with self._database_lock:
            return self._subjects.get((scope, conversation))

    def subjects(self) -> dict[str, Subject]:
        """Every reference, and what it stands for."""
        with self._database_lock:
            named = self._subjects.items()
            return {reference: Subject(*conversation, "live") for conversation, reference in named}

    def _row(self, index: int) -> Row:
        event = self._stored_events[index]
        stream = stream_hex(event.originator_id)
        return Row(
            index,
            stream,
            event.originator_version,
            event.topic,
            event.state,
            *self._leaves[index],
        )
