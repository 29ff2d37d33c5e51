"""How a payload is encrypted: with a key of its own, which the conversation's data key leads to (S1).

A stored payload is ``0x01 || key id (16) || nonce (12) || commitment (32) || ciphertext and tag``. The key
of one event is ``HMAC-SHA256(data key, label || nonce || identity)``, where ``identity`` is what the envelope
says of the event before it has a place; it is AES-256-GCM's associated data, too. So no ciphertext can stand
in another's place, and whoever is given the key of one event can open that event and nothing else. The
commitment, a hash of that key, sees to it that there is one key only that opens it, and so one text.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from compaction_ledger.infrastructure.event_store.envelope import ENCRYPTED

KEY_BYTES = 32
_ID, _NONCE, _COMMITMENT, _TAG = 16, 12, 32, 16
_HEAD = len(ENCRYPTED) + _ID + _NONCE + _COMMITMENT
_KEY_LABEL = b"compaction-ledger/payload/1\x00"
_COMMITMENT_LABEL = b"compaction-ledger/commitment/1\x00"


def identity(key: str, stream: str, version: int, topic: str) -> bytes:
    """What is authenticated with a payload: the part of its envelope that is known before it is stored."""
    event, _, schema = topic.partition("@")
    return (
        f'{{"event":"{event}","format":1,"key":"{key}","schema":{schema},'
        f'"stream":"{stream}","version":{version}}}'
    ).encode()


def encrypt(secret: bytes, key: str, about: bytes, plain: bytes) -> bytes:
    """``plain`` as it is stored, under the data key ``secret``, whose id is ``key``."""
    nonce = secrets.token_bytes(_NONCE)
    event_key = _event_key(secret, nonce, about)
    return b"".join(
        (
            ENCRYPTED,
            bytes.fromhex(key),
            nonce,
            _commitment(event_key),
            AESGCM(event_key).encrypt(nonce, plain, about),
        )
    )


def decrypt(secret: bytes, about: bytes, stored: bytes) -> bytes | None:
    """What was stored; ``None`` where it was not stored under this key and with this identity."""
    event_key = opening(secret, about, stored)
    return None if event_key is None else open_with(event_key, about, stored)


def opening(secret: bytes, about: bytes, stored: bytes) -> bytes | None:
    """The key of this one event, which may be handed to whoever may read it; ``None`` as :func:`decrypt`."""
    if len(stored) < _HEAD + _TAG:
        return None
    event_key = _event_key(secret, stored[1 + _ID : 1 + _ID + _NONCE], about)
    return event_key if stored[_HEAD - _COMMITMENT : _HEAD] == _commitment(event_key) else None


def open_with(event_key: bytes, about: bytes, stored: bytes) -> bytes | None:
    """What was stored, by the key of this event; ``None`` as :func:`decrypt`."""
    try:
        return AESGCM(event_key).decrypt(stored[1 + _ID : 1 + _ID + _NONCE], stored[_HEAD:], about)
    except InvalidTag:
        return None


def _event_key(secret: bytes, nonce: bytes, about: bytes) -> bytes:
    return hmac.digest(secret, _KEY_LABEL + nonce + about, "sha256")


def _commitment(event_key: bytes) -> bytes:
    return sha256(_COMMITMENT_LABEL + event_key).digest()
