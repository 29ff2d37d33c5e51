"""Verification of the sealed log (L1, L3): every index, envelope, payload and chain, streaming."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.ports import Progress
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.envelope import LEAF_PREFIX, parse_fields
from compaction_ledger.infrastructure.event_store.sealing import difference

BATCH = 1_000

Row = tuple[int, str, int, str, bytes, bytes, bytes]


class Sealed(Protocol):
    """The part of a recorder that verification reads."""

    def rows(self, start: int, limit: int, stop: int | None = None) -> list[Row]: ...
    def head(self) -> tuple[int, str]: ...
    def counts(self) -> tuple[int, int]: ...


def verify_seal(log: Sealed, progress: Progress | None = None, *, payloads: bool = True) -> Iterator[Finding]:
    """Yield everything that is wrong, in the order of the index.

    ``payloads`` also reads each payload by its stored name (A10). Memory grows with the number of
    streams, not with the number of events.
    """
    size, origin = log.head()
    events, leaves = log.counts()
    if not events == leaves == size:
        yield Finding("head", f"the head says {size} events; there are {events} events and {leaves} leaves")
    last: dict[str, tuple[int, bytes]] = {}
    expected = 0
    while rows := log.rows(expected, BATCH):
        for row in rows:
            if row[0] != expected:
                yield Finding("hole", f"events {expected} to {row[0] - 1} are missing", expected)
            expected = row[0] + 1
            yield from _verify_row(row, origin.encode(), last)
        if payloads:
            yield from _verify_payloads(rows)
        if progress:
            progress(expected, max(size, expected))
    if expected < size:
        yield Finding("hole", f"events {expected} to {size - 1} are missing", expected)


def _verify_row(row: Row, origin: bytes, last: dict[str, tuple[int, bytes]]) -> Iterator[Finding]:
    index, stream, version, topic, state, envelope, leaf = row
    if not envelope or not leaf:
        yield Finding("leaf", "the event has no leaf", index)
        return
    fields = parse_fields(envelope)
    hashed = hashlib.sha256(LEAF_PREFIX + envelope).digest()
    if (
        fields is None
        or hashed != leaf
        or hashlib.sha256(state).hexdigest().encode() != fields[3]
        or stream.encode() != fields[7]
        or b"%d" % version != fields[9]
        or topic.encode() != fields[0] + b"@" + fields[6]
    ):
        yield Finding("seal", difference(stream, version, topic, state, envelope, leaf), index)
        last[stream] = (version, hashed)
        return
    if fields[2] != origin:
        yield Finding("origin", f"sealed for log {fields[2].decode()}, this is {origin.decode()}", index)
    before_version, before_hash = last.get(stream, (0, b""))
    if version != before_version + 1:
        yield Finding("stream", f"version {version} follows {before_version} in stream {stream}", index)
    if fields[4] != before_hash.hex().encode():
        yield Finding("chain", f"does not follow the previous event of stream {stream}", index)
    last[stream] = (version, hashed)


def _verify_payloads(rows: Sequence[Row]) -> Iterator[Finding]:
    for index, _, _, topic, state, _, _ in rows:
        try:
            codec.decode(topic, state, index)
        except DamagedLog as error:
            yield Finding(error.code, str(error), index)
