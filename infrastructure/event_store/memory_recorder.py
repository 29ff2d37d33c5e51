"""The sealed recorder in memory, for users' own tests: ``eventsourcing``'s recorder with leaves."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from eventsourcing.persistence import StoredEvent
from eventsourcing.popo import POPOApplicationRecorder

from compaction_ledger.domain.erasure import Subject
from compaction_ledger.infrastructure.event_store.rows import PlainRow, Row
from compaction_ledger.infrastructure.event_store.sealing import (
    change_by,
    check_not_erased,
    check_time,
    is_plain_of,
    keys_named,
    seal,
    stream_hex,
)


class SealedMemoryRecorder(POPOApplicationRecorder):
    """Keeps events with their leaves in lists, by dense index."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__()
        self.clock = clock
        self._origin = f"compaction-ledger/{uuid.uuid4().hex}"
        self._leaves: list[tuple[bytes, bytes]] = []
        self._last_leaf: dict[str, str] = {}
        self._subjects: dict[str, Subject] = {}
        self._references: dict[tuple[str, str], str] = {}

    def _update_table(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        recorded, subject = self.clock(), kwargs.get("subject", "")
        known = self._subjects.get(subject)
        check_not_erased("" if known is None else known.state, stored_events)
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
        ids = super()._update_table(stored_events)
        if known is not None and known.is_named:
            self._note_erasure(known, stored_events)
        return ids

    def _note_erasure(self, known: Subject, events: Sequence[StoredEvent]) -> None:
        change = change_by(events)
        if change is not None:
            self._subjects[known.reference] = known._replace(state="erased")
        if change == "completed":
            self._references.pop((known.scope, known.conversation), None)
            self._subjects[known.reference] = Subject(
                known.reference, known.key, "erased", "", known.reference
            )

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

    def subject(
        self, scope: str, conversation: str, new_reference: str, new_key: str = ""
    ) -> Subject:
        """The subject of a conversation; what it has not yet of these two is kept."""
        with self._database_lock:
            reference = self._references.setdefault((scope, conversation), new_reference)
            known = self._subjects.setdefault(
                reference, Subject(reference, new_key, "live", scope, conversation)
            )
            if not known.key and known.state == "live":
                known = self._subjects[reference] = known._replace(key=new_key)
            return known

    def find_subject(self, scope: str, conversation: str) -> Subject | None:
        """The subject of a conversation, if it has one."""
        with self._database_lock:
            return self._subjects.get(self._references.get((scope, conversation), ""))

    def subject_of(self, reference: str) -> Subject | None:
        """What a reference stands for."""
        with self._database_lock:
            return self._subjects.get(reference)

    def erased_references(self) -> frozenset[str]:
        """The references of what is erased."""
        with self._database_lock:
            return frozenset(
                one.reference for one in self._subjects.values() if one.state == "erased"
            )

    def subjects(self) -> dict[str, Subject]:
        """Every reference, and what it stands for."""
        with self._database_lock:
            return dict(self._subjects)

    def keys_of(self, reference: str) -> set[str]:
        """The ids of the data keys that a subject's events name."""
        with self._database_lock:
            return keys_named((envelope for envelope, _ in self._leaves), reference)

    def blank(self, reference: str) -> int:
        """Remove the payloads of an erased subject that are not encrypted; how many."""
        with self._database_lock:
            found = [
                index
                for index, (envelope, _) in enumerate(self._leaves)
                if is_plain_of(envelope, reference) and self._stored_events[index].state
            ]
            for index in found:
                event = replace(self._stored_events[index], state=b"")
                self._stored_events[index] = event
            return len(found)

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
