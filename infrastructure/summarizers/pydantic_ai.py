"""Any model provider, through the direct requests of ``pydantic-ai-slim`` (an extra).

One attempt is one call: the SDK's own retries are off, one deadline covers everything, and no tool
is offered. Install ``compaction-ledger[openai]``, ``[anthropic]``, ``[bedrock]`` or ``[google]``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import CancelledError
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.summarization import SummaryRequest
from compaction_ledger.infrastructure.summarizers.loop_thread import LoopThread

if TYPE_CHECKING:
    from pydantic_ai.models import Model

# Each has a parameter of its own, or would break the contract of an attempt.
_RESERVED = frozenset(
    {
        "first_event_timeout",
        "max_retries",
        "max_tokens",
        "request_timeout",
        "temperature",
        "timeout",
        "tool_choice",
    }
)


class PydanticAISummarizer:
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
        _check(max_tokens, timeout, settings or {})
        try:  # here, because only who calls a provider needs the extra
            from compaction_ledger.infrastructure.summarizers import (  # noqa: PLC0415
                provider_calls,
                provider_models,
            )
        except ImportError as error:
            raise InvalidSetting(
                "models of a provider need: pip install 'compaction-ledger[models]', or one of"
                f" [openai], [anthropic], [bedrock], [google] ({error.name} is not installed)",
                place="model",
            ) from error
        asked = provider_models.build_model(model, base_url, api_key_env)
        request_settings = provider_models.request_settings(
            asked,
            max_tokens=max_tokens,
            temperature=temperature,
            timeout=timeout,
            settings=settings or {},
        )
        self._ask = partial(provider_calls.ask, asked, request_settings)
        self._identity = provider_models.identity(asked, request_settings)
        self._loop = LoopThread("compaction-ledger summarizer")
        self._calls: set[asyncio.Task[Any] | None] = set()

    def __repr__(self) -> str:
        return f"PydanticAISummarizer({str(self._identity)!r})"

    @property
    def model(self) -> ModelIdentity:
        """Provider, name, and the settings that change output (I1); never a key."""
        return self._identity

    def summarize(self, request: SummaryRequest) -> Answer:
        """Call the model once and wait."""
        future = self._loop.submit(self._call(request))
        try:
            return future.result()
        except CancelledError:  # closed before the call began
            return Answer(fault="cancelled", detail="CancelledError")
        except BaseException:
            future.cancel()
            raise

    async def asummarize(self, request: SummaryRequest) -> Answer:
        """Call the model once, from any event loop. Cancelling this cancels the call."""
        return await asyncio.wrap_future(self._loop.submit(self._call(request)))

    def cancel(self) -> None:
        """End every call that is under way; each returns an answer with the fault ``cancelled``."""
        for call in tuple(self._calls):
            if call is not None:
                call.get_loop().call_soon_threadsafe(call.cancel)

    def close(self) -> None:
        """As :meth:`cancel`, and stop the thread that made the calls."""
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _call(self, request: SummaryRequest) -> Answer:
        call = asyncio.current_task()
        self._calls.add(call)
        try:
            return await self._ask(request)
        finally:
            self._calls.discard(call)


def _check(max_tokens: int, timeout: float, settings: Mapping[str, Any]) -> None:
    if max_tokens < 1:
        raise InvalidSetting(f"must be at least 1, not {max_tokens}", place="max_tokens")
    if not timeout > 0:
        raise InvalidSetting(f"must be above 0, not {timeout}", place="timeout")
    reserved = sorted(_RESERVED & settings.keys())
    if reserved:
        raise InvalidSetting(f"{', '.join(reserved)} cannot be set here", place="settings")
