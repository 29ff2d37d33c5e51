"""Chunks of a window summarized by any model provider, through ``pydantic-ai-slim`` (an extra)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.window.structure import STRUCTURE_SCHEMA
from compaction_ledger.domain.window.summarization import ChunkRequest
from compaction_ledger.infrastructure.summarizers.provider_model import (
    JsonAnswer,
    JsonMode,
    ProviderModel,
)

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class PydanticAIChunkSummarizer(ProviderModel):
    """Asks ``model`` for the structured summary of a chunk (T7); parameters as of ``PydanticAISummarizer``.

    The structure is asked for as JSON in the answer's text, never as a tool call, which would be a failure
    (C2). Where the model is known to take a JSON Schema it is bound to it (``native``), elsewhere it is told
    of it (``prompted``); ``json_mode`` decides it for a server that is not known well. Either way the answer
    is read strictly and nothing is repaired.

    May be used from several threads, and beside a running event loop.
    """

    def __init__(
        self,
        model: str | Model,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        max_tokens: int = 4_096,
        temperature: float | None = None,
        timeout: float = 120.0,
        settings: Mapping[str, Any] | None = None,
        json_mode: JsonMode | None = None,
    ) -> None:
        super().__init__(
            model,
            base_url=base_url,
            api_key_env=api_key_env,
            max_tokens=max_tokens,
            temperature=temperature,
            timeout=timeout,
            settings=settings,
            wanted=JsonAnswer(STRUCTURE_SCHEMA, json_mode),
        )

    def summarize_chunk(self, request: ChunkRequest) -> Answer:
        """Call the model once and wait. ``Answer.text`` is the JSON as it came."""
        return self._answer(request.instructions, request.content())

    async def asummarize_chunk(self, request: ChunkRequest) -> Answer:
        """Call the model once, from any event loop. Cancelling this cancels the call."""
        return await self._answer_async(request.instructions, request.content())
