"""Any model provider, through the direct requests of ``pydantic-ai-slim`` (an extra)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.summarization import SummaryRequest, prompt_content
from compaction_ledger.infrastructure.summarizers.provider_model import ProviderModel

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class PydanticAISummarizer(ProviderModel):
    """Asks ``model``: ``provider:name`` as pydantic-ai writes it, or a model object of its own.

    ``base_url`` goes with ``openai-compatible:name`` and other providers that take one;
    ``api_key_env`` names the environment variable that holds the key (each provider has its usual
    one). ``timeout`` is in seconds and covers the whole call. ``settings`` are further settings of
    pydantic-ai, for example ``{"thinking": False}``; they become part of the job's identity.

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
    ) -> None:
        super().__init__(
            model,
            base_url=base_url,
            api_key_env=api_key_env,
            max_tokens=max_tokens,
            temperature=temperature,
            timeout=timeout,
            settings=settings,
        )

    def summarize(self, request: SummaryRequest) -> Answer:
        """Call the model once and wait."""
        return self._answer(request.instructions, prompt_content(request))

    async def asummarize(self, request: SummaryRequest) -> Answer:
        """Call the model once, from any event loop. Cancelling this cancels the call."""
        return await self._answer_async(request.instructions, prompt_content(request))
