"""Keys in memory, for a ledger that is gone when it is closed."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from threading import Lock

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from compaction_ledger.domain.errors import KeyMissing, WrongKey
from compaction_ledger.infrastructure.keys.wrapped_keys import Tombstone, WrappedKey

_NONCE = 12


class MemoryKeyProvider:
    """Wraps with random keys that nobody else has."""

    name = "memory"

    def __init__(self) -> None:
        self._lock = Lock()
        self._keys = {"1": AESGCM(secrets.token_bytes(32))}

    def current_epoch(self) -> str:
        """The newest."""
        return str(len(self._keys))

    def epochs(self) -> Sequence[str]:
        """All, the oldest first."""
        return list(self._keys)

    def wrap(self, secret: bytes, context: bytes) -> tuple[str, bytes]:
        """``secret`` under the current epoch."""
        epoch, nonce = self.current_epoch(), secrets.token_bytes(_NONCE)
        return epoch, nonce + self._keys[epoch].encrypt(nonce, secret, context)

    def unwrap(self, epoch: str, wrapped: bytes, context: bytes) -> bytes:
        """What was wrapped. Raises :class:`KeyMissing` and :class:`WrongKey`."""
        key = self._keys.get(epoch)
        if key is None:
            raise KeyMissing(f"there is no key of epoch {epoch!r}")
        try:
            return key.decrypt(wrapped[:_NONCE], wrapped[_NONCE:], context)
        except (InvalidTag, ValueError):
            raise WrongKey(f"the key of epoch {epoch!r} does not open this data key") from None

    def rotate(self) -> str:
        """Make a new epoch."""
        key = AESGCM(secrets.token_bytes(32))
        with self._lock:
            epoch = str(len(self._keys) + 1)
            self._keys[epoch] = key
        return epoch


class MemoryWrappedKeys:
    """A dictionary."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._keys: dict[str, WrappedKey] = {}
        self._erasures: dict[str, Tombstone] = {}
        self._revision = 0

    def add(self, keys: Sequence[WrappedKey]) -> None:
        """Keep these; an id that is taken stays as it is."""
        with self._lock:
            for key in keys:
                self._keys.setdefault(key.id, key)

    def find(self, key: str) -> WrappedKey | None:
        """The key of this id, destroyed or not."""
        return self._keys.get(key)

    def older_than(self, epoch: str, limit: int) -> Sequence[WrappedKey]:
        """At most so many keys of another epoch that are not destroyed."""
        with self._lock:
            found = [key for key in self._keys.values() if key.epoch != epoch and key.wrapped]
        return found[:limit]

    def replace(self, keys: Iterable[tuple[WrappedKey, WrappedKey]]) -> int:
        """Put the second in place of the first wherever that is still there; for how many it was."""
        with self._lock:
            there = {old.id: new for old, new in keys if self._keys.get(old.id) == old}
            self._keys |= there
        return len(there)

    def count(self) -> dict[str, int]:
        """How many keys are wrapped under each epoch, without those that are destroyed."""
        found: dict[str, int] = {}
        with self._lock:
            for key in self._keys.values():
                if key.wrapped:
                    found[key.epoch] = found.get(key.epoch, 0) + 1
        return found

    def revision(self) -> int:
        """How many changes there were to the erasures."""
        return self._revision

    def look(self) -> None:
        """Every look sees what there is now."""

    def tombstones(self) -> Sequence[Tombstone]:
        """Every erasure."""
        with self._lock:
            return sorted(self._erasures.values())

    def bury(self, tombstone: Tombstone) -> None:
        """Keep this erasure; one that is known keeps its state, and its key, if it has one."""
        with self._lock:
            known = self._erasures.setdefault(tombstone.reference, tombstone)
            if not known.key:
                self._erasures[tombstone.reference] = known._replace(key=tombstone.key)
            self._revision += 1

    def destroy(self, reference: str) -> None:
        """Drop the wrapped key of a subject that was buried."""
        with self._lock:
            found = self._erasures[reference]
            if found.key in self._keys:
                self._keys[found.key] = self._keys[found.key]._replace(wrapped=b"")
            if found.state == "begun":
                self._erasures[reference] = found._replace(state="destroyed")
            self._revision += 1

    def complete(self, reference: str) -> None:
        """Note that an erasure is complete."""
        with self._lock:
            self._erasures[reference] = self._erasures[reference]._replace(state="completed")
            self._revision += 1

    def close(self) -> None:
        """Nothing is open."""
