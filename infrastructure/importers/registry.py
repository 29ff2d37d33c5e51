"""The importers by name, and finding the one that a file is for."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.domain.errors import InvalidSetting, MalformedRecord
from compaction_ledger.infrastructure.importers.anthropic_messages import AnthropicMessagesImporter
from compaction_ledger.infrastructure.importers.bedrock_converse import BedrockConverseImporter
from compaction_ledger.infrastructure.importers.chatgpt_export import ChatGPTExportImporter
from compaction_ledger.infrastructure.importers.claude_ai_export import ClaudeAIExportImporter
from compaction_ledger.infrastructure.importers.claude_code import ClaudeCodeImporter
from compaction_ledger.infrastructure.importers.codex_rollout import CodexRolloutImporter
from compaction_ledger.infrastructure.importers.goodai import GoodAIImporter
from compaction_ledger.infrastructure.importers.google_adk import GoogleADKImporter
from compaction_ledger.infrastructure.importers.interface import Importer
from compaction_ledger.infrastructure.importers.langchain_messages import LangChainMessagesImporter
from compaction_ledger.infrastructure.importers.memorybank import MemoryBankImporter
from compaction_ledger.infrastructure.importers.native import NativeImporter
from compaction_ledger.infrastructure.importers.openai_chat import OpenAIChatImporter
from compaction_ledger.infrastructure.importers.openai_responses import OpenAIResponsesImporter
from compaction_ledger.infrastructure.importers.pairs import PairsImporter
from compaction_ledger.infrastructure.importers.pi_session import PiSessionImporter
from compaction_ledger.infrastructure.importers.pydantic_ai_messages import (
    PydanticAIMessagesImporter,
)
from compaction_ledger.infrastructure.importers.reading import label, read_sample
from compaction_ledger.infrastructure.importers.swe_agent import SWEAgentImporter
from compaction_ledger.infrastructure.importers.taubench import TauBenchImporter

IMPORTERS: tuple[Importer, ...] = (
    AnthropicMessagesImporter(),
    BedrockConverseImporter(),
    ChatGPTExportImporter(),
    ClaudeAIExportImporter(),
    ClaudeCodeImporter(),
    CodexRolloutImporter(),
    GoodAIImporter(),
    GoogleADKImporter(),
    LangChainMessagesImporter(),
    MemoryBankImporter(),
    NativeImporter(),
    OpenAIChatImporter(),
    OpenAIResponsesImporter(),
    PairsImporter(),
    PiSessionImporter(),
    PydanticAIMessagesImporter(),
    SWEAgentImporter(),
    TauBenchImporter(),
)
_NAMES = ", ".join(importer.name for importer in IMPORTERS)


def importer_named(name: str) -> Importer:
    """The importer called ``name``; raises :class:`InvalidSetting` that lists the names."""
    for importer in IMPORTERS:
        if importer.name == name:
            return importer
    raise InvalidSetting(f"{name!a} is none of {_NAMES}", place="format")


def detect(path: Path) -> Importer:
    """The one importer whose format the file has beyond doubt.

    Raises :class:`MalformedRecord` if the file cannot be read as JSON, if no format matches or if
    several do: nothing is guessed.
    """
    sample = read_sample(path)
    found = [importer for importer in IMPORTERS if importer.sniff(sample)]
    if len(found) == 1:
        return found[0]
    matching = ", ".join(importer.name for importer in found)
    problem = f"could be {matching}" if found else "is of no known format"
    raise MalformedRecord(f"{problem}; name one of {_NAMES}", place=label(path))
