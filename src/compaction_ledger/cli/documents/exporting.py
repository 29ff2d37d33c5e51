"""What `export` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from compaction_ledger.cli.documents.common import Count, Document

if TYPE_CHECKING:
    from compaction_ledger.export_parts import AuditBundle


class ExportDocument(Document):
    """`compaction-ledger export`: the audit bundle that was written."""

    output: str
    """The file."""

    sha256: str
    """The hash of the file."""

    kind: Literal["log", "conversation"]
    subject: str | None
    """The reference of the conversation."""

    origin: str
    """The name of the log."""

    size: Count
    """How many events the log's checkpoint is of."""

    root: str
    """The root of the tree over them."""

    events: Count
    """How many events are in the bundle."""

    checkpoints: Count
    """How many older checkpoints are in it."""

    later: Count
    """How many events came after the checkpoint, and are not in the bundle."""

    keys: list[str]
    """The log's verifier keys: an auditor must get them by other means than with the bundle."""

    @classmethod
    def of(cls, bundle: AuditBundle) -> ExportDocument:
        made = bundle.exported
        return cls(
            output=str(bundle.path),
            sha256=bundle.sha256,
            kind="log" if made.subject is None else "conversation",
            subject=made.subject,
            origin=made.origin,
            size=made.size,
            root=made.root.hex(),
            events=made.events,
            checkpoints=made.checkpoints,
            later=bundle.later,
            keys=list(bundle.keys),
        )
