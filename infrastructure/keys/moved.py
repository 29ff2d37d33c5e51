"""A ledger whose keys are moved from one provider to another (S2)."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.errors import KeyMissing
from compaction_ledger.domain.keys import KeyProvider
from compaction_ledger.infrastructure.keys.secrecy import Unpicklable


class MovedKeys(Unpicklable):
    """Wraps by one provider, and opens by others, too. When all is wrapped anew, the others can go."""

    __slots__ = ("_current", "_former")

    def __init__(self, current: KeyProvider, former: Sequence[KeyProvider]) -> None:
        self._current = current
        self._former = tuple(former)

    def __repr__(self) -> str:
        return f"MovedKeys({self._current!r}, {list(self._former)!r})"

    @property
    def name(self) -> str:
        """That of the provider that wraps."""
        return self._current.name

    def current_epoch(self) -> str:
        """That of the provider that wraps."""
        return self._current.current_epoch()

    def epochs(self) -> Sequence[str]:
        """Those of the former providers, and then of the one that wraps."""
        return [epoch for one in (*self._former, self._current) for epoch in one.epochs()]

    def wrap(self, secret: bytes, context: bytes) -> tuple[str, bytes]:
        """By the current provider."""
        return self._current.wrap(secret, context)

    def unwrap(self, epoch: str, wrapped: bytes, context: bytes) -> bytes:
        """By the provider that knows the epoch. Raises :class:`KeyMissing` where none does."""
        said: list[str] = []
        for provider in (self._current, *self._former):
            try:
                return provider.unwrap(epoch, wrapped, context)
            except KeyMissing as error:
                said.append(str(error))
        raise KeyMissing("no key provider of this ledger has the key: " + "; ".join(said))

    def rotate(self) -> str:
        """Of the current provider."""
        return self._current.rotate()
