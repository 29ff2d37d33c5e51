"""The rows while they are worked on: one field per column, in the order of the table's columns.

A row that comes out of a table is checked before anything is made of it: :class:`DamagedReadModel` where
a column does not hold what belongs there (H9).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Self, cast, get_args, get_type_hints

from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.domain.identifiers import is_hash
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.ports import OnDamaged
from compaction_ledger.domain.prompts import Verdict
from compaction_ledger.domain.read_models import (
    AttemptOutcome,
    AttemptRow,
    DeliveryRow,
    RangeRow,
    RangeStatus,
    SummaryRow,
    SummaryStatus,
)
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


@dataclass(slots=True)
class SummaryRecord(Record):
    """One identity of a range."""

    table: ClassVar[str] = "summaries"
    key: ClassVar[int] = 1
    words: ClassVar[Words] = {
        "status": frozenset(get_args(SummaryStatus)),
        "validity": frozenset(get_args(Verdict)),
    }
    hashes: ClassVar[Sequence[str]] = ("identity", "source_hash")

    identity: str
    scope: str
    conversation: str
    from_pair: int
    to_pair: int
    source_hash: str
    provider: str
    model: str
    settings: str
    prompt: str
    prompt_version: int
    status: str
    validity: str
    attempts: int = 0
    claim_id: str | None = None
    holder: str | None = None
    expires_at: int | None = None
    retry_at: int | None = None
    failure: str | None = None
    idx: int | None = None
    recorded_at: int | None = None
    origin: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    def row(self) -> SummaryRow:
        """The row as the read models answer with it."""
        return self.row_of(self.values())

    @classmethod
    def rows_of(
        cls, rows: Iterable[Sequence[Any]], on_damaged: OnDamaged | None
    ) -> list[SummaryRow]:
        """The rows that can be read; what is told of each other one, where it is to be told (H9)."""
        found: list[SummaryRow] = []
        for values in rows:
            try:
                found.append(cls.row_of(values))
            except DamagedReadModel as error:
                if on_damaged is None:
                    raise
                on_damaged(error)
        return found

    @classmethod
    def row_of(cls, values: Sequence[Any]) -> SummaryRow:
        """The row of the values of its columns. Raises :class:`DamagedReadModel`."""
        cls.check(values)
        try:
            model = _model(values[6], values[7], values[8])
        except (ValueError, TypeError, RecursionError) as error:
            raise cls.damaged(values, f"column settings: {error}") from error
        prompt = _prompt(values[9], values[10])
        return _summary_row(*values[1:5], values[0], values[5], model, prompt, *_rest(values))


_summary_row: Callable[..., SummaryRow] = SummaryRow
_rest: Callable[[Sequence[Any]], tuple[Any, ...]] = itemgetter(11, 12, 13, *range(15, 24))
"""Of the columns from ``status`` on, those that a row answers with: all but ``claim_id``."""


@lru_cache(maxsize=256)
def _model(provider: str, name: str, settings: str) -> ModelIdentity:
    pairs = [(key, value) for key, value in _list(settings)]
    if any(type(key) is not str or type(value) is not str for key, value in pairs):
        raise ValueError("no list of names and values")
    return ModelIdentity(provider, name, tuple(pairs))


def _list(text: str) -> list[Any]:
    found: list[Any] = json.loads(text)
    if type(found) is not list:
        raise ValueError("no list")
    return found


@lru_cache(maxsize=256)
def _prompt(name: str, version: int) -> PromptVersion:
    return PromptVersion(name, version)


@dataclass(slots=True)
class RangeRecord(Record):
    """One range of a conversation."""

    table: ClassVar[str] = "ranges"
    key: ClassVar[int] = 3
    words: ClassVar[Words] = {"status": frozenset(get_args(RangeStatus))}
    hashes: ClassVar[Sequence[str]] = ("source_hash", "identity")

    scope: str
    conversation: str
    from_pair: int
    to_pair: int
    status: str
    source_hash: str
    identity: str
    expires_at: int | None
    retry_at: int | None
    updated_index: int
    updated_at: int

    def row(self) -> RangeRow:
        """The row as the read models answer with it."""
        return self.row_of(self.values())

    @classmethod
    def row_of(cls, values: Sequence[Any]) -> RangeRow:
        """The row of the values of its columns. Raises :class:`DamagedReadModel`."""
        cls.check(values)
        return RangeRow(*values)


@dataclass(slots=True)
class AttemptRecord(Record):
    """One attempt."""

    table: ClassVar[str] = "attempts"
    key: ClassVar[int] = 2
    words: ClassVar[Words] = {"outcome": frozenset(get_args(AttemptOutcome))}
    hashes: ClassVar[Sequence[str]] = ("identity", "output_digest")

    identity: str
    number: int
    scope: str
    conversation: str
    from_pair: int
    to_pair: int
    attempt_id: str
    claim_id: str
    holder: str
    outcome: str
    failure: str | None = None
    also: str = "[]"
    detail: str | None = None
    signals: str = "[]"
    tool_calls: int = 0
    output_digest: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    started_index: int = 0
    started_at: int = 0
    ended_index: int | None = None
    ended_at: int | None = None

    def row(self) -> AttemptRow:
        """The row as the read models answer with it."""
        return self.row_of(self.values())

    @classmethod
    def row_of(cls, values: Sequence[Any]) -> AttemptRow:
        """The row of the values of its columns. Raises :class:`DamagedReadModel`."""
        cls.check(values)
        given = dict(zip(columns(cls), values, strict=True))
        for name in ("also", "signals"):
            try:
                given[name] = _words(given[name])
            except (ValueError, RecursionError) as error:
                raise cls.damaged(values, f"column {name}: {error}") from error
        return AttemptRow(**given)


@lru_cache(maxsize=256)
def _words(text: str) -> tuple[str, ...]:
    words = tuple(_list(text))
    if any(type(word) is not str for word in words):
        raise ValueError("no list of words")
    return words


@dataclass(slots=True)
class DeliveryRecord(Record):
    """One recorded delivery."""

    table: ClassVar[str] = "deliveries"
    key: ClassVar[int] = 1
    hashes: ClassVar[Sequence[str]] = ("request_digest",)

    delivery_id: str
    scope: str
    conversation: str
    run: str | None
    shape: str
    bytes_used: int
    bytes_allowed: int
    request_digest: str
    idx: int
    recorded_at: int

    def row(self) -> DeliveryRow:
        """The row as the read models answer with it."""
        return self.row_of(self.values())

    @classmethod
    def row_of(cls, values: Sequence[Any]) -> DeliveryRow:
        """The row of the values of its columns. Raises :class:`DamagedReadModel`."""
        cls.check(values)
        return DeliveryRow(*values)


RECORDS: tuple[type[Record], ...] = (SummaryRecord, RangeRecord, AttemptRecord, DeliveryRecord)


def columns(record: type[Record]) -> list[str]:
    """The names of a record's columns, in order."""
    return [item.name for item in fields(cast(Any, record))]


def _columns_of(record: type[Record]) -> Columns:
    hints = get_type_hints(record)
    types = {name: get_args(hints[name]) or (hints[name],) for name in columns(record)}
    return Columns(types, record.words, record.hashes)


for _record in RECORDS:
    _record.values_of = staticmethod(attrgetter(*columns(_record)))
    _record.keys_of = staticmethod(attrgetter(*columns(_record)[: _record.key]))
    _record.columns = _columns_of(_record)
