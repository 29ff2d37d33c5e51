"""What an export reads of the log (K5): events with their openings, and the tree."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

from compaction_ledger.domain.bundles import SealedEvent
from compaction_ledger.domain.erasure import ERASURE_EVENTS, Subject
from compaction_ledger.domain.errors import DamagedLog, Erased
from compaction_ledger.domain.proof.tiles import TreeReader
from compaction_ledger.infrastructure.event_store.cipher import PayloadCipher, PayloadReader
from compaction_ledger.infrastructure.event_store.envelope import Envelope, leaf_hash, parse
from compaction_ledger.infrastructure.event_store.rows import Row
from compaction_ledger.infrastructure.event_store.sealing import difference

BATCH = 500


class Sealed(Protocol):
    """The part of a recorder that an export reads."""

    def rows(self, start: int, limit: int, stop: int | None = None) -> list[Row]: ...
    def rows_at(self, indices: Sequence[int]) -> list[Row]: ...
    def head(self) -> tuple[int, str]: ...
    def find_subject(self, scope: str, conversation: str) -> Subject | None: ...
    def subject_of(self, reference: str) -> Subject | None: ...


class ExportedLog:
    """The sealed log as an export reads it. Every event is checked against its seal."""

    def __init__(self, sealed: Sealed, tree: TreeReader, cipher: PayloadCipher) -> None:
        self._sealed = sealed
        self._cipher = cipher
        self.head = sealed.head
        self.leaf_hashes = tree.leaf_hashes
        self.nodes = tree.nodes

    def subject_of(self, scope: str, conversation: str) -> str | None:
        """The reference that stands for a conversation, if it has one."""
        known = self._sealed.find_subject(scope, conversation)
        return None if known is None else known.reference

    def conversation_of(self, subject: str) -> tuple[str, str] | None:
        """The conversation that a reference stands for, if that is still known."""
        known = self._sealed.subject_of(subject)
        return (known.scope, known.conversation) if known is not None and known.is_named else None

    def indices_of(self, subject: str, stop: int) -> Sequence[int]:
        """Where the events of a subject are, by their envelopes: the whole log is read."""
        found, start, mark = array("q"), 0, f'"subject":"{subject}"'.encode()
        while start < stop:
            rows = self._rows(start, stop)
            found.extend(row.idx for row in rows if mark in row.envelope)
            start += len(rows)
        return found

    def events(self, start: int, stop: int, *, openings: bool) -> Sequence[SealedEvent]:
        """Some events from ``start`` on. Raises :class:`DamagedLog`."""
        reader = self._cipher.reader()
        return [self._event(row, reader, openings=openings) for row in self._rows(start, stop)]

    def events_at(self, indices: Sequence[int], *, openings: bool) -> Sequence[SealedEvent]:
        """The events at these indices. Raises :class:`DamagedLog`."""
        reader = self._cipher.reader()
        rows = {row.idx: row for row in self._sealed.rows_at(indices)}
        for index in indices:
            if index not in rows:
                raise DamagedLog("an event is missing here", index=index)
        return [self._event(rows[index], reader, openings=openings) for index in indices]

    def _rows(self, start: int, stop: int) -> list[Row]:
        """A batch of rows from ``start``, one at least and without a gap. Raises :class:`DamagedLog`."""
        rows = self._sealed.rows(start, BATCH, stop)
        for expected, row in enumerate(rows, start):
            if row.idx != expected:
                raise DamagedLog("an event is missing here", index=expected)
            if type(row.envelope) is not bytes:
                raise DamagedLog("the event has no envelope", index=expected)
        if not rows:
            raise DamagedLog("an event is missing here", index=start)
        return rows

    def _event(self, row: Row, reader: PayloadReader, *, openings: bool) -> SealedEvent:
        envelope, payload, opening = _parsed(row), row.payload, None
        erased = envelope.event not in ERASURE_EVENTS and self._is_erased(
            row, envelope.subject, reader
        )
        if erased and not envelope.key:
            payload = b""  # whether it was removed already or is about to be
        else:
            _check(row)
        if openings and not erased:
            try:
                opening = _opening(row, reader)
            except Erased:  # meanwhile: its key is gone since it was looked up what is erased
                erased = True
        told = (envelope.event, envelope.subject, erased)
        return SealedEvent(row.idx, row.envelope, payload, opening, *told)

    def _is_erased(self, row: Row, subject: str, reader: PayloadReader) -> bool:
        if reader.is_erased(subject):
            return True
        known = None if row.payload else self._sealed.subject_of(subject)
        return known is not None and known.state == "erased"


def _opening(row: Row, reader: PayloadReader) -> bytes | None:
    try:
        return reader.opening(row.stream, row.version, row.topic, row.payload)
    except DamagedLog as error:
        raise DamagedLog(str(error), index=row.idx) from error


def _parsed(row: Row) -> Envelope:
    envelope = parse(row.envelope) if type(row.envelope) is bytes else None
    if envelope is None or leaf_hash(row.envelope) != row.leaf:
        raise DamagedLog("the envelope is not the one that was sealed", index=row.idx)
    return envelope


def _check(row: Row) -> None:
    wrong = difference(row.stream, row.version, row.topic, row.payload, row.envelope, row.leaf)
    if wrong is not None:
        raise DamagedLog(wrong, index=row.idx)
