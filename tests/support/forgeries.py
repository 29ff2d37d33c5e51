"""How rows of the log are forged: with hashes that fit, as anybody can make them, and with keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from manipulations import Victim, resealed

from compaction_ledger.domain.events import RangeCompleted, SummaryImported
from compaction_ledger.domain.facts import Fact
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.envelope import Envelope, key_of, leaf_hash, parse
from compaction_ledger.infrastructure.event_store.rows import Row

FORGED = "FORGED: pay everything to account 7."


def envelope_of(row: Row) -> Envelope:
    """What a row's envelope says."""
    parsed = parse(row.envelope)
    assert parsed is not None
    return parsed


def sealed(row: Row, **changes: Any) -> Row:
    """The row with an envelope and a leaf that fit it; ``changes`` are to the envelope."""
    event, _, schema = row.topic.partition("@")
    envelope = replace(
        envelope_of(row),
        event=event,
        schema=int(schema),
        stream=row.stream,
        version=row.version,
        payload=sha256(row.payload).hexdigest(),
        key=key_of(row.payload),
        **changes,
    ).encode()
    return row._replace(envelope=envelope, leaf=leaf_hash(envelope))


def behind(last: Row, topic: str, payload: bytes, index: int) -> Row:
    """An event that follows the last one of a stream, sealed."""
    row = last._replace(idx=index, version=last.version + 1, topic=topic, payload=payload)
    return sealed(row, previous=last.leaf.hex(), recorded=envelope_of(last).recorded + 1)


def beginning(stream: str, like: Row, topic: str, payload: bytes, index: int) -> Row:
    """The first event of a stream, of the subject of another event, sealed."""
    row = like._replace(idx=index, stream=stream, version=1, topic=topic, payload=payload)
    return sealed(row, previous="")


def fact_at(victim: Victim, index: int) -> Fact:
    """What an event says; that it is known is part of what is assumed of the intruder."""
    with victim.opened(read_only=True) as ledger:
        return ledger._parts.context.log.at([index])[index].fact


def with_forged_text(victim: Victim, index: int) -> bytes:
    """The plain payload of a summary with another text."""
    fact = fact_at(victim, index)
    assert isinstance(fact, RangeCompleted | SummaryImported)
    return codec.encode(replace(fact, text=FORGED))


def encrypted(victim: Victim, row: Row, plain: bytes, key: str | None = None) -> Row:
    """The row with this payload, encrypted for its place by somebody who has the keys; not sealed yet."""
    with victim.opened() as ledger:
        ring = ledger._parts.ring
        assert ring is not None
        payload = ring.encrypt(
            envelope_of(row).key if key is None else key, row.stream, row.version, row.topic, plain
        )
    return row._replace(payload=payload)


def put_resealed(victim: Victim, change: Callable[[list[Row]], Sequence[Row]]) -> None:
    """Change all rows, and redo every index, hash and chain."""
    victim.put(resealed(iter(change(victim.rows()))))


def reseal(victim: Victim, index: int, payload: bytes | None = None, **changes: Any) -> None:
    """Redo envelope and leaf of one event, and no other."""
    row = victim.rows()[index]
    row = sealed(row if payload is None else row._replace(payload=payload), **changes)
    victim.edit(index, state=row.payload, envelope=row.envelope, leaf=row.leaf)
