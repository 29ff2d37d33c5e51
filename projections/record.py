"""A row of a read-model table while it is worked on: one field per column, in the order of its columns.

A row that comes out of a table is checked before anything is made of it: :class:`DamagedReadModel` where
a column does not hold what belongs there (H9).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar, cast, get_args, get_type_hints

from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.domain.identifiers import is_hash
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.windows import Range
from compaction_ledger.projections.soundness import Columns

Words = Mapping[str, frozenset[str]]


class Record:
    """A row of a read-model table. ``key`` is how many leading fields are its primary key.

    ``words`` are the columns that hold one of a few words, ``hashes`` those that hold a hash.
    """

    __slots__ = ()
    table: ClassVar[str]
    key: ClassVar[int]
    words: ClassVar[Words] = {}
    hashes: ClassVar[Sequence[str]] = ()
    columns: ClassVar[Columns]
    values_of: ClassVar[Callable[[Any], tuple[Any, ...]]]
    keys_of: ClassVar[Callable[[Any], Any]]

    @classmethod
    def of(cls, values: Sequence[Any]) -> Self:
        """The record of a row that was read. Raises :class:`DamagedReadModel`."""
        cls.check(values)
        return cls(*values)

    @classmethod
    def check(cls, values: Sequence[Any]) -> None:
        """Raise :class:`DamagedReadModel` unless every column holds what belongs there."""
        fault = cls.columns.fault(values)
        if fault is not None:
            raise cls.damaged(values, fault)

    @classmethod
    def damaged(cls, values: Sequence[Any], fault: str) -> DamagedReadModel:
        """The error that tells of a damaged row, and where its range can be told, of which."""
        found = dict(zip(columns(cls), values, strict=False))
        window = (found.get("from_pair"), found.get("to_pair"))
        aligned = set(map(type, window)) == {int} and Range(*cast(Any, window)).is_aligned
        identity = found.get("identity")
        return DamagedReadModel(
            f"a row of {cls.table}: {fault}",
            from_pair=window[0] if aligned else None,
            identity=identity if isinstance(identity, str) and is_hash(identity) else None,
        )

    def values(self) -> tuple[Any, ...]:
        """The column values, in order."""
        return type(self).values_of(self)

    def key_values(self) -> Any:
        """The primary key: one value, or a tuple of several."""
        return type(self).keys_of(self)


Kind = TypeVar("Kind", bound=Record)


def prepared(record: type[Kind]) -> type[Kind]:
    """A class of rows, once its fields are known, with what reads and checks them."""
    record.values_of = staticmethod(attrgetter(*columns(record)))
    record.keys_of = staticmethod(attrgetter(*columns(record)[: record.key]))
    record.columns = _columns_of(record)
    return record


def columns(record: type[Record]) -> list[str]:
    """The names of a record's columns, in order."""
    return [item.name for item in fields(cast(Any, record))]


def _columns_of(record: type[Record]) -> Columns:
    hints = get_type_hints(record)
    types = {name: get_args(hints[name]) or (hints[name],) for name in columns(record)}
    return Columns(types, record.words, record.hashes)


# --- what stands in a column as JSON ----------------------------------------------------------------


@lru_cache(maxsize=256)
def model_of(provider: str, name: str, settings: str) -> ModelIdentity:
    """Raises :class:`ValueError` kinds and :class:`TypeError`."""
    pairs = [(key, value) for key, value in list_of(settings)]
    if any(type(key) is not str or type(value) is not str for key, value in pairs):
        raise ValueError("no list of names and values")
    return ModelIdentity(provider, name, tuple(pairs))


@lru_cache(maxsize=256)
def prompt_of(name: str, version: int) -> PromptVersion:
    """One object for all rows of a prompt version."""
    return PromptVersion(name, version)


@lru_cache(maxsize=256)
def words_of(text: str) -> tuple[str, ...]:
    """Raises :class:`ValueError` kinds."""
    words = tuple(list_of(text))
    if any(type(word) is not str for word in words):
        raise ValueError("no list of words")
    return words


def list_of(text: str) -> list[Any]:
    """Raises :class:`ValueError` kinds and :class:`RecursionError`."""
    found: list[Any] = json.loads(text)
    if type(found) is not list:
        raise ValueError("no list")
    return found
