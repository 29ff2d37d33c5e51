"""Ed25519 for notes (RFC 8032), by ``cryptography`` (K2, K3). No private key shows in ``repr`` (S4)."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from compaction_ledger.domain.errors import InvalidInput, MalformedProof
from compaction_ledger.domain.proof.cosignatures import (
    cosigned_message,
    join_cosignature,
    split_cosignature,
)
from compaction_ledger.domain.proof.notes import (
    COSIGNATURE,
    ED25519,
    VerifierKey,
    parse_verifier_key,
)


class Ed25519Verifier:
    """A public key, for signatures of notes or, by its type, for cosignatures of witnesses."""

    __slots__ = ("_public", "key_id", "verifier_key")

    def __init__(self, key: VerifierKey) -> None:
        self.verifier_key = key
        self.key_id = key.key_id
        self._public = Ed25519PublicKey.from_public_bytes(key.public_key)

    @classmethod
    def parse(cls, text: str) -> Ed25519Verifier:
        """The key in ``name+id+base64``. Raises :class:`MalformedProof`."""
        return cls(parse_verifier_key(text))

    @property
    def name(self) -> str:
        """The key's name."""
        return self.verifier_key.name

    def verify(self, text: bytes, signature: bytes) -> bool:
        """Whether this key made that signature of that text."""
        if self.verifier_key.signature_type == COSIGNATURE:
            try:
                time, signature = split_cosignature(signature)
            except MalformedProof:
                return False
            text = cosigned_message(time, text)
        try:
            self._public.verify(signature, text)
        except InvalidSignature:
            return False
        return True


class Ed25519Signer:
    """A private key with a name."""

    __slots__ = ("_private", "key_id", "verifier_key")

    def __init__(self, name: str, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.verifier_key = VerifierKey(name, ED25519, private.public_key().public_bytes_raw())
        self.key_id = self.verifier_key.key_id

    def __repr__(self) -> str:
        return f"Ed25519Signer({str(self.verifier_key)!r})"

    @property
    def private(self) -> Ed25519PrivateKey:
        """The key itself, to be written where it belongs."""
        return self._private

    @property
    def name(self) -> str:
        """The key's name."""
        return self.verifier_key.name

    def sign(self, text: bytes) -> bytes:
        """The signature of ``text``, 64 bytes."""
        return self._private.sign(text)


class Ed25519Cosigner:
    """A witness's private key. It signs a checkpoint's text with the time, in seconds by ``clock`` (K3)."""

    __slots__ = ("_clock", "_private", "key_id", "verifier_key")

    def __init__(self, name: str, private: Ed25519PrivateKey, clock: Callable[[], int]) -> None:
        self._private = private
        self._clock = clock
        self.verifier_key = VerifierKey(name, COSIGNATURE, private.public_key().public_bytes_raw())
        self.key_id = self.verifier_key.key_id

    def __repr__(self) -> str:
        return f"Ed25519Cosigner({str(self.verifier_key)!r})"

    @property
    def name(self) -> str:
        """The key's name."""
        return self.verifier_key.name

    def sign(self, text: bytes) -> bytes:
        """The time and the signature of it and ``text``, 72 bytes."""
        time = self._clock()
        return join_cosignature(time, self._private.sign(cosigned_message(time, text)))


def private_key(seed: bytes) -> Ed25519PrivateKey:
    """The private key of a seed of 32 bytes."""
    if len(seed) != 32:
        raise InvalidInput("the seed of an Ed25519 key is 32 bytes", place="key")
    return Ed25519PrivateKey.from_private_bytes(seed)
