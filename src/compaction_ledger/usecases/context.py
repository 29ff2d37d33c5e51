"""What every use case works with: the ports of one ledger, its policy and its registry."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_ledger.domain.ports import Log, ReadModelStore, Transcripts
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.windows import WindowPolicy


@dataclass(frozen=True, slots=True)
class Context:
    """The ports of one open ledger."""

    log: Log
    transcripts: Transcripts
    read_models: ReadModelStore
    registry: PromptRegistry
    policy: WindowPolicy
