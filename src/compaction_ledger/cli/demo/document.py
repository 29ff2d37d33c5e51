"""What `demo` answers."""

from __future__ import annotations

from pydantic import Field

from compaction_ledger.cli.documents.common import Count, Document
from compaction_ledger.cli.documents.compaction import CompactDocument
from compaction_ledger.cli.documents.records import EventRecord, ShowDocument
from compaction_ledger.cli.documents.requests import ManifestDocument
from compaction_ledger.cli.documents.transcripts import ImportDocument, PlanDocument, PlannedTarget
from compaction_ledger.cli.documents.upkeep import VerifyDocument


class Claim(Document):
    """Something that the demonstration says, and whether it was found to be so."""

    claim: str
    holds: bool


class DemoRequest(Document):
    """A request that was assembled, and the index of its delivery in the log."""

    manifest: ManifestDocument
    delivery: Count


class DemoCaseA(Document):
    """The model writes an excellent summary and also calls a tool."""

    compaction: CompactDocument
    events: list[EventRecord]
    manifest: ManifestDocument


class DemoCaseB(Document):
    """A message changes after its range was summarized."""

    message: str
    text_before: str
    text_after: str
    request: DemoRequest
    target: PlannedTarget
    range: ShowDocument
    events: list[EventRecord] = Field(description="What was recorded when the range was due again.")


class DemoCaseC(Document):
    """A valid summary is stored, and the request cannot fit it."""

    request: DemoRequest
    newest_mixed: ManifestDocument = Field(description="What the other fallback would have held.")


class DemoTampering(Document):
    """A copy of the file was changed behind the ledger's back."""

    index: Count
    byte_before: str
    byte_after: str
    verified: VerifyDocument
    verified_copy: VerifyDocument


class DemoDocument(Document):
    """`compaction-ledger demo`. ``ledger`` is the file that was kept, if one was."""

    ok: bool
    ledger: str | None
    imported: ImportDocument
    plan: PlanDocument
    compaction: CompactDocument
    events: list[EventRecord]
    ranges: list[ShowDocument]
    originals_bytes: Count = Field(description="What the originals alone would take.")
    request: DemoRequest
    case_a: DemoCaseA
    case_b: DemoCaseB
    case_c: DemoCaseC
    tampering: DemoTampering
    claims: list[Claim]
