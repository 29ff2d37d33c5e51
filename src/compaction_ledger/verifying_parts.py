"""The part of the composition root that knows what a log is verified against (K3, K4)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from compaction_ledger.composition import Parts
from compaction_ledger.domain.erasure import WasErased
from compaction_ledger.domain.errors import (
    DamagedLog,
    InvalidProof,
    InvalidSetting,
    MalformedProof,
    StoreError,
)
from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.proof.checkpoints import open_checkpoint
from compaction_ledger.domain.proof.heads import Evidence, KnownHead, in_order, size_of
from compaction_ledger.domain.proof.notes import ED25519, NoteVerifier
from compaction_ledger.infrastructure.proof.copies import (
    published_heads,
    published_sizes,
    read_head,
    read_newest,
)
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Verifier
from compaction_ledger.infrastructure.witness.client import HttpWitness
from compaction_ledger.signing_parts import signer_keys
from compaction_ledger.usecases.checking_heads import HeadCheck
from compaction_ledger.usecases.verifying import never_erased


@dataclass(frozen=True, slots=True)
class Against:
    """What a log is verified against.

    ``checkpoints`` are files; without any, what lies in the ledger's folder of checkpoints counts. ``keys``
    are the verifier keys of those who signed; without any, those in the ledger's folder of keys.
    ``witnesses`` are each a URL, a space and a verifier key.
    """

    checkpoints: Sequence[Path] = ()
    keys: Sequence[str] = ()
    witnesses: Sequence[str] = ()


def head_check(parts: Parts, against: Against) -> HeadCheck | None:
    """What compares the log with all that is known to be signed of it. ``None``: it has no head to compare.

    What is known is looked up now, before the log is read: it may grow meanwhile. Raises
    :class:`InvalidSetting` for wrong keys, URLs and files, and for files of which no key is known.
    """
    witnesses = [HttpWitness.parse(setting) for setting in against.witnesses]
    given_keys = [_log_verifier(key) for key in against.keys]
    try:
        _, origin = parts.tree.head()
    except DamagedLog:  # verification will say so
        return None
    asked = [_of_witness(witness, origin) for witness in witnesses]
    published = _published(parts, against, given_keys)
    heads = heapq.merge(published, in_order(asked), key=size_of)
    names = [witness.name for witness in witnesses]
    return HeadCheck(origin, heads, partial(_kept, parts), names)


def erased_from_now_on(parts: Parts) -> WasErased:
    """What tells of which conversations nothing can be compared any more, as they are erased meanwhile."""
    if parts.ring is None:
        return never_erased
    try:
        return parts.ring.since()
    except StoreError:  # verification will say so
        return never_erased


def _published(
    parts: Parts, against: Against, given_keys: Sequence[NoteVerifier]
) -> Iterator[Evidence]:
    """The signed heads of the given files, or else of the ledger's folder; in order."""
    if against.checkpoints:
        given = [read_head(path) for path in against.checkpoints]
        verifiers = given_keys or signer_keys(parts).verifiers()
        if not verifiers:
            raise InvalidSetting("no key is known that they could be checked with", place="key")
        return iter(in_order(checked(verifiers) for checked in given))
    if parts.places is None:
        return iter(())
    folder = parts.places.checkpoints
    try:
        sizes = published_sizes(folder)
        newest = read_newest(folder)
        if not sizes and newest is None:
            return iter(())
        verifiers = given_keys or signer_keys(parts).verifiers()
    except StoreError as error:
        why = f"checkpoints cannot be checked, unless with keys that are given: {error}"
        return iter((Finding("checkpoint", why),))
    if not verifiers:
        why = f"there are checkpoints in {folder}, and no key is known to check them with"
        return iter((Finding("checkpoint", why),))
    others: Iterable[Evidence] = () if newest is None else (newest(verifiers),)
    return heapq.merge(published_heads(folder, sizes, verifiers), others, key=size_of)


def _of_witness(witness: HttpWitness, origin: str) -> Evidence:
    """What a witness has cosigned last."""
    source = f"the witness {witness.name}"
    try:
        data = witness.latest(origin)
        if data is None:
            return Finding("witness", f"{source} has cosigned nothing of this log")
        signed = open_checkpoint(data, witness.verifiers, origin)
    except StoreError as error:
        return Finding("witness", f"it was not asked: {error}")
    except (InvalidProof, MalformedProof) as error:
        return Finding("witness", f"{source} answers with what it did not cosign: {error}")
    return KnownHead(source, signed.checkpoint, data.decode(), by_witness=True)


def _kept(parts: Parts, level: int, start: int, stop: int) -> Sequence[bytes]:
    return parts.tree.nodes(level, start, stop)


def _log_verifier(text: str) -> NoteVerifier:
    try:
        verifier = Ed25519Verifier.parse(text)
    except MalformedProof as error:
        raise InvalidSetting(f"not a verifier key: {error}", place="key") from error
    if verifier.verifier_key.signature_type != ED25519:
        raise InvalidSetting("this is the key of a witness, not of a log", place="key")
    return verifier
