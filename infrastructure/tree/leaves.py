"""Checking leaves as they are read (L1, L3): what is the same in every store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.proof.merkle import leaf_hash


def checked_leaves(
    rows: Iterable[tuple[int, bytes, bytes]], start: int, stop: int
) -> Sequence[bytes]:
    """The leaf hashes of (index, leaf, envelope), dense from ``start`` and below ``stop``."""
    leaves: list[bytes] = []
    expected = start
    for index, leaf, envelope in rows:
        if index != expected:
            break
        if type(envelope) is not bytes or leaf_hash(envelope) != leaf:
            raise DamagedLog("the leaf hash is not the hash of the envelope", index=index)
        leaves.append(leaf)
        expected += 1
    if expected < stop:
        raise DamagedLog("an event is missing here", index=expected)
    return leaves


def dense(rows: Iterable[tuple[int, bytes]], start: int) -> Sequence[bytes]:
    """The values of (position, value), as far as the positions go on from ``start`` without a gap."""
    values: list[bytes] = []
    for position, value in rows:
        if position != start + len(values):
            break
        values.append(value)
    return values


def in_order(found: dict[int, bytes], indices: Sequence[int]) -> Sequence[bytes]:
    """The envelopes at ``indices``."""
    for index in indices:
        if type(found.get(index)) is not bytes:
            raise DamagedLog("an event is missing here", index=index)
    return [found[index] for index in indices]
