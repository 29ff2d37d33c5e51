"""Verification of the sealed log (L1, L3): every index, envelope, payload and chain, streaming."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

from compaction_ledger.domain.erasure import Subject
from compaction_ledger.domain.errors import DamagedLog, Erased, StoreError
from compaction_ledger.domain.events import RangeClaimed, RequestDelivered, SummaryImported
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.ports import Progress
from compaction_ledger.domain.window.events import ChunkClaimed, PinAccepted, WindowDelivered
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.cipher import PLAIN, PayloadReader
from compaction_ledger.infrastructure.event_store.envelope import (
    LEAF_PREFIX,
    key_of,
    parse,
    parse_fields,
)
from compaction_ledger.infrastructure.event_store.rows import Row
from compaction_ledger.infrastructure.event_store.sealing import blanked_fields, difference

BATCH = 100  # small enough that a batch stays in the processor's cache

Chain = tuple[int, str, str, str]
"""Of a stream's latest event: version, leaf hash, key id and subject."""
Chains = dict[str, Chain]


class Sealed(Protocol):
    """The part of a recorder that verification reads."""

    def rows(self, start: int, limit: int, stop: int | None = None) -> list[Row]: ...
    def totals(self) -> tuple[int, str, int]: ...
    def subjects(self) -> Mapping[str, Subject]: ...


def verify_seal(
    log: Sealed, progress: Progress | None = None, payloads: PayloadReader = PLAIN
) -> Iterator[Finding]:
    """Yield everything that is wrong with the seal, in the order of the index.

    Memory grows with the number of streams, not with the number of events. ``payloads`` opens those that say
    whose a stream is; the seal itself needs no key.
    """
    size, origin, events = log.totals()
    if not origin or events != size:
        yield Finding("head", f"the head says {size} events, there are {events}")
    chains: Chains = {}
    references = _References(log, payloads)
    expected = 0
    while rows := log.rows(expected, BATCH):
        yield from _verify_rows(rows, expected, origin, chains, references)
        expected = rows[-1].idx + 1
        if progress:
            progress(expected, max(size, expected))
    if expected < size:
        yield Finding("hole", f"events {expected} to {size - 1} are missing", expected)
    yield from references.check_erasures()


def _verify_rows(
    rows: Sequence[Row], expected: int, origin: str, chains: Chains, references: _References
) -> list[Finding]:
    """Check one batch: what each envelope must say is known, up to its time, so it is written and compared.

    Whatever is not exactly so is looked at again by :func:`_explain`.
    """
    findings: list[Finding] = []
    for row in rows:
        index, stream, version, topic, state, envelope, leaf = row
        chain = chains.get(stream)
        if chain is None:
            chain = _new_chain(envelope)
            findings += references.check(row, chain)
        before_version, before_leaf, key, subject = chain
        try:
            start, middle = _written(topic, key, origin)
            payload = sha256(state).hexdigest()
            head = f'{start}{payload}","previous":"{before_leaf}","recorded":'.encode()
            tail = f'{middle}{stream}","subject":"{subject}","version":{version}}}'.encode()
            wrong = (
                index != expected
                or version != before_version + 1
                or sha256(LEAF_PREFIX + envelope).digest() != leaf
                or key_of(state) != key
                or not envelope.startswith(head)
                or not envelope.endswith(tail)
                or not _is_time(envelope[len(head) : -len(tail)])
            )
        except (AttributeError, TypeError, ValueError):  # a column of another type, or no leaf
            wrong = True
        if wrong:
            findings += _explain(row, expected, origin, chain, references)
            chains[stream] = _chain_behind(row, chain)
        else:
            chains[stream] = (version, leaf.hex(), key, subject)
        expected = index + 1
    return findings


@lru_cache(maxsize=256)
def _written(topic: str, key: str, origin: str) -> tuple[str, str]:
    """An envelope up to its payload, and from behind its time up to its stream."""
    event, _, schema = topic.partition("@")
    start = f'{{"event":"{event}","format":1,"key":"{key}","origin":"{origin}","payload":"'
    return start, f',"schema":{schema},"stream":"'


def _new_chain(envelope: bytes | None) -> Chain:
    """What stands before a stream's first event; the subject is the same in all its envelopes.

    The key is not: encryption may be turned on, or a key be replaced, in the middle of a stream. Each
    envelope names its own, and its leaf covers that.
    """
    fields = parse_fields(envelope) if type(envelope) is bytes else None
    return (0, "", "", "") if fields is None else (0, "", fields[1], fields[8])


def _chain_behind(row: Row, before: Chain) -> Chain:
    """What the next event of the stream is compared with, behind one that is not as it should be."""
    version, envelope, leaf = row.version, row.envelope, row.leaf
    fields = parse_fields(envelope) if type(envelope) is bytes else None
    key, subject = before[2:] if fields is None else (fields[1], fields[8])
    return (
        version if type(version) is int else before[0] + 1,
        leaf.hex() if type(leaf) is bytes else "",
        key,
        subject,
    )


_REQUEST = "ErasureRequested@1"
_is_time = re.compile(rb"0|[1-9][0-9]{0,15}").fullmatch
"""Whether bytes are a time as it stands in an envelope."""


def _explain(
    row: Row, expected: int, origin: str, before: Chain, references: _References
) -> Iterator[Finding]:
    """Everything that is wrong with one event, in words."""
    index, stream, version, topic, state, envelope, leaf = row
    before_version, before_leaf, _, subject = before
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
    if sealed.previous != before_leaf:
        yield Finding("chain", f"does not follow the previous event of stream {stream}", index)


class _References:
    """Whether the references of the log (L3) still stand for the conversations that they were made for.

    They stand outside the seal. Who changes them makes the ledger forget, or mix up, whole conversations.
    Others may write meanwhile: a reference is stored before the first event that names it, so one that was
    not there at first is looked up again before it is missed.
    """

    def __init__(self, log: Sealed, payloads: PayloadReader) -> None:
        self._log = log
        self._payloads = payloads
        self._conversations = log.subjects()
        self._checked: set[str] = set()
        self._requests: dict[str, int] = {}

    def check(self, row: Row, chain: Chain) -> Iterator[Finding]:
        """Look at the first event of a stream, once for each reference."""
        subject = chain[3]
        if row.topic == _REQUEST:
            self._requests[subject] = row.idx
        if not subject or subject in self._checked:
            return
        named = self._conversations.get(subject)
        if named is None:
            self._conversations = self._log.subjects()
            named = self._conversations.get(subject)
        if named is None:
            self._checked.add(subject)
            yield Finding("subject", f"reference {subject} stands for no conversation", row.idx)
            return
        if named.state == "erased":  # nothing links it to a conversation any more (S3)
            self._checked.add(subject)
            return
        meant = self._conversation_of(row)
        if meant is not None:
            self._checked.add(subject)
            if meant != (named.scope, named.conversation):
                yield Finding(
                    "subject", f"reference {subject} stands for another conversation", row.idx
                )

    def was_blanked(self, row: Row) -> bool:
        """Whether nothing but the payload is missing, of an event that was erased (S3)."""
        try:
            fields = blanked_fields(row.idx, *row[1:4], *row[5:])
        except (DamagedLog, AttributeError, TypeError):
            return False
        known = self._conversations.get(fields[8])
        return known is not None and known.state == "erased"

    def check_erasures(self) -> Iterator[Finding]:
        """Whether exactly those are erased that the log says are (S3), whatever happened meanwhile."""
        for reference in self._checked | self._requests.keys():
            known = self._conversations.get(reference)
            index = self._requests.get(reference)
            if known is None:
                continue
            if known.state == "erased" and index is None:
                yield Finding(
                    "erasure", f"reference {reference} was erased, and the log has no word of it"
                )
            elif known.state != "erased" and index is not None:
                yield Finding(
                    "erasure", f"reference {reference} was erased, and is in use again", index
                )

    def _conversation_of(self, row: Row) -> tuple[str, str] | None:
        """The scope and conversation that an event names, if it can be read and names any."""
        try:
            payload = self._payloads.decrypt(row.stream, row.version, row.topic, row.payload)
            return _named_by(codec.decode(row.topic, payload))
        except (DamagedLog, Erased, StoreError, TypeError):
            return None


def _named_by(fact: Fact) -> tuple[str, str] | None:
    if isinstance(fact, RangeClaimed | SummaryImported):
        return fact.job.scope, fact.job.conversation
    if isinstance(fact, RequestDelivered):
        return fact.scope, fact.conversation
    if isinstance(fact, ChunkClaimed):
        return fact.job.window.scope, fact.job.window.conversation
    if isinstance(fact, PinAccepted | WindowDelivered):
        return fact.window.scope, fact.window.conversation
    return None
