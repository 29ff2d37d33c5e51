"""The rows of ranges, and all kinds of rows that there are.

A row that comes out of a table is checked before anything is made of it: :class:`DamagedReadModel` where
a column does not hold what belongs there (H9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, get_args

from compaction_ledger.domain.errors import DamagedReadModel
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
from compaction_ledger.projections.record import (
    Record,
    Words,
    columns,
    model_of,
    prepared,
    prompt_of,
    words_of,
)
from compaction_ledger.projections.window_records import (
    WindowChunkRecord,
    WindowDeliveryRecord,
    WindowPinRecord,
)

__all__ = [
    "RECORDS",
    "AttemptRecord",
    "DeliveryRecord",
    "RangeRecord",
    "Record",
    "SummaryRecord",
    "WindowChunkRecord",
    "WindowDeliveryRecord",
    "WindowPinRecord",
    "columns",
]


@prepared
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
            model = model_of(values[6], values[7], values[8])
        except (ValueError, TypeError, RecursionError) as error:
            raise cls.damaged(values, f"column settings: {error}") from error
        prompt = prompt_of(values[9], values[10])
        return _summary_row(*values[1:5], values[0], values[5], model, prompt, *_rest(values))


_summary_row: Callable[..., SummaryRow] = SummaryRow
_rest: Callable[[Sequence[Any]], tuple[Any, ...]] = itemgetter(11, 12, 13, *range(15, 24))
"""Of the columns from ``status`` on, those that a row answers with: all but ``claim_id``."""


@prepared
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


@prepared
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
                given[name] = words_of(given[name])
            except (ValueError, RecursionError) as error:
                raise cls.damaged(values, f"column {name}: {error}") from error
        return AttemptRow(**given)


@prepared
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


RECORDS: tuple[type[Record], ...] = (
    SummaryRecord,
    RangeRecord,
    AttemptRecord,
    DeliveryRecord,
    WindowChunkRecord,
    WindowPinRecord,
    WindowDeliveryRecord,
)
