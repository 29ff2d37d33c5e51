"""Verification of the sealed log (L1, L3): every index, envelope, payload and chain, streaming."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Protocol

from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.ports import Progress
from compaction_ledger.infrastructure.event_store.envelope import (
    LEAF_PREFIX,
    Envelope,
    parse,
    parse_fields,
)
from compaction_ledger.infrastructure.event_store.sealing import difference

BATCH = 100  # small enough that a batch stays in the processor's cache

Row = tuple[int, str, int, str, bytes, bytes, bytes]
Chain = tuple[int, str, str, str]
"""Of a stream's latest event: version, leaf hash, key id and subject."""
Chains = dict[str, Chain]

_ZERO = ord("0")


class Sealed(Protocol):
    """The part of a recorder that verification reads."""

    def rows(self, start: int, limit: int, stop: int | None = None) -> list[Row]: ...
    def totals(self) -> tuple[int, str, int, int]: ...


def verify_seal(log: Sealed, progress: Progress | None = None) -> Iterator[Finding]:
    """Yield everything that is wrong with the seal, in the order of the index.

    Memory grows with the number of streams, not with the number of events.
    """
    size, origin, events, leaves = log.totals()
    if not events == leaves == size:
        yield Finding(
            "head", f"the head says {size} events; there are {events} events and {leaves} leaves"
        )
    chains: Chains = {}
    expected = 0
    while rows := log.rows(expected, BATCH):
        yield from _verify_rows(rows, expected, origin, chains)
        expected = rows[-1][0] + 1
        if progress:
            progress(expected, max(size, expected))
    if expected < size:
        yield Finding("hole", f"events {expected} to {size - 1} are missing", expected)


def _verify_rows(rows: Sequence[Row], expected: int, origin: str, chains: Chains) -> list[Finding]:
    """Check one batch: what each envelope must say is known, up to its time, so it is written and compared.

    Whatever is not exactly so is looked at again by :func:`_explain`.
    """
    findings: list[Finding] = []
    for row in rows:
        index, stream, version, topic, state, envelope, leaf = row
        chain = chains.get(stream) or _new_chain(envelope)
        before_version, before_leaf, key, subject = chain
        event, _, schema = topic.partition("@")
        head = (
            f'{{"event":"{event}","format":1,"key":"{key}","origin":"{origin}",'
            f'"payload":"{sha256(state).hexdigest()}","previous":"{before_leaf}","recorded":'
        ).encode()
        tail = f',"schema":{schema},"stream":"{stream}","subject":"{subject}","version":{version}}}'.encode()
        if (
            index != expected
            or version != before_version + 1
            or not envelope
            or sha256(LEAF_PREFIX + envelope).digest() != leaf
            or not envelope.startswith(head)
            or not envelope.endswith(tail)
            or not _is_time(envelope[len(head) : -len(tail)])
        ):
            findings += _explain(row, expected, origin, before_version, before_leaf)
        chains[stream] = (version, leaf.hex() if leaf else "", key, subject)
        expected = index + 1
    return findings


def _new_chain(envelope: bytes | None) -> Chain:
    """What stands before a stream's first event; key and subject are the same in all its envelopes."""
    fields = parse_fields(envelope) if envelope else None
    return (0, "", "", "") if fields is None else (0, "", fields[1], fields[8])


def _is_time(digits: bytes) -> bool:
    """Whether these bytes are a canonical integer of at most sixteen digits."""
    return digits.isdigit() and len(digits) <= 16 and (digits[0] != _ZERO or len(digits) == 1)


def _explain(
    row: Row, expected: int, origin: str, before_version: int, before_leaf: str
) -> Iterator[Finding]:
    """Everything that is wrong with one event, in words."""
    index, stream, version, topic, state, envelope, leaf = row
    if index != expected:
        yield Finding("hole", f"events {expected} to {index - 1} are missing", expected)
    if not envelope or not leaf:
        yield Finding("leaf", "the event has no leaf", index)
        return
    wrong = difference(stream, version, topic, state, envelope, leaf)
    if wrong is not None:
        yield Finding("seal", wrong, index)
    sealed = parse(envelope)
    if sealed is None:
        return
    if sealed.origin != origin:
        yield Finding("origin", f"sealed for log {sealed.origin}, this is {origin}", index)
    if version != before_version + 1:
        yield Finding(
            "stream", f"version {version} follows {before_version} in stream {stream}", index
        )
    if sealed.previous != before_leaf:
        yield Finding("chain", f"does not follow the previous event of stream {stream}", index)
    if (
        wrong is None
        and index == expected
        and _is_alike(sealed, origin, version, before_version, before_leaf)
    ):
        yield Finding("subject", f"key or subject are not those of stream {stream}", index)


def _is_alike(
    sealed: Envelope, origin: str, version: int, before_version: int, before_leaf: str
) -> bool:
    """Whether everything else agrees, so that only the key or the subject can be what does not."""
    return (sealed.origin, version, sealed.previous) == (origin, before_version + 1, before_leaf)
