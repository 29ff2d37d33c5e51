"""Reading a sealed table of events in SQL: what is the same on every database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from eventsourcing.persistence import Notification, StoredEvent

from compaction_ledger.infrastructure.event_store.rows import PlainRow, Row
from compaction_ledger.infrastructure.event_store.sealing import sealed_fields, stream_hex

_CHUNK = 500
_EVENTS = 100
_ONE_EVENT = "(originator_id = ? AND originator_version = ?)"

T = TypeVar("T")


class SealedRows:
    """The questions that ``eventsourcing`` and the ledger ask of a table of sealed events."""

    @abstractmethod
    def _select_plain(
        self, clause: str, parameters: Sequence[str | int] = ()
    ) -> Sequence[PlainRow]:
        """Rows of the table of events; ``clause`` follows its name, with ``?`` for each parameter."""

    def _select(self, clause: str, parameters: Sequence[str | int] = ()) -> list[Row]:
        """The same, as :class:`Row`."""
        return list(map(Row._make, self._select_plain(clause, parameters)))

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """The events of a stream, each checked against its seal. Raises :class:`DamagedLog`."""
        where = ["originator_id = ?"]
        if gt is not None:
            where.append(f"originator_version > {gt:d}")
        if lte is not None:
            where.append(f"originator_version <= {lte:d}")
        order = f"ORDER BY originator_version {'DESC' if desc else 'ASC'}"
        rest = "" if limit is None else f" LIMIT {limit:d}"
        rows = self._select(
            f"WHERE {' AND '.join(where)} {order}{rest}", [stream_hex(originator_id)]
        )
        return list(map(checked_event, rows))

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events in the order of the index, each checked against its seal; ids are the index plus one."""
        first = 0 if start is None else start - 1 if inclusive_of_start else start
        rows = self.rows(first, limit, stop, topics)
        return [
            Notification(e.originator_id, e.originator_version, e.topic, e.state, id=row.idx + 1)
            for row, e in zip(rows, map(checked_event, rows), strict=True)
        ]

    def rows(
        self, start: int, limit: int, stop: int | None = None, topics: Sequence[str] = ()
    ) -> list[Row]:
        """At most ``limit`` rows from index ``start``, below ``stop``, in order, unchecked."""
        where = [f"idx >= {start:d}"]
        if stop is not None:
            where.append(f"idx < {stop:d}")
        if topics:
            where.append(f"topic IN ({','.join('?' * len(topics))})")
        return self._select(
            f"WHERE {' AND '.join(where)} ORDER BY idx LIMIT {limit:d}", list(topics)
        )

    def plain_rows(self, start: int, limit: int) -> Sequence[PlainRow]:
        """At most ``limit`` rows from index ``start``, in order, unchecked, as the database gives them."""
        return self._select_plain(f"WHERE idx >= {start:d} ORDER BY idx LIMIT {limit:d}")

    def rows_before(self, events: Sequence[tuple[str, int]]) -> Sequence[PlainRow]:
        """The rows of these streams and versions, in any order, unchecked."""
        rows: list[PlainRow] = []
        for chunk in _chunks(events, _EVENTS):  # as a list of pairs, SQLite would not use its index
            rows += self._select_plain(
                f"WHERE {' OR '.join([_ONE_EVENT] * len(chunk))}",
                [value for event in chunk for value in event],
            )
        return rows

    def rows_at(self, indices: Sequence[int]) -> list[Row]:
        """The rows at these indices, unchecked, in any order; those that are missing are left out."""
        rows: list[Row] = []
        for chunk in _chunks(indices, _CHUNK):
            rows += self._select(f"WHERE idx IN ({','.join('?' * len(chunk))})", chunk)
        return rows

    def rows_of(self, stream: str) -> list[Row]:
        """All rows of one stream, in its order, unchecked."""
        return self._select("WHERE originator_id = ? ORDER BY originator_version", [stream])


def checked_event(row: Row) -> StoredEvent:
    """The stored event of a row whose seal holds. Raises :class:`DamagedLog`."""
    index, stream, version, topic, state, envelope, leaf = row
    sealed_fields(index, stream, version, topic, state, envelope, leaf)
    return StoredEvent(UUID(stream), version, topic, state)


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
