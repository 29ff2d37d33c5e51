"""Verification of the sealed log (L1, L3): every index, envelope, payload and chain, streaming."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Protocol

from compaction_ledger.domain.erasure import Subject
from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.ports import OnLeaves, Progress
from compaction_ledger.infrastructure.event_store.chains import Chain, Chains, Events
from compaction_ledger.infrastructure.event_store.cipher import PLAIN, PayloadReader
from compaction_ledger.infrastructure.event_store.envelope import (
    ENCRYPTED,
    LEAF_PREFIX,
    leaf_hash,
    parse,
)
from compaction_ledger.infrastructure.event_store.references import References
from compaction_ledger.infrastructure.event_store.rows import PlainRow, Row
from compaction_ledger.infrastructure.event_store.sealing import difference

BATCH = 256  # small enough that a batch stays in the processor's cache
_TOPICS = 256
_DIGITS = 16  # of a time in microseconds, from 2001 to 2286
_BETWEEN = len('","previous":"') + 64 + len('","recorded":')


class Sealed(Events, Protocol):
    """The part of a recorder that verification reads."""

    def plain_rows(self, start: int, limit: int) -> Sequence[PlainRow]: ...
    def totals(self) -> tuple[int, str, int]: ...
    def subjects(self) -> Mapping[str, Subject]: ...
    def subject_of(self, reference: str) -> Subject | None: ...


def verify_seal(
    log: Sealed,
    progress: Progress | None = None,
    on_leaves: OnLeaves | None = None,
    payloads: PayloadReader = PLAIN,
) -> Iterator[Finding]:
    """Yield everything that is wrong with the seal, in the order of the index.

    Memory grows with the number of conversations, not with that of events or streams. ``on_leaves`` is
    told of the leaf hashes meanwhile, so that the log is read once for whatever is made of them.
    ``payloads`` opens those that say whose a stream is; the seal itself needs no key.
    """
    size, origin, events = log.totals()
    if not origin or events != size:
        yield Finding("head", f"the head says {size} events, there are {events}")
    batches = _Batches(log, origin, References(log, payloads))
    expected = 0
    while rows := log.plain_rows(expected, BATCH):
        findings = batches.check(rows, expected)
        yield from findings
        if on_leaves is not None:
            on_leaves(rows[0][0], _leaves(rows, checked=not findings))
        expected = rows[-1][0] + 1
        if progress:
            progress(expected, max(size, expected))
    if expected < size:
        yield Finding("hole", f"events {expected} to {size - 1} are missing", expected)
    yield from batches.references.check_erasures()


def _leaves(rows: Sequence[PlainRow], *, checked: bool) -> list[bytes]:
    """The leaf hashes: as stored where that is known to be right, else made anew from the envelopes."""
    if checked:
        return [row[6] for row in rows]
    return [leaf_hash(row[5] if type(row[5]) is bytes else b"") for row in rows]


def _hashed(rows: Sequence[PlainRow]) -> tuple[Sequence[str], Sequence[str]]:
    """The envelopes as text, and the payloads' hashes, of a batch whose leaves are those of its envelopes.

    Where one is not, or a column is of another type, they are empty: then each event is looked at by itself.
    """
    try:
        leaves = [sha256(LEAF_PREFIX + row[5]).digest() for row in rows]
        if leaves == [row[6] for row in rows]:
            texts = [row[5].decode("ascii") for row in rows]
            return texts, [sha256(row[4]).hexdigest() for row in rows]
    except (AttributeError, TypeError, ValueError):
        pass
    return [""] * len(rows), [""] * len(rows)


class _Batches:
    """Checks batch by batch.

    What each envelope must say is known, up to its time: so it is written and compared. Whatever is not
    exactly so is looked at again by :func:`_explain`.
    """

    def __init__(self, log: Sealed, origin: str, references: References) -> None:
        self._chains = Chains(log, origin)
        self._origin = origin
        self.references = references
        self._written: dict[str, tuple[str, str, int]] = {}

    def check(self, rows: Sequence[PlainRow], expected: int) -> list[Finding]:
        """Everything that is wrong with one batch, which should begin at the index ``expected``."""
        findings: list[Finding] = []
        chains, written = self._chains, self._written
        newest = chains.newest
        for row, text, payload in zip(rows, *_hashed(rows), strict=True):
            index, stream, version, topic, state, envelope, leaf = row
            chain = newest.get(stream)
            if chain is None:
                chain = chains.find(row, rows)
                if chain is None:
                    chain = chains.new(stream, envelope)
                    key = chain[2].partition('"')[0]
                    findings += self.references.check_stream(row, chain[4], key)
            before_version, before, keyed, ending, subject = chain
            start, schema, place = written.get(topic) or self._write(topic)
            place += len(keyed) + len(before)
            time = text[place : place + _DIGITS]
            if (
                text
                == f'{start}{keyed}{payload}","previous":"{before}'
                f'","recorded":{time}{schema}{ending}{version}}}'
                and index == expected
                and keyed.startswith(state[1:17].hex() if state[:1] == ENCRYPTED else '"')
                and version == before_version + 1
                and time.isdigit()
                and time >= "1"
            ):
                newest[stream] = (version, leaf.hex(), keyed, ending, subject)
            else:
                findings += _explain(Row._make(row), expected, self._origin, chain, self.references)
                newest[stream] = chains.behind(row, chain)
            expected = index + 1
        chains.trim()
        return findings

    def _write(self, topic: str) -> tuple[str, str, int]:
        """An envelope up to its key, from behind its time up to its stream, and where the time stands."""
        if type(topic) is not str:  # a column of another type
            return "", "", 0
        event, _, schema = topic.partition("@")
        if len(self._written) >= _TOPICS:  # whoever can write to the store chooses the names
            self._written.clear()
        start = f'{{"event":"{event}","format":1,"key":"'
        made = (start, f',"schema":{schema},"stream":"', len(start) + _BETWEEN)
        self._written[topic] = made
        return made


def _explain(
    row: Row, expected: int, origin: str, before: Chain, references: References
) -> Iterator[Finding]:
    """Everything that is wrong with one event, in words."""
    index, stream, version, topic, state, envelope, leaf = row
    before_version, before_leaf, keyed, _, subject = before
    if index != expected:
        yield Finding("hole", f"events {expected} to {index - 1} are missing", expected)
    if not envelope or not leaf:
        yield Finding("leaf", "the event has no leaf", index)
        return
    wrong = difference(stream, version, topic, state, envelope, leaf)
    if wrong is not None and not (state == b"" and references.was_blanked(row)):
        yield Finding("seal", wrong, index)
    sealed = parse(envelope) if type(envelope) is bytes else None
    if sealed is None:
        return
    if sealed.origin != origin:
        yield Finding("origin", f"sealed for log {sealed.origin}, this is {origin}", index)
    if version != before_version + 1:
        yield Finding(
            "stream", f"version {version} follows {before_version} in stream {stream}", index
        )
    if sealed.subject != subject:
        yield Finding("stream", f"another subject than before in stream {stream}", index)
    if not keyed.startswith(f'{sealed.key}"'):
        yield from references.check_key(row, sealed.subject, sealed.key)
    if sealed.previous != before_leaf:
        yield Finding("chain", f"does not follow the previous event of stream {stream}", index)
