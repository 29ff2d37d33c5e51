"""A Chat Completions model that reports how every choice ended, not the first alone (C1)."""

from __future__ import annotations

from typing import Any, cast

from openai.types import chat
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.infrastructure.summarizers.provider_answers import EVERY_FINISH

COMPATIBLE = "openai-compatible"
"""The prefix for any other server that speaks the Chat Completions wire."""


class WitnessedChatModel(OpenAIChatModel):
    """pydantic-ai reads the first choice; a server that sends two has not given one answer."""

    def _process_provider_details(self, response: chat.ChatCompletion) -> dict[str, Any] | None:
        details = super()._process_provider_details(response) or {}
        if len(response.choices) > 1:
            details[EVERY_FINISH] = [choice.finish_reason for choice in response.choices]
        return details or None


def compatible_model(name: str, base_url: str | None, api_key: str | None) -> Model:
    """A model of any server that speaks this wire. A server that wants no key needs none."""
    if base_url is None:
        raise InvalidSetting(f"{COMPATIBLE} models need a base_url", place="base_url")
    provider = OpenAICompatibleProvider(COMPATIBLE, base_url=base_url, api_key=api_key)
    return WitnessedChatModel(name, provider=provider)


def witnessed(model: Model) -> Model:
    """The same model, if it is a plain Chat Completions one, with every choice reported."""
    if type(model) is not OpenAIChatModel:
        return model
    return WitnessedChatModel(model.model_name, provider=cast("Any", model.provider))
