"""The rows that one batch of facts touches: read at once, changed by the fold, written at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeVar

from compaction_ledger.domain.erasure import ErasedFact, ErasureFact
from compaction_ledger.domain.events import (
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    RangeClaimed,
    RangeCompleted,
    RangeFact,
    RequestDelivered,
    SummaryImported,
)
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.window.events import (
    ChunkClaimed,
    PinAccepted,
    WindowDelivered,
    WindowFact,
)
from compaction_ledger.projections.generations import Key, Session, Values
from compaction_ledger.projections.records import (
    RECORDS,
    AttemptRecord,
    RangeRecord,
    Record,
    SummaryRecord,
    WindowChunkRecord,
    WindowPinRecord,
    columns,
)
from compaction_ledger.projections.window_records import key_of

AnyRecord = TypeVar("AnyRecord", bound=Record)


class BatchRows:
    """The rows of one generation that a batch of facts touches. What nobody foresaw is read one by one."""

    def __init__(self, session: Session, generation: int) -> None:
        self._session = session
        self._generation = generation
        self._seen: dict[type[Record], dict[Key, Any]] = {record: {} for record in RECORDS}
        self._stored: dict[type[Record], dict[Key, bool]] = {record: {} for record in RECORDS}
        self._changed: dict[type[Record], dict[Key, Record]] = {record: {} for record in RECORDS}

    def fetch(self, entries: Sequence[Recorded]) -> None:
        """Read what a batch will ask for, one question per table."""
        touched = _touched(entries)
        self._look_up(SummaryRecord, touched.identities, [(key,) for key in touched.identities])
        ranges = touched.ranges | {
            (record.scope, record.conversation, record.from_pair)
            for record in self._seen[SummaryRecord].values()
            if record is not None
        }
        self._look_up(RangeRecord, ranges, ranges)
        self._read(AttemptRecord, [(identity,) for identity in touched.ended])
        for kind, keys in ((WindowChunkRecord, touched.chunks), (WindowPinRecord, touched.pins)):
            if keys:
                self._look_up(kind, keys, [(key,) for key in keys])

    def summary(self, identity: str) -> SummaryRecord | None:
        seen = self._seen[SummaryRecord]
        return seen[identity] if identity in seen else self._one(SummaryRecord, identity)

    def range(self, key: tuple[str, str, int]) -> RangeRecord | None:
        seen = self._seen[RangeRecord]
        return seen[key] if key in seen else self._one(RangeRecord, key)

    def attempt(self, key: tuple[str, int]) -> AttemptRecord | None:
        seen = self._seen[AttemptRecord]
        return seen[key] if key in seen else self._one(AttemptRecord, key)

    def chunk(self, identity: str) -> WindowChunkRecord | None:
        seen = self._seen[WindowChunkRecord]
        return seen[identity] if identity in seen else self._one(WindowChunkRecord, identity)

    def pin(self, key: str) -> WindowPinRecord | None:
        seen = self._seen[WindowPinRecord]
        return seen[key] if key in seen else self._one(WindowPinRecord, key)

    def put(self, record: Record) -> None:
        kind = type(record)
        key = kind.keys_of(record)
        self._seen[kind][key] = self._changed[kind][key] = record

    def write(self) -> None:
        """Store every changed row, in the order of the tables' keys."""
        for kind, changed in self._changed.items():
            if changed:
                rows = {key: changed[key] for key in sorted(changed)}
                self._session.write(kind, self._generation, rows, self._stored[kind])

    def _one(self, kind: type[AnyRecord], key: Key) -> AnyRecord | None:
        self._look_up(kind, [key], [key if kind.key > 1 else (key,)])
        record: AnyRecord | None = self._seen[kind][key]
        return record

    def _look_up(
        self, kind: type[Record], keys: Collection[Key], values: Collection[Values]
    ) -> None:
        """Read rows by their primary keys, and remember which are not there."""
        self._seen[kind].update(dict.fromkeys(keys))
        self._stored[kind].update(dict.fromkeys(keys, False))
        self._read(kind, values)

    def _read(self, kind: type[Record], keys: Collection[Values]) -> None:
        """Read rows by their primary keys, or by the first columns of these."""
        if not keys:
            return
        names = columns(kind)[: len(next(iter(keys)))]
        seen, stored = self._seen[kind], self._stored[kind]
        for row in self._session.rows_at(kind, self._generation, names, keys):
            record = kind.of(row)
            key = record.key_values()
            seen[key] = record
            stored[key] = True


class _Touched(NamedTuple):
    """What facts are about; ``ended`` are the identities of attempts that end in them and began before."""

    identities: set[str]
    ranges: set[tuple[str, str, int]]
    ended: set[str]
    chunks: set[str]
    pins: set[str]


def _touched(entries: Sequence[Recorded]) -> _Touched:
    found = _Touched(set(), set(), set(), set(), set())
    begun: set[str] = set()
    for entry in entries:
        fact = entry.fact
        if isinstance(fact, RequestDelivered | ErasedFact | ErasureFact):
            continue
        if isinstance(fact, WindowFact):
            _touch_window(found, fact)
            continue
        found.identities.add(fact.identity)
        if isinstance(fact, (RangeClaimed, SummaryImported)):
            found.ranges.add((fact.job.scope, fact.job.conversation, fact.job.from_pair))
        elif isinstance(fact, AttemptStarted):
            begun.add(fact.identity)
        elif fact.identity not in begun and _ends_an_attempt(fact):
            found.ended.add(fact.identity)
    return found


def _touch_window(found: _Touched, fact: WindowFact) -> None:
    if isinstance(fact, WindowDelivered):
        return
    if isinstance(fact, PinAccepted):
        names = (fact.pin_id, fact.supersedes)
        found.pins.update(key_of(fact.window, name) for name in names if name is not None)
        return
    found.chunks.add(fact.identity)
    if isinstance(fact, ChunkClaimed):
        found.chunks.update(fact.job.replaces)


def _ends_an_attempt(fact: RangeFact) -> bool:
    return isinstance(fact, (AttemptFailed, RangeCompleted)) or (
        isinstance(fact, ClaimReleased) and fact.reason == "outdone"
    )
