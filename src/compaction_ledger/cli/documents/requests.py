"""What `assemble` answers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from compaction_ledger.cli.documents.common import (
    Count,
    Document,
    Hash,
    LineLeftOut,
    Model,
    Time,
    moment,
)
from compaction_ledger.domain.assembly import Assembly
from compaction_ledger.domain.manifest import Disposition, Manifest, Mode, RejectionReason


class Pairs(Document):
    """Consecutive pairs, inclusive, that are treated alike; ``reason`` if they are left out."""

    from_pair: Count
    to_pair: Count
    disposition: Disposition
    """`verbatim`; `summarized`: the user verbatim, the replies summarized; or `left_out`."""

    reason: str | None
    """Why they are left out."""


class SummaryUsed(Document):
    """A summary that stands in the request for the replies of its range."""

    from_pair: Count
    to_pair: Count
    identity: Hash
    index: Count
    """Where its completion stands in the log."""

    model: Model
    prompt: str
    recorded_at: Time
    """When it was recorded."""


class SummaryRejected(Document):
    """A stored summary that the request does not use, and why."""

    from_pair: Count
    to_pair: Count
    identity: str
    reason: RejectionReason
    """Why it was not used."""


class ManifestDocument(Document):
    """What the request holds (H8). ``replaced`` counts lone surrogates per message id."""

    scope: str
    conversation: str
    shape: str
    mode: Mode
    """`full`, or the fallback that was taken (H4, H5)."""

    bytes_used: Count
    """The size of the request in UTF-8."""

    bytes_allowed: Count
    """The budget."""

    request_digest: Hash
    """Of shape and bytes of the request."""

    pairs: list[Pairs]
    """Every pair in one of these groups, in order."""

    summaries: list[SummaryUsed]
    """The summaries that stand in the request."""

    rejected: list[SummaryRejected]
    """Stored summaries that do not, and why."""

    lines_left_out: list[LineLeftOut]
    """The lines that make no pair (E2)."""

    replaced: dict[str, Count]
    """How many lone surrogates were replaced, by message id (E6)."""

    @classmethod
    def of(cls, manifest: Manifest) -> ManifestDocument:
        return cls(
            scope=manifest.scope,
            conversation=manifest.conversation,
            shape=manifest.shape,
            mode=manifest.mode,
            bytes_used=manifest.bytes_used,
            bytes_allowed=manifest.bytes_allowed,
            request_digest=manifest.request_digest,
            pairs=[
                Pairs(
                    from_pair=group.from_pair,
                    to_pair=group.to_pair,
                    disposition=group.disposition,
                    reason=group.reason,
                )
                for group in manifest.groups
            ],
            summaries=[
                SummaryUsed(
                    from_pair=used.from_pair,
                    to_pair=used.to_pair,
                    identity=used.identity,
                    index=used.index,
                    model=Model.of(used.model),
                    prompt=str(used.prompt),
                    recorded_at=moment(used.recorded_at),
                )
                for used in manifest.summaries
            ],
            rejected=[
                SummaryRejected(
                    from_pair=one.from_pair,
                    to_pair=one.to_pair,
                    identity=one.identity,
                    reason=one.reason,
                )
                for one in manifest.rejected
            ],
            lines_left_out=[LineLeftOut.of(line) for line in manifest.lines_left_out],
            replaced=dict(manifest.replaced),
        )

    def count(self, disposition: Disposition) -> int:
        """How many pairs have this disposition."""
        return sum(p.to_pair - p.from_pair + 1 for p in self.pairs if p.disposition == disposition)


class DeliveryRecorded(Document):
    """Where the log says that the request was sent."""

    index: Count
    """Its place in the log."""

    run: str | None
    """What `--run` named."""


class AssembleDocument(Document):
    """`compaction-ledger assemble`. ``request`` is what to send, in the shape asked for."""

    manifest: ManifestDocument
    """What the request holds."""

    request: dict[str, Any] = Field(
        description="The request's messages, and `system` where it stands apart."
    )
    file: str | None = Field(description="The file that the request's bytes were written to.")
    delivery: DeliveryRecorded | None
    """With `--record`: where the log says that it was sent."""

    @classmethod
    def of(
        cls, assembly: Assembly, *, file: str | None, delivery: DeliveryRecorded | None
    ) -> AssembleDocument:
        request: dict[str, Any] = {"messages": assembly.messages}
        if assembly.system is not None:
            request["system"] = assembly.system
        return cls(
            manifest=ManifestDocument.of(assembly.manifest),
            request=request,
            file=file,
            delivery=delivery,
        )
