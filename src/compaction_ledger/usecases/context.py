"""What every use case works with: the ports of one ledger, its policy, its registry and its telemetry."""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction_ledger.domain.ports import Log, ReadModelStore, Transcripts
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.usecases.telemetry import NO_TELEMETRY, Telemetry


@dataclass(frozen=True, slots=True)
class Context:
    """The ports of one open ledger."""

    log: Log
    transcripts: Transcripts
    read_models: ReadModelStore
    registry: PromptRegistry
    policy: WindowPolicy
    telemetry: Telemetry = field(default=NO_TELEMETRY)
