"""What all summarizers that ask a provider have in common: set-up, calls, cancelling, closing.

One attempt is one call: the SDK's own retries are off, one deadline covers everything, and no tool
is offered. Install ``compaction-ledger[openai]``, ``[anthropic]``, ``[bedrock]`` or ``[google]``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import CancelledError
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.infrastructure.summarizers.loop_thread import LoopThread

if TYPE_CHECKING:
    from pydantic_ai.models import Model

JsonMode = Literal["native", "prompted"]
"""How an answer is bound to a JSON Schema: by the provider's own means, or by telling the model."""


class JsonAnswer(NamedTuple):
    """An answer that is JSON of a schema; without a ``mode``, by what the model is known to take."""

    schema: Mapping[str, Any]
    mode: JsonMode | None


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


class ProviderModel:
    """A provider's model that may be asked from several threads, and beside a running event loop.

    What is ``wanted`` of an answer beside plain text is asked for in other ways than by a tool, which would
    be a failure (C2).
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
        wanted: JsonAnswer | None = None,
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
        parameters = None
        if wanted is not None:
            _check_mode(wanted.mode)
            parameters = provider_models.json_parameters(asked, wanted.schema, wanted.mode)
        self._ask = partial(provider_calls.ask, asked, request_settings, parameters)
        self._identity = provider_models.identity(asked, request_settings, parameters)
        self._loop = LoopThread("compaction-ledger summarizer")
        self._calls: set[asyncio.Task[Any] | None] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._identity)!r})"

    @property
    def model(self) -> ModelIdentity:
        """Provider, name, and the settings that change output (I1); never a key."""
        return self._identity

    def _answer(self, instructions: str, content: str) -> Answer:
        """Call the model once and wait."""
        future = self._loop.submit(self._call(instructions, content))
        try:
            return future.result()
        except CancelledError:  # closed before the call began
            return Answer(fault="cancelled", detail="CancelledError")
        except BaseException:
            future.cancel()
            raise

    async def _answer_async(self, instructions: str, content: str) -> Answer:
        """Call the model once, from any event loop. Cancelling this cancels the call."""
        return await asyncio.wrap_future(self._loop.submit(self._call(instructions, content)))

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

    async def _call(self, instructions: str, content: str) -> Answer:
        call = asyncio.current_task()
        self._calls.add(call)
        try:
            return await self._ask(instructions, content)
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


def _check_mode(mode: str | None) -> None:
    if mode not in (None, *get_args(JsonMode)):
        raise InvalidSetting(
            f"must be 'native', 'prompted' or None, not {mode!r}", place="json_mode"
        )
