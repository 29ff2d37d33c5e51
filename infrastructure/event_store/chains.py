"""What each stream's next event must follow (L3), for verification: of the streams seen last, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Protocol

from compaction_ledger.infrastructure.event_store.envelope import is_key, is_subject, parse_fields
from compaction_ledger.infrastructure.event_store.rows import PlainRow

KEPT = 4_096
"""So many streams are kept in memory, and once more as many."""

_HASHES = 1 << 26  # as bits, 8 MiB
_MASK = _HASHES - 1
_MAX_VERSION = 1 << 53

Chain = tuple[int, str, str, str, str]
"""Of a stream's latest event: its version, its leaf hash in hexadecimal, and at the end the subject. Between
them, as they stand in envelopes: the key with what follows it; all from the stream's id to the version."""

_KEY, _SUBJECT = ',"key":"', ',"subject":"'

NO_CHAIN: Chain = (0, "", "", "", "")


class Events(Protocol):
    """Where an event is looked up."""

    def rows_before(self, events: Sequence[tuple[str, int]]) -> Sequence[PlainRow]: ...


class Chains:
    """The chains of the streams that were seen last; the others are read again when they go on.

    ``newest`` is for the loop that checks events: it looks there first, and puts there what it has checked.
    """

    def __init__(self, events: Events, origin: str, kept: int = KEPT) -> None:
        self.newest: dict[str, Chain] = {}
        self._older: dict[str, Chain] = {}
        self._read: dict[str, Chain] | None = None
        self._events = events
        self._keyed = f'","origin":"{origin}","payload":"'
        self._kept = kept
        self._named = ("", "")
        self._key, self._subject = b'"","origin":"', b'"","version":'
        self._forgotten = bytearray()  # a bit for each hash of a stream's id

    def find(self, row: PlainRow, batch: Sequence[PlainRow]) -> Chain | None:
        """The chain that ``row`` must follow; ``None`` where its stream begins.

        The events before those of the whole batch are read at once.
        """
        chain = self._older.get(row[1])
        if chain is not None or not self._forgotten:
            return chain
        place = hash(row[1]) & _MASK
        if not self._forgotten[place >> 3] >> (place & 7) & 1:
            return None
        if self._read is None:
            self._read = self._read_before(batch)
        return self._read.get(row[1])

    def new(self, stream: str, envelope: bytes) -> Chain:
        """What stands before a stream's first event; the subject is the same in all its envelopes."""
        try:
            if self._key in envelope and self._subject in envelope:
                key, subject = self._named
            else:
                key, subject = self._name(envelope)
        except (AttributeError, TypeError, ValueError):  # not an envelope: that will be said of it
            return NO_CHAIN
        return self._chain(0, "", stream, key, subject)

    def _name(self, envelope: bytes) -> tuple[str, str]:
        """Key and subject of an envelope. Most often the next stream has the same: they are kept for it."""
        key, subject = self._named = _named(envelope)
        self._key = f'"{key}","origin":"'.encode()
        self._subject = f'"{subject}","version":'.encode()
        return key, subject

    def behind(self, row: PlainRow, before: Chain) -> Chain:
        """What the next event of the stream is compared with, behind one that is not as it should be.

        The key may be another one: encryption may be turned on, or a key be replaced, in the middle of a
        stream. Each envelope names its own, and its leaf covers that.
        """
        _, stream, version, _, _, envelope, leaf = row
        fields = parse_fields(envelope) if type(envelope) is bytes else None
        seen = version if type(version) is int else before[0] + 1
        hash_ = leaf.hex() if type(leaf) is bytes else ""
        if fields is None:
            return seen, hash_, *before[2:]
        return self._chain(seen, hash_, stream, fields[1], fields[8])

    def trim(self) -> None:
        """Forget the streams that were not seen for long. To be called between two batches."""
        self._read = None
        if len(self.newest) >= self._kept:
            self._forget()
            self._older = dict(self.newest)
            self.newest.clear()

    def _read_before(self, batch: Sequence[PlainRow]) -> dict[str, Chain]:
        """The chains of streams that go on in this batch and are forgotten."""
        firsts: dict[str, PlainRow] = {}
        for row in batch:
            stream = row[1]
            known = stream in self.newest or stream in self._older
            if not known and self._may_be_forgotten(stream):
                firsts.setdefault(stream, row)
        wanted = [
            (stream, version)
            for stream, row in firsts.items()
            if type(stream) is str and type(row[2]) is int and 0 < row[2] < _MAX_VERSION
            for version in (row[2] - 1, row[2])
        ]
        # What stands there as the same version, before the event that is looked at, stands there twice.
        found = [
            row
            for row in (self._events.rows_before(wanted) if wanted else ())
            if row[0] < firsts[row[1]][0]
        ]
        return {row[1]: self.behind(row, NO_CHAIN) for row in sorted(found, key=itemgetter(0))}

    def _forget(self) -> None:
        if self._older and not self._forgotten:
            self._forgotten = bytearray(_HASHES // 8)
        forgotten = self._forgotten
        for stream in self._older:
            place = hash(stream) & _MASK
            forgotten[place >> 3] |= 1 << (place & 7)

    def _may_be_forgotten(self, stream: str) -> bool:
        """False where it is certain that the stream was not seen before."""
        place = hash(stream) & _MASK
        return bool(self._forgotten[place >> 3] >> (place & 7) & 1)

    def _chain(self, version: int, leaf: str, stream: str, key: str, subject: str) -> Chain:
        ending = f'{stream}","subject":"{subject}","version":'
        return version, leaf, key + self._keyed, ending, subject


def _named(envelope: bytes) -> tuple[str, str]:
    """Key and subject in an envelope, which is compared with all that it must be only afterwards."""
    text = envelope.decode("ascii")
    at = text.index(_KEY) + len(_KEY)
    key = text[at : text.index('"', at)]
    at = text.rindex(_SUBJECT) + len(_SUBJECT)
    return _checked(key, text[at : text.index('"', at)])


@lru_cache(maxsize=1024)
def _checked(key: str, subject: str) -> tuple[str, str]:
    """The two, of which nobody else knows what they are: so they are looked at here."""
    if not is_key(key) or not is_subject(subject):
        raise ValueError
    return key, subject
