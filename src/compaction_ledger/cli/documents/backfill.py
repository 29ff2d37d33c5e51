"""What `backfill` answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from compaction_ledger.cli.documents.common import Count, Document
from compaction_ledger.cli.documents.compaction import FINDINGS
from compaction_ledger.usecases.archiving import ArchiveImport, Outcome, RefusedConversation
from compaction_ledger.usecases.working import LookFailure

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class RefusedRecord(Document):
    """A conversation of the archive that was not taken over."""

    scope: str | None
    """Whose it is, if that can be told."""

    place: str
    """The file, and the line where it begins."""

    conversation: str | None
    """Its id, if that can be told."""

    code: str
    """The error's code."""

    message: str
    """What is wrong, with the line."""

    @classmethod
    def of(cls, refused: RefusedConversation) -> RefusedRecord:
        return cls(
            scope=refused.scope,
            place=refused.place,
            conversation=refused.conversation,
            code=refused.error.code,
            message=str(refused.error),
        )


class ConversationFailed(Document):
    """A conversation that met an error when it was looked at, and is looked at again later."""

    scope: str
    conversation: str
    code: str
    message: str

    @classmethod
    def of(cls, failure: LookFailure) -> ConversationFailed:
        return cls(
            scope=failure.scope,
            conversation=failure.conversation,
            code=failure.code,
            message=failure.message,
        )


class ArchiveRecord(Document):
    """What became of the archive."""

    conversations: dict[str, Count]
    """`new`, `updated`, `unchanged`, `ahead` (the ledger has all of it and more), `refused`."""

    pairs: Count
    """Pairs that count, in all conversations of the archive (E1)."""

    targets: Count
    """Ranges that the policy names in them (W1)."""

    done_before: Count
    """How many of these had a summary before."""

    seconds: float
    """How long it took."""

    @classmethod
    def of(cls, imported: ArchiveImport, seconds: float) -> ArchiveRecord:
        return cls(
            conversations={name: imported.outcomes[name] for name in OUTCOMES},
            pairs=imported.pairs,
            targets=imported.targets,
            done_before=imported.done,
            seconds=round(seconds, 3),
        )


class SummarizedRecord(Document):
    """What this process did with what was due; others may have done their share."""

    ranges: dict[str, Count]
    """What became of them, by result."""

    done: Count
    """How many ranges of the ledger got a summary meanwhile, from whatever process."""

    seconds: float
    """How long it took."""


class BackfillDocument(Document):
    """`compaction-ledger backfill`."""

    stopped: bool
    """Whether it was stopped before its end."""

    signal: str | None
    """The name of the signal that stopped it."""

    archive: ArchiveRecord
    summarized: SummarizedRecord | None
    """`null` with `--import-only`, and after a stop in the archive."""

    failures: list[ConversationFailed]
    """Conversations that met an error, each with its last one."""

    refused: list[RefusedRecord]
    """Conversations of the archive that were not taken over."""

    events: Count
    """How many events the log holds now."""

    seconds: float
    """How long all of it took."""

    peak_memory: Count | None
    """The most memory that this process held, in bytes, where the system tells it."""

    @property
    def is_finding(self) -> bool:
        """Whether something was left undone that another run will not do by itself."""
        ranges: Mapping[str, int] = self.summarized.ranges if self.summarized else {}
        return bool(self.refused or self.failures or any(ranges.get(it) for it in FINDINGS))


def failures_of(failures: Iterable[LookFailure]) -> list[ConversationFailed]:
    """Each conversation's last error, in order of scope and id."""
    last = {(one.scope, one.conversation): one for one in failures}
    return [ConversationFailed.of(last[place]) for place in sorted(last)]
