"""The rows while they are worked on: one field per column, in the order of the table's columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar, cast

from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.read_models import AttemptRow, DeliveryRow, RangeRow, SummaryRow


class Record:
    """A row of a read-model table. ``key`` is how many leading fields are its primary key."""

    __slots__ = ()
    table: ClassVar[str]
    key: ClassVar[int]
    values_of: ClassVar[Callable[[Any], tuple[Any, ...]]]
    keys_of: ClassVar[Callable[[Any], Any]]

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
        return SummaryRow(
            scope=self.scope,
            conversation=self.conversation,
            from_pair=self.from_pair,
            to_pair=self.to_pair,
            identity=self.identity,
            source_hash=self.source_hash,
            model=_model(self.provider, self.model, self.settings),
            prompt=_prompt(self.prompt, self.prompt_version),
            status=cast(Any, self.status),
            validity=cast(Any, self.validity),
            attempts=self.attempts,
            holder=self.holder,
            expires_at=self.expires_at,
            retry_at=self.retry_at,
            failure=self.failure,
            index=self.idx,
            recorded_at=self.recorded_at,
            origin=self.origin,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
        )


@lru_cache(maxsize=256)
def _model(provider: str, name: str, settings: str) -> ModelIdentity:
    return ModelIdentity(provider, name, tuple((key, value) for key, value in json.loads(settings)))


@lru_cache(maxsize=256)
def _prompt(name: str, version: int) -> PromptVersion:
    return PromptVersion(name, version)


@dataclass(slots=True)
class RangeRecord(Record):
    """One range of a conversation."""

    table: ClassVar[str] = "ranges"
    key: ClassVar[int] = 3

    scope: str
    conversation: str
    from_pair: int
    to_pair: int
    status: str
    source_hash: str
    identity: str
    retry_at: int | None
    updated_index: int
    updated_at: int

    def row(self) -> RangeRow:
        """The row as the read models answer with it."""
        return RangeRow(*cast(Any, self.values()))


@dataclass(slots=True)
class AttemptRecord(Record):
    """One attempt."""

    table: ClassVar[str] = "attempts"
    key: ClassVar[int] = 2

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
        given = {name: getattr(self, name) for name in self.__slots__}
        given["also"] = tuple(json.loads(self.also))
        given["signals"] = tuple(json.loads(self.signals))
        return AttemptRow(**given)


@dataclass(slots=True)
class DeliveryRecord(Record):
    """One recorded delivery."""

    table: ClassVar[str] = "deliveries"
    key: ClassVar[int] = 1

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
        return DeliveryRow(*cast(Any, self.values()))


RECORDS: tuple[type[Record], ...] = (SummaryRecord, RangeRecord, AttemptRecord, DeliveryRecord)


def columns(record: type[Record]) -> list[str]:
    """The names of a record's columns, in order."""
    return [item.name for item in fields(cast(Any, record))]


for _record in RECORDS:
    _record.values_of = staticmethod(attrgetter(*columns(_record)))
    _record.keys_of = staticmethod(attrgetter(*columns(_record)[: _record.key]))
