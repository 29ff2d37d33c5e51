"""An event-sourced ledger of conversation summaries, each bound to the messages it came from.

Names are loaded when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compaction_ledger.aio import AsyncLedger as AsyncLedger
    from compaction_ledger.aio import AsyncWindow as AsyncWindow
    from compaction_ledger.domain.assembly import Assembly as Assembly
    from compaction_ledger.domain.conversation import Conversation as Conversation
    from compaction_ledger.domain.conversation import Message as Message
    from compaction_ledger.domain.conversation import Pair as Pair
    from compaction_ledger.domain.conversation import Run as Run
    from compaction_ledger.domain.erasure import ErasedFact as ErasedFact
    from compaction_ledger.domain.errors import AlreadyClaimed as AlreadyClaimed
    from compaction_ledger.domain.errors import AlreadyCompleted as AlreadyCompleted
    from compaction_ledger.domain.errors import BrokenTranscript as BrokenTranscript
    from compaction_ledger.domain.errors import BudgetTooSmall as BudgetTooSmall
    from compaction_ledger.domain.errors import DamagedLog as DamagedLog
    from compaction_ledger.domain.errors import DamagedOriginal as DamagedOriginal
    from compaction_ledger.domain.errors import DuplicateMessageId as DuplicateMessageId
    from compaction_ledger.domain.errors import Erased as Erased
    from compaction_ledger.domain.errors import Exhausted as Exhausted
    from compaction_ledger.domain.errors import HistoryChanged as HistoryChanged
    from compaction_ledger.domain.errors import InvalidInput as InvalidInput
    from compaction_ledger.domain.errors import InvalidSetting as InvalidSetting
    from compaction_ledger.domain.errors import KeyMissing as KeyMissing
    from compaction_ledger.domain.errors import LedgerError as LedgerError
    from compaction_ledger.domain.errors import MalformedMessage as MalformedMessage
    from compaction_ledger.domain.errors import NotAnUpdate as NotAnUpdate
    from compaction_ledger.domain.errors import NotTheHolder as NotTheHolder
    from compaction_ledger.domain.errors import PinRefused as PinRefused
    from compaction_ledger.domain.errors import Refused as Refused
    from compaction_ledger.domain.errors import StoreError as StoreError
    from compaction_ledger.domain.errors import UnknownConversation as UnknownConversation
    from compaction_ledger.domain.errors import WindowTooSmall as WindowTooSmall
    from compaction_ledger.domain.finish import Answer as Answer
    from compaction_ledger.domain.finish import FinishFacts as FinishFacts
    from compaction_ledger.domain.finish import Usage as Usage
    from compaction_ledger.domain.history import Found as Found
    from compaction_ledger.domain.history import HistoryQuery as HistoryQuery
    from compaction_ledger.domain.history import Hit as Hit
    from compaction_ledger.domain.identity import Job as Job
    from compaction_ledger.domain.identity import ModelIdentity as ModelIdentity
    from compaction_ledger.domain.identity import PromptVersion as PromptVersion
    from compaction_ledger.domain.manifest import Manifest as Manifest
    from compaction_ledger.domain.moments import Moment as Moment
    from compaction_ledger.domain.ports import Summarizer as Summarizer
    from compaction_ledger.domain.ports import Transcripts as Transcripts
    from compaction_ledger.domain.prompts import DEFAULT_REGISTRY as DEFAULT_REGISTRY
    from compaction_ledger.domain.prompts import PromptRegistry as PromptRegistry
    from compaction_ledger.domain.prompts import PromptSpec as PromptSpec
    from compaction_ledger.domain.summarization import AssistantReply as AssistantReply
    from compaction_ledger.domain.summarization import SummaryRequest as SummaryRequest
    from compaction_ledger.domain.transcript import NewMessage as NewMessage
    from compaction_ledger.domain.transcript import NewRun as NewRun
    from compaction_ledger.domain.window.chunks import ChunkJob as ChunkJob
    from compaction_ledger.domain.window.events import PinAccepted as PinAccepted
    from compaction_ledger.domain.window.keys import WindowKey as WindowKey
    from compaction_ledger.domain.window.originals import Originals as Originals
    from compaction_ledger.domain.window.pins import PinProposer as PinProposer
    from compaction_ledger.domain.window.pins import RulePinProposer as RulePinProposer
    from compaction_ledger.domain.window.placement import WindowManifest as WindowManifest
    from compaction_ledger.domain.window.policy import WindowBudget as WindowBudget
    from compaction_ledger.domain.window.prompts import WindowPrompt as WindowPrompt
    from compaction_ledger.domain.window.prompts import WindowPrompts as WindowPrompts
    from compaction_ledger.domain.window.structure import StructuredSummary as StructuredSummary
    from compaction_ledger.domain.window.summarization import ChunkRequest as ChunkRequest
    from compaction_ledger.domain.window.summarization import ChunkSummarizer as ChunkSummarizer
    from compaction_ledger.domain.window.tokens import TokenCounter as TokenCounter
    from compaction_ledger.domain.window.tokens import TokenizerCounter as TokenizerCounter
    from compaction_ledger.domain.window.tokens import Utf8Counter as Utf8Counter
    from compaction_ledger.domain.windows import WindowPolicy as WindowPolicy
    from compaction_ledger.domain.work import Backlog as Backlog
    from compaction_ledger.infrastructure.originals.dynamodb import (
        DynamoDBOriginals as DynamoDBOriginals,
    )
    from compaction_ledger.infrastructure.originals.s3 import S3Originals as S3Originals
    from compaction_ledger.infrastructure.pin_proposers.pydantic_ai import (
        PydanticAIPinProposer as PydanticAIPinProposer,
    )
    from compaction_ledger.infrastructure.summarizers.chunk_extractive import (
        ExtractiveChunkSummarizer as ExtractiveChunkSummarizer,
    )
    from compaction_ledger.infrastructure.summarizers.chunk_pydantic_ai import (
        PydanticAIChunkSummarizer as PydanticAIChunkSummarizer,
    )
    from compaction_ledger.infrastructure.summarizers.chunk_scripted import (
        ScriptedChunkSummarizer as ScriptedChunkSummarizer,
    )
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
    from compaction_ledger.usecases.erasing import Erasure as Erasure
    from compaction_ledger.usecases.given import Delivered as Delivered
    from compaction_ledger.usecases.history import HistorySearch as HistorySearch
    from compaction_ledger.usecases.replaying import ConversationThen as ConversationThen
    from compaction_ledger.usecases.replaying import Difference as Difference
    from compaction_ledger.usecases.replaying import LedgerThen as LedgerThen
    from compaction_ledger.usecases.serving_then import ServingOptions as ServingOptions
    from compaction_ledger.usecases.status import LedgerStatus as LedgerStatus
    from compaction_ledger.usecases.stopping import Stopped as Stopped
    from compaction_ledger.usecases.window.compacting import ChunkOutcome as ChunkOutcome
    from compaction_ledger.usecases.window.holding import RejectedItem as RejectedItem
    from compaction_ledger.usecases.window.pinning import RefusedQuote as RefusedQuote
    from compaction_ledger.usecases.window.preparing import Prepared as Prepared
    from compaction_ledger.window import Window as Window
    from compaction_ledger.worker import SignalStop as SignalStop

_HOMES = {
    "AlreadyClaimed": "domain.errors",
    "AlreadyCompleted": "domain.errors",
    "Answer": "domain.finish",
    "Assembly": "domain.assembly",
    "AssistantReply": "domain.summarization",
    "AsyncLedger": "aio",
    "AsyncWindow": "aio",
    "Backlog": "domain.work",
    "BrokenTranscript": "domain.errors",
    "BudgetTooSmall": "domain.errors",
    "ChunkJob": "domain.window.chunks",
    "ChunkOutcome": "usecases.window.compacting",
    "ChunkRequest": "domain.window.summarization",
    "ChunkSummarizer": "domain.window.summarization",
    "CompactionReport": "usecases.compaction",
    "Conversation": "domain.conversation",
    "ConversationThen": "usecases.replaying",
    "DEFAULT_REGISTRY": "domain.prompts",
    "DamagedLog": "domain.errors",
    "DamagedOriginal": "domain.errors",
    "Delivered": "usecases.given",
    "Difference": "usecases.replaying",
    "DuplicateMessageId": "domain.errors",
    "Erased": "domain.errors",
    "ErasedFact": "domain.erasure",
    "Erasure": "usecases.erasing",
    "DynamoDBOriginals": "infrastructure.originals.dynamodb",
    "Exhausted": "domain.errors",
    "ExtractiveChunkSummarizer": "infrastructure.summarizers.chunk_extractive",
    "ExtractiveSummarizer": "infrastructure.summarizers.extractive",
    "FinishFacts": "domain.finish",
    "Found": "domain.history",
    "HistoryChanged": "domain.errors",
    "HistoryQuery": "domain.history",
    "HistorySearch": "usecases.history",
    "Hit": "domain.history",
    "InvalidInput": "domain.errors",
    "InvalidSetting": "domain.errors",
    "Job": "domain.identity",
    "Ledger": "ledger",
    "KeyMissing": "domain.errors",
    "LedgerError": "domain.errors",
    "LedgerStatus": "usecases.status",
    "LedgerThen": "usecases.replaying",
    "MalformedMessage": "domain.errors",
    "Manifest": "domain.manifest",
    "Message": "domain.conversation",
    "ModelIdentity": "domain.identity",
    "Moment": "domain.moments",
    "NewMessage": "domain.transcript",
    "NewRun": "domain.transcript",
    "NotAnUpdate": "domain.errors",
    "NotTheHolder": "domain.errors",
    "Originals": "domain.window.originals",
    "Pace": "serving",
    "Pair": "domain.conversation",
    "PinAccepted": "domain.window.events",
    "PinProposer": "domain.window.pins",
    "PinRefused": "domain.errors",
    "Prepared": "usecases.window.preparing",
    "PromptRegistry": "domain.prompts",
    "PromptSpec": "domain.prompts",
    "PromptVersion": "domain.identity",
    "PydanticAIChunkSummarizer": "infrastructure.summarizers.chunk_pydantic_ai",
    "PydanticAIPinProposer": "infrastructure.pin_proposers.pydantic_ai",
    "PydanticAISummarizer": "infrastructure.summarizers.pydantic_ai",
    "Refused": "domain.errors",
    "RefusedQuote": "usecases.window.pinning",
    "RejectedItem": "usecases.window.holding",
    "RulePinProposer": "domain.window.pins",
    "Run": "domain.conversation",
    "S3Originals": "infrastructure.originals.s3",
    "ScriptedChunkSummarizer": "infrastructure.summarizers.chunk_scripted",
    "ScriptedSummarizer": "infrastructure.summarizers.scripted",
    "ServingOptions": "usecases.serving_then",
    "Settings": "settings",
    "SignalStop": "worker",
    "Stopped": "usecases.stopping",
    "StoreError": "domain.errors",
    "StructuredSummary": "domain.window.structure",
    "Summarizer": "domain.ports",
    "SummaryRequest": "domain.summarization",
    "TokenCounter": "domain.window.tokens",
    "TokenizerCounter": "domain.window.tokens",
    "Transcripts": "domain.ports",
    "UnknownConversation": "domain.errors",
    "Usage": "domain.finish",
    "Utf8Counter": "domain.window.tokens",
    "Window": "window",
    "WindowBudget": "domain.window.policy",
    "WindowKey": "domain.window.keys",
    "WindowManifest": "domain.window.placement",
    "WindowPolicy": "domain.windows",
    "WindowPrompt": "domain.window.prompts",
    "WindowPrompts": "domain.window.prompts",
    "WindowTooSmall": "domain.errors",
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
