"""An event-sourced ledger of conversation summaries, each bound to the messages it came from.

Names are loaded when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compaction_ledger.aio import AsyncLedger as AsyncLedger
    from compaction_ledger.domain.assembly import Assembly as Assembly
    from compaction_ledger.domain.conversation import Conversation as Conversation
    from compaction_ledger.domain.conversation import Message as Message
    from compaction_ledger.domain.conversation import Pair as Pair
    from compaction_ledger.domain.conversation import Run as Run
    from compaction_ledger.domain.errors import AlreadyClaimed as AlreadyClaimed
    from compaction_ledger.domain.errors import AlreadyCompleted as AlreadyCompleted
    from compaction_ledger.domain.errors import BudgetTooSmall as BudgetTooSmall
    from compaction_ledger.domain.errors import DamagedLog as DamagedLog
    from compaction_ledger.domain.errors import DuplicateMessageId as DuplicateMessageId
    from compaction_ledger.domain.errors import Exhausted as Exhausted
    from compaction_ledger.domain.errors import InvalidInput as InvalidInput
    from compaction_ledger.domain.errors import InvalidSetting as InvalidSetting
    from compaction_ledger.domain.errors import LedgerError as LedgerError
    from compaction_ledger.domain.errors import NotAnUpdate as NotAnUpdate
    from compaction_ledger.domain.errors import NotTheHolder as NotTheHolder
    from compaction_ledger.domain.errors import Refused as Refused
    from compaction_ledger.domain.errors import StoreError as StoreError
    from compaction_ledger.domain.errors import UnknownConversation as UnknownConversation
    from compaction_ledger.domain.finish import Answer as Answer
    from compaction_ledger.domain.finish import FinishFacts as FinishFacts
    from compaction_ledger.domain.finish import Usage as Usage
    from compaction_ledger.domain.identity import Job as Job
    from compaction_ledger.domain.identity import ModelIdentity as ModelIdentity
    from compaction_ledger.domain.identity import PromptVersion as PromptVersion
    from compaction_ledger.domain.manifest import Manifest as Manifest
    from compaction_ledger.domain.ports import Summarizer as Summarizer
    from compaction_ledger.domain.ports import Transcripts as Transcripts
    from compaction_ledger.domain.prompts import DEFAULT_REGISTRY as DEFAULT_REGISTRY
    from compaction_ledger.domain.prompts import PromptRegistry as PromptRegistry
    from compaction_ledger.domain.prompts import PromptSpec as PromptSpec
    from compaction_ledger.domain.summarization import AssistantReply as AssistantReply
    from compaction_ledger.domain.summarization import SummaryRequest as SummaryRequest
    from compaction_ledger.domain.transcript import NewMessage as NewMessage
    from compaction_ledger.domain.transcript import NewRun as NewRun
    from compaction_ledger.domain.windows import WindowPolicy as WindowPolicy
    from compaction_ledger.domain.work import Backlog as Backlog
    from compaction_ledger.infrastructure.summarizers.extractive import (
        ExtractiveSummarizer as ExtractiveSummarizer,
    )
    from compaction_ledger.infrastructure.summarizers.pydantic_ai import (
        PydanticAISummarizer as PydanticAISummarizer,
    )
    from compaction_ledger.infrastructure.summarizers.scripted import (
        ScriptedSummarizer as ScriptedSummarizer,
    )
    from compaction_ledger.ledger import Ledger as Ledger
    from compaction_ledger.serving import Pace as Pace
    from compaction_ledger.settings import Settings as Settings
    from compaction_ledger.usecases.compaction import CompactionReport as CompactionReport
    from compaction_ledger.usecases.status import LedgerStatus as LedgerStatus
    from compaction_ledger.usecases.stopping import Stopped as Stopped
    from compaction_ledger.worker import SignalStop as SignalStop

_HOMES = {
    "AlreadyClaimed": "domain.errors",
    "AlreadyCompleted": "domain.errors",
    "Answer": "domain.finish",
    "Assembly": "domain.assembly",
    "AssistantReply": "domain.summarization",
    "AsyncLedger": "aio",
    "Backlog": "domain.work",
    "BudgetTooSmall": "domain.errors",
    "CompactionReport": "usecases.compaction",
    "Conversation": "domain.conversation",
    "DEFAULT_REGISTRY": "domain.prompts",
    "DamagedLog": "domain.errors",
    "DuplicateMessageId": "domain.errors",
    "Exhausted": "domain.errors",
    "ExtractiveSummarizer": "infrastructure.summarizers.extractive",
    "FinishFacts": "domain.finish",
    "InvalidInput": "domain.errors",
    "InvalidSetting": "domain.errors",
    "Job": "domain.identity",
    "Ledger": "ledger",
    "LedgerError": "domain.errors",
    "LedgerStatus": "usecases.status",
    "Manifest": "domain.manifest",
    "Message": "domain.conversation",
    "ModelIdentity": "domain.identity",
    "NewMessage": "domain.transcript",
    "NewRun": "domain.transcript",
    "NotAnUpdate": "domain.errors",
    "NotTheHolder": "domain.errors",
    "Pace": "serving",
    "Pair": "domain.conversation",
    "PromptRegistry": "domain.prompts",
    "PromptSpec": "domain.prompts",
    "PromptVersion": "domain.identity",
    "PydanticAISummarizer": "infrastructure.summarizers.pydantic_ai",
    "Refused": "domain.errors",
    "Run": "domain.conversation",
    "ScriptedSummarizer": "infrastructure.summarizers.scripted",
    "Settings": "settings",
    "SignalStop": "worker",
    "Stopped": "usecases.stopping",
    "StoreError": "domain.errors",
    "Summarizer": "domain.ports",
    "SummaryRequest": "domain.summarization",
    "Transcripts": "domain.ports",
    "UnknownConversation": "domain.errors",
    "Usage": "domain.finish",
    "WindowPolicy": "domain.windows",
}

# Plain strings; type checkers read the imports above.
__all__ = [*sorted(_HOMES), "__version__"]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
