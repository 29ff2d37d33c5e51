"""Whether a row holds what belongs there (H9): who can write to the file can write anything into a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from types import NoneType
from typing import Any

from compaction_ledger.domain.canonical import MAX_INTEGER

_Numbers = Callable[[Sequence[Any]], Sequence[int]]


class Columns:
    """What the columns of one table may hold: their types, and for some of them which words.

    It stands on the way of each row that is read: a combination of types is judged once, and remembered.
    """

    def __init__(
        self,
        types: Mapping[str, tuple[type, ...]],
        words: Mapping[str, frozenset[str]],
        hashes: Sequence[str],
    ) -> None:
        self._types = types
        self._names = list(types)
        self._words = [(self._names.index(name), known) for name, known in words.items()]
        self._hashes = [self._names.index(name) for name in hashes]
        self._known: dict[tuple[type, ...], _Numbers] = {}

    def fault(self, values: Sequence[Any]) -> str | None:
        """In words: a column that does not hold what belongs there; ``None`` where all do."""
        signature = tuple(map(type, values))
        numbers_of = self._known.get(signature)
        if numbers_of is None:
            wrong = self._wrong_types(signature)
            if wrong is not None:
                return wrong
            numbers_of = self._known[signature] = _numbers(signature)
        numbers = numbers_of(values)
        if min(numbers) < 0 or max(numbers) > MAX_INTEGER:
            return "a number is out of all bounds"
        for position, known in self._words:
            if values[position] not in known:
                return f"column {self._names[position]} holds a word that it never has"
        for position in self._hashes:
            value = values[position]
            if value is not None and not _is_hash(value):
                return f"column {self._names[position]} holds no hash"
        return None

    def _wrong_types(self, signature: tuple[type, ...]) -> str | None:
        if len(signature) != len(self._names):
            return f"it has {len(signature)} columns in place of {len(self._names)}"
        for found, (name, allowed) in zip(signature, self._types.items(), strict=True):
            if found not in allowed:
                return f"column {name} holds {_KINDS.get(found, 'something else')}"
        return None


def _numbers(signature: tuple[type, ...]) -> _Numbers:
    """What takes the whole numbers out of a row. Every table has several that are never null."""
    return itemgetter(*(place for place, kind in enumerate(signature) if kind is int))


_is_hash = re.compile(r"[0-9a-f]{64}").fullmatch
_KINDS: dict[type, str] = {
    NoneType: "nothing",
    bytes: "bytes",
    float: "a fraction",
    int: "a number",
    str: "text",
}
