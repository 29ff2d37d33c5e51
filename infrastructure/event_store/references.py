"""Verification of what stands beside the log: references, their keys, and what is erased (L3, S1, S3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from compaction_ledger.domain.erasure import ERASURE_EVENTS, Subject
from compaction_ledger.domain.errors import DamagedLog, Erased, StoreError
from compaction_ledger.domain.log import Finding
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.cipher import PayloadReader
from compaction_ledger.infrastructure.event_store.places import conversation_of
from compaction_ledger.infrastructure.event_store.rows import PlainRow, Row
from compaction_ledger.infrastructure.event_store.sealing import blanked_fields

_REQUEST = "ErasureRequested@1"
_OF_ERASURES = tuple(f"{event}@" for event in ERASURE_EVENTS)


class Subjects(Protocol):
    """Where references are looked up."""

    def subjects(self) -> Mapping[str, Subject]: ...
    def subject_of(self, reference: str) -> Subject | None: ...


class References:
    """Whether the references of the log (L3) still stand for the conversations that they were made for.

    They stand outside the seal. Who changes them makes the ledger forget, or mix up, whole conversations.
    Others may write meanwhile: a reference is stored before the first event that names it, and a key before
    the first that it encrypts; a conversation is marked as erased before a payload of it is removed. So what
    does not fit to what was there at first is looked up again.
    """

    def __init__(self, log: Subjects, payloads: PayloadReader) -> None:
        self._log = log
        self._payloads = payloads
        self._may_be_plain = payloads.may_be_plain()
        self._destroyed_at_first = {
            reference
            for reference, state in (payloads.forgotten() or {}).items()
            if state != "begun"  # then it may be that it is about to be requested
        }
        self._at_first = log.subjects()
        self._known = self._at_first
        self._first: dict[str, int] = {}  # by reference: its first event
        self._checked: set[str] = {""}
        self._sound: dict[
            str, str
        ] = {}  # by reference: the key of its last stream, where all was well
        self._encrypted: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._requests: dict[str, int] = {}

    def check_stream(self, plain: PlainRow, subject: str, key: str) -> Sequence[Finding]:
        """Look at the first event of a stream; ``key`` is the one that it names."""
        index, _, _, topic, *_ = plain
        if topic == _REQUEST:
            self._requests[subject] = index
        elif self._sound.get(subject) == key:
            return ()
        self._first.setdefault(subject, index)
        findings = [*self.check_key(plain, subject, key)]
        if subject not in self._checked:
            findings += self._check(Row._make(plain), subject)
        if not findings and subject in self._checked:
            self._sound[subject] = key
        return findings

    def check_key(self, plain: PlainRow, subject: str, key: str) -> Iterator[Finding]:
        """Look at an event that names another key than the one before it in its stream (S1)."""
        index, _, _, topic, *_ = plain
        if type(topic) is str and topic.startswith(_OF_ERASURES):
            return
        if key:
            self._encrypted.add(subject)
            if not self._has_key(subject, key) and (subject, key) not in self._told:
                self._told.add((subject, key))
                yield Finding("key", f"reference {subject} does not stand for the key {key}", index)
        elif not self._is_plain_allowed():
            yield Finding("plain", "it is not encrypted, as all of this log is", index)
        elif subject in self._encrypted:
            yield Finding("plain", "it is not encrypted, as this conversation is before it", index)

    def was_blanked(self, row: Row) -> bool:
        """Whether nothing but the payload is missing, of an event that was erased (S3)."""
        try:
            fields = blanked_fields(row.idx, *row[1:4], *row[5:])
        except (DamagedLog, AttributeError, TypeError):
            return False
        known = self._known.get(fields[8])
        if known is None or known.state != "erased":  # it may be by now
            known = self._log.subject_of(fields[8])
        return known is not None and known.state == "erased"

    def _is_plain_allowed(self) -> bool:
        """Whether payloads may be plain. Whoever stores the first one meanwhile says so before."""
        if not self._may_be_plain:
            self._may_be_plain = self._payloads.may_be_plain()
        return self._may_be_plain

    def check_erasures(self) -> Iterator[Finding]:
        """Whether exactly those are erased that the log says are, here and by the keys (S3).

        A request and its mark are stored at once: so what was marked at first must have been come across by
        now, and what was come across must be marked by now. The keys know of it before the log does, and a
        key is destroyed after that.
        """
        marked = {one.reference for one in self._at_first.values() if one.state == "erased"}
        for reference in sorted(marked - self._requests.keys()):
            yield self._made_up(reference, "is marked as erased")
        for reference in sorted(self._destroyed_at_first - marked - self._requests.keys()):
            yield self._made_up(reference, "is erased by the keys")
        now = self._log.subjects()
        forgotten = self._payloads.forgotten()
        for reference, index in self._requests.items():
            subject = now.get(reference)
            if subject is not None and subject.state != "erased":
                yield Finding(
                    "erasure", f"reference {reference} was erased, and is in use again", index
                )
            if forgotten is not None and reference not in forgotten:
                yield Finding(
                    "erasure",
                    f"of reference {reference} an erasure was requested, of which the keys do not know",
                    index,
                )

    def _made_up(self, reference: str, what: str) -> Finding:
        return Finding(
            "erasure",
            f"reference {reference} {what}, and the log has no request of it",
            self._first.get(reference),
        )

    def _check(self, row: Row, subject: str) -> Iterator[Finding]:
        """Look whether a reference stands for the conversation that an event names."""
        named = self._subject(subject)
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

    def _has_key(self, subject: str, key: str) -> bool:
        """Whether the reference stands for this key; one that is not known at all is said of elsewhere."""
        known = self._known.get(subject)
        if known is None or known.key == key:
            return True
        self._known = self._log.subjects()
        known = self._known.get(subject)
        return known is None or known.key == key

    def _subject(self, subject: str) -> Subject | None:
        if subject not in self._known:
            self._known = self._log.subjects()
        return self._known.get(subject)

    def _conversation_of(self, row: Row) -> tuple[str, str] | None:
        """The scope and conversation that an event names, if it can be read and names any."""
        try:
            payload = self._payloads.decrypt(row.stream, row.version, row.topic, row.payload)
            return conversation_of(codec.decode(row.topic, payload))
        except (DamagedLog, Erased, StoreError, TypeError):
            return None
