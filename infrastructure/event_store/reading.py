"""From stored rows to recorded facts: each is checked against its seal, opened, and must fit its place."""

from __future__ import annotations

from collections.abc import Mapping

from compaction_ledger.domain.erasure import ERASURE_EVENTS, ErasedFact
from compaction_ledger.domain.errors import DamagedLog, Erased
from compaction_ledger.domain.log import Recorded
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.cipher import PLAIN, PayloadReader
from compaction_ledger.infrastructure.event_store.envelope import Fields, key_of
from compaction_ledger.infrastructure.event_store.places import check_place
from compaction_ledger.infrastructure.event_store.rows import Row
from compaction_ledger.infrastructure.event_store.sealing import blanked_fields, sealed_fields

_NO_NAMES: Mapping[str, tuple[str, str]] = {}


def check_encrypted(before: Row, row: Row) -> None:
    """Raise :class:`DamagedLog` where encryption ends in the middle of a stream: it never does (S1)."""
    if key_of(before.payload) and not key_of(row.payload) and row.payload:
        raise DamagedLog("it is not encrypted, as its stream is before it", index=row.idx)


def recorded(
    row: Row, payloads: PayloadReader = PLAIN, names: Mapping[str, tuple[str, str]] = _NO_NAMES
) -> Recorded:
    """The recorded fact of a row whose seal holds, or that it is erased. Raises :class:`DamagedLog`.

    ``names`` are the conversations that references stand for; one that is not among them may be any.
    """
    index, stream, version, topic, state, envelope, leaf = row
    fields = sealed_fields(index, stream, version, topic, state, envelope or b"", leaf or b"")
    if payloads.is_erased(fields[8]) and fields[0] not in ERASURE_EVENTS:
        return erased(row, fields)
    try:
        payload = payloads.decrypt(stream, version, topic, state)
    except Erased:  # meanwhile: its key is gone since it was looked up what is erased
        return erased(row, fields)
    except DamagedLog as error:
        raise DamagedLog(str(error), index=index) from error
    fact = codec.decode(topic, payload, index)
    check_place(fact, stream, fields[8], names.get(fields[8]), index)
    return Recorded(index, stream, version, int(fields[5]), fact)


def recorded_without_payload(row: Row) -> Recorded:
    """What is left of an erased event whose payload is gone. Raises :class:`DamagedLog` if more is wrong."""
    fields = blanked_fields(row.idx, row.stream, row.version, row.topic, row.envelope, row.leaf)
    return erased(row, fields)


def erased(row: Row, fields: Fields) -> Recorded:
    """What the envelope of an erased event still tells."""
    fact = ErasedFact(fields[0], int(fields[6]), fields[8])
    return Recorded(row.idx, row.stream, row.version, int(fields[5]), fact)
