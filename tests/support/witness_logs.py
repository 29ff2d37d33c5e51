"""A log for tests of witnesses: leaves and a key, without a ledger."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from compaction_ledger.domain.proof.checkpoints import Checkpoint
from compaction_ledger.domain.proof.inclusion import WitnessRequest
from compaction_ledger.domain.proof.merkle import consistency_proof, leaf_hash, root_of
from compaction_ledger.domain.proof.notes import sign_note
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Signer


class LooseLog:
    """So many leaves; ``branch`` makes those from ``fork_at`` on others."""

    def __init__(self, origin: str = "compaction-ledger/" + "a" * 32) -> None:
        self.origin = origin
        self.signer = Ed25519Signer(origin, Ed25519PrivateKey.generate())
        self.fork_at = 1 << 60

    @property
    def key(self) -> str:
        """Its verifier key."""
        return str(self.signer.verifier_key)

    def leaf(self, index: int) -> bytes:
        """A leaf hash."""
        return _leaf(index, index >= self.fork_at)

    def nodes(self, level: int, position: int) -> bytes:
        """The hash of a complete subtree."""
        first = position << level
        return root_of(map(self.leaf, range(first, first + (1 << level))))

    def root(self, size: int) -> bytes:
        """The root of the tree of so many leaves."""
        return _root(size, min(size, self.fork_at))

    def note(self, size: int, signer: Ed25519Signer | None = None) -> bytes:
        """A signed checkpoint."""
        text = Checkpoint(self.origin, size, self.root(size)).encode()
        return sign_note(text, [signer or self.signer]).encode()

    def request(self, old: int, size: int) -> WitnessRequest:
        """A request that is right in itself."""
        return WitnessRequest(old, tuple(consistency_proof(old, size, self.nodes)), self.note(size))

    def body(self, old: int, size: int) -> bytes:
        """Its body."""
        return self.request(old, size).encode()

    def prove(self, size: int) -> Callable[[int], list[bytes]]:
        """What proves that the log of so many leaves goes on from another size."""

        def proof(old: int) -> list[bytes]:
            return consistency_proof(old, size, self.nodes)

        return proof

    def forked(self, at: int) -> LooseLog:
        """Another log under the same key, with other events from ``at`` on."""
        other = LooseLog(self.origin)
        other.signer = self.signer
        other.fork_at = at
        return other


@cache
def _leaf(index: int, forked: bool) -> bytes:
    return leaf_hash(b"%d%d" % (index, forked))


@cache
def _root(size: int, fork_at: int) -> bytes:
    return root_of(_leaf(index, index >= fork_at) for index in range(size))


HASH = sha256(b"a hash").digest()
