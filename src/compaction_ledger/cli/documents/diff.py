"""What `diff` answers: what changed between two points of the log."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import TypeAdapter

from compaction_ledger.cli.documents.common import Count, Document, Hash, Time, moment
from compaction_ledger.cli.documents.replay import PointRecord
from compaction_ledger.domain.read_models import (
    AttemptRow,
    DeliveryRow,
    RangeRow,
    SummaryRow,
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)
from compaction_ledger.domain.replay import AnyRow, RowChange, Validity, ValidityChange
from compaction_ledger.usecases.replaying import Difference

RowKind = Literal["range", "summary", "attempt", "delivery", "chunk", "pin", "window_delivery"]
_KINDS: dict[type[AnyRow], RowKind] = {
    RangeRow: "range",
    SummaryRow: "summary",
    AttemptRow: "attempt",
    DeliveryRow: "delivery",
    WindowChunkRow: "chunk",
    WindowPinRow: "pin",
    WindowDeliveryRow: "window_delivery",
}
_ROW: TypeAdapter[AnyRow] = TypeAdapter(AnyRow)


class RowChanged(Document):
    """A row that is new or another one at the second point. Times in rows are µs since the epoch."""

    kind: RowKind
    scope: str
    conversation: str
    index: Count
    """The event that last changed it."""

    recorded_at: Time
    """When that was recorded."""

    changed: list[str]
    """The names of the members that are others now; empty where the row is new."""

    before: dict[str, Any] | None
    """The row at the first point; `null` where there was none."""

    after: dict[str, Any]
    """The row at the second point."""

    @classmethod
    def of(cls, change: RowChange) -> RowChanged:
        before = None if change.before is None else _members(change.before)
        after = _members(change.after)
        return cls(
            kind=_KINDS[type(change.after)],
            scope=change.after.scope,
            conversation=change.after.conversation,
            index=change.index,
            recorded_at=moment(change.recorded_at),
            changed=[] if before is None else [n for n in after if after[n] != before[n]],
            before=before,
            after=after,
        )


class ValidityChanged(Document):
    """A summary that became valid or was completed, or ceased to be valid, and by which event."""

    scope: str
    conversation: str
    from_pair: Count
    to_pair: Count
    identity: Hash
    before: Validity | None
    """`null` where the log did not know it yet."""

    after: Validity
    by: Hash | None
    """`superseded`: by which summary. `older_source`: the job of the newer source."""

    index: Count
    """The event that made it so."""

    recorded_at: Time

    @classmethod
    def of(cls, change: ValidityChange) -> ValidityChanged:
        return cls(
            scope=change.row.scope,
            conversation=change.row.conversation,
            from_pair=change.row.from_pair,
            to_pair=change.row.to_pair,
            identity=change.row.identity,
            before=change.before,
            after=change.after,
            by=change.by,
            index=change.index,
            recorded_at=moment(change.recorded_at),
        )


class DiffDocument(Document):
    """`compaction-ledger diff`. Changes are in the order of the events that made them last."""

    start: PointRecord
    end: PointRecord
    validity: list[ValidityChanged]
    """Summaries that became valid, or were superseded or overtaken by a newer source."""

    changes: list[RowChanged]
    """Every row of the read models that is new or another one."""

    erased: Count
    """How many events between the points are erased: of them nothing is said."""

    @classmethod
    def of(cls, found: Difference) -> DiffDocument:
        return cls(
            start=PointRecord.of(found.start, found.size),
            end=PointRecord.of(found.end, found.size),
            validity=list(map(ValidityChanged.of, found.validity)),
            changes=list(map(RowChanged.of, found.changes)),
            erased=found.erased,
        )


def _members(row: AnyRow) -> dict[str, Any]:
    """A row's members as JSON has them."""
    members: dict[str, Any] = _ROW.dump_python(row, mode="json")
    return members
