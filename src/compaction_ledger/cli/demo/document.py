"""What `demo` answers."""

from __future__ import annotations

from pydantic import Field

from compaction_ledger.cli.documents.common import Count, Document
from compaction_ledger.cli.documents.compaction import CompactDocument
from compaction_ledger.cli.documents.erasing import EraseDocument
from compaction_ledger.cli.documents.records import EventRecord, ShowDocument
from compaction_ledger.cli.documents.requests import ManifestDocument
from compaction_ledger.cli.documents.signing import CheckpointDocument
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
    """Its place in the log."""


class DemoCaseA(Document):
    """The model writes an excellent summary and also calls a tool."""

    compaction: CompactDocument
    events: list[EventRecord]
    """What was recorded."""

    manifest: ManifestDocument
    """The next request, of originals."""


class DemoCaseB(Document):
    """A message changes after its range was summarized."""

    message: str
    """The id of the message that was edited."""

    text_before: str
    text_after: str
    request: DemoRequest
    """The next request, and its delivery."""

    target: PlannedTarget
    """The range as it is due again."""

    range: ShowDocument
    """Both summaries."""

    events: list[EventRecord] = Field(description="What was recorded when the range was due again.")


class DemoCaseC(Document):
    """A valid summary is stored, and the request cannot fit it."""

    request: DemoRequest
    newest_mixed: ManifestDocument = Field(description="What the other fallback would have held.")


class DemoTampering(Document):
    """A copy of the file was changed behind the ledger's back."""

    index: Count
    """The event whose payload was changed."""

    byte: Count
    """Where in it a bit was changed."""

    verified: VerifyDocument
    """The file itself."""

    verified_copy: VerifyDocument
    """The changed copy."""


class DemoProof(Document):
    """On another copy: the log was signed, and a conversation erased."""

    checkpoint: CheckpointDocument
    """What was signed."""

    erased: EraseDocument
    """What was erased afterwards."""


class DemoDocument(Document):
    """`compaction-ledger demo`. ``ledger`` is the file that was kept, if one was."""

    ok: bool
    """Whether every claim holds."""

    ledger: str | None
    """The file that was kept, if one was."""

    imported: ImportDocument
    """Step 1."""

    plan: PlanDocument
    """Steps 1 and 2."""

    compaction: CompactDocument
    """Step 3."""

    events: list[EventRecord]
    """Step 3: what was recorded."""

    ranges: list[ShowDocument]
    """Step 4."""

    originals_bytes: Count = Field(description="What the originals alone would take.")
    request: DemoRequest
    """Step 5."""

    case_a: DemoCaseA
    case_b: DemoCaseB
    case_c: DemoCaseC
    tampering: DemoTampering
    proof: DemoProof
    claims: list[Claim]
    """Everything that was claimed."""
