"""What `verify`, `rebuild` and `version` answer, and what an error looks like."""

from __future__ import annotations

from compaction_ledger.cli.documents.common import Count, Document
from compaction_ledger.usecases.verifying import Verification


class FindingRecord(Document):
    """Something that is wrong. ``index`` is its place in the log, where it has one."""

    code: str
    """The kind of finding."""

    index: int | None
    """Its place in the log, where it has one."""

    message: str
    sides: list[str]
    """The checkpoints that contradict each other: the signed one first, then what the log says now."""


class VerifyDocument(Document):
    """`compaction-ledger verify`. ``lag`` counts events that the read models do not reflect yet."""

    ok: bool
    """Whether nothing was found."""

    seal_only: bool
    """Whether the read models were left out."""

    events: Count
    """How many events were looked at."""

    lag: Count
    """How many events the read models do not reflect yet."""

    heads: Count
    """With how many signed heads the log was compared: checkpoints, and what witnesses cosigned last.

    Copies of one head count once.
    """

    signed: Count
    """So many events, from the first on, are those that were signed."""

    witnesses: list[str]
    """The names of the witnesses that were asked."""

    findings: list[FindingRecord]

    @classmethod
    def of(cls, found: Verification, *, seal_only: bool) -> VerifyDocument:
        return cls(
            ok=found.ok,
            seal_only=seal_only,
            events=found.events,
            lag=found.lag,
            heads=found.heads,
            signed=found.signed,
            witnesses=list(found.witnesses),
            findings=[
                FindingRecord(
                    code=one.code, index=one.index, message=one.message, sides=list(one.sides)
                )
                for one in found.findings
            ],
        )


class RebuildDocument(Document):
    """`compaction-ledger rebuild`."""

    events: Count
    """How many events the read models reflect now."""


class VersionDocument(Document):
    """`compaction-ledger version`: the software and the formats that it writes."""

    version: str
    python: str
    sqlite: str
    file_format: Count
    envelope_format: Count
    events: dict[str, Count]
    """The schema version that is written, by stored name."""

    prompt: str
    """The prompt version of new jobs."""


class ErrorRecord(Document):
    """What went wrong. ``place`` is the file, line, option or message that it is about."""

    code: str
    """Stable; see the error codes in cli.md."""

    message: str
    place: str | None
    """The file, line, option or message that it is about."""


class ErrorDocument(Document):
    """What any command answers, with exit code 1 or 2, when it could not do it."""

    error: ErrorRecord
