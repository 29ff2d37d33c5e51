"""Builds pydantic-ai models so that one attempt is one call, and says which model it is (I1)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, ModelRequestParameters, infer_model, parse_model_id
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.identity import ModelIdentity

_EXTRAS = frozenset({"openai", "anthropic", "bedrock", "google"})
# They say how a request travels, not what comes back.
_OUTSIDE_IDENTITY = frozenset(
    {"extra_headers", "first_event_timeout", "max_retries", "request_timeout", "timeout"}
)


def build_model(model: str | Model, base_url: str | None, api_key_env: str | None) -> Model:
    """The model to ask. Raises :class:`InvalidSetting` where it cannot be built."""
    if isinstance(model, FallbackModel):
        raise InvalidSetting("a fallback model makes several calls in one attempt", place="model")
    if isinstance(model, Model):
        if base_url is not None or api_key_env is not None:
            raise InvalidSetting("base_url and api_key_env go with a model's name", place="model")
        return model
    prefix, name = parse_model_id(model)
    if not prefix or not name:
        raise InvalidSetting(f"{model!r} is not of the form provider:model", place="model")
    try:
        return _named(prefix, name, base_url, _api_key(api_key_env))
    except ImportError as error:
        raise _missing_extra(prefix, error) from error
    except (UserError, ValueError) as error:
        raise InvalidSetting(str(error), place="model") from error


def _missing_extra(prefix: str, error: ImportError) -> InvalidSetting:
    family = prefix.partition("-")[0]
    wanted = f"compaction-ledger[{family}]" if family in _EXTRAS else f"pydantic-ai-slim[{family}]"
    missing = f" ({error.name} is not installed)" if error.name else ""
    return InvalidSetting(f"{prefix} models need: pip install '{wanted}'{missing}", place="model")


def request_settings(
    model: Model,
    *,
    max_tokens: int,
    temperature: float | None,
    timeout: float,
    settings: Mapping[str, Any],
) -> ModelSettings:
    """What every request is made with: no tool, no retry, one deadline over everything."""
    merged: dict[str, Any] = {**settings, "max_tokens": max_tokens, "request_timeout": timeout}
    if temperature is not None:
        merged["temperature"] = float(temperature)
    if "max_retries" not in model.unsupported_settings:
        merged["max_retries"] = 0
    return cast("ModelSettings", merged)


def json_parameters(
    model: Model, schema: Mapping[str, Any], mode: Literal["native", "prompted"] | None
) -> ModelRequestParameters:
    """What asks for an answer that is JSON of this schema; without ``mode``, by what the model can."""
    native = bool(model.profile.get("supports_json_schema_output", False))
    if mode == "native" and not native:
        raise InvalidSetting(f"{model.model_id} takes no JSON Schema", place="json_mode")
    return ModelRequestParameters(
        output_mode=mode or ("native" if native else "prompted"),
        output_object=OutputObjectDefinition(deepcopy(dict(schema)), "summary", strict=True),
    )


def identity(
    model: Model, settings: ModelSettings, parameters: ModelRequestParameters | None
) -> ModelIdentity:
    """Provider, name and what changes the output. Never a key: of the URL only host and path."""
    effective: dict[str, object] = {**(model.settings or {}), **settings}
    described = {
        key: _described(key, value)
        for key, value in effective.items()
        if key not in _OUTSIDE_IDENTITY
    }
    if parameters is not None:
        described["json_mode"] = parameters.output_mode
    if model.base_url:
        described["endpoint"] = endpoint(model.base_url)
    return ModelIdentity.of(model.system, model.model_name, described)


def endpoint(url: str) -> str:
    """Host, port and path: without scheme, user, password and query."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.hostname or ''}{port}{parts.path.rstrip('/')}"


def _described(key: str, value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr)
    if key == "extra_body":  # free-form: what a host puts there is its own
        return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return text


def _api_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InvalidSetting(f"the environment variable {variable} is not set", place="api_key_env")
    return key


def _named(prefix: str, name: str, base_url: str | None, api_key: str | None) -> Model:
    # Imported here: each provider's client is an extra of its own.
    if prefix == "openai-compatible":
        from compaction_ledger.infrastructure.summarizers.openai_chat import (  # noqa: PLC0415
            compatible_model,
        )

        return compatible_model(name, base_url, api_key)
    model = infer_model(f"{prefix}:{name}", _factory(base_url, api_key))
    if type(model).__name__ == "OpenAIChatModel":
        from compaction_ledger.infrastructure.summarizers.openai_chat import (  # noqa: PLC0415
            witnessed,
        )

        return witnessed(model)
    return model


def _factory(base_url: str | None, api_key: str | None) -> Callable[[str], Provider[Any]]:
    given = {"base_url": base_url, "api_key": api_key}
    arguments = {key: value for key, value in given.items() if value is not None}

    def provider(prefix: str) -> Provider[Any]:
        if prefix == "bedrock" and api_key is None:
            from compaction_ledger.infrastructure.summarizers.bedrock import (  # noqa: PLC0415
                single_call_provider,
            )

            return single_call_provider(base_url)
        if not arguments:
            return infer_provider(prefix)
        make = cast("Callable[..., Provider[Any]]", infer_provider_class(prefix))
        try:
            return make(**arguments)
        except TypeError as error:
            names = " and ".join(arguments)
            raise InvalidSetting(f"{prefix} does not take {names}", place="model") from error

    return provider
