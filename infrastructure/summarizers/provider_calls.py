"""One call of a provider's model, from what it is told and given to an answer."""

from __future__ import annotations

import asyncio
import logging

from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import Answer
from compaction_ledger.infrastructure.summarizers.provider_answers import (
    answer_from,
    answer_from_error,
)

_logger = logging.getLogger(__name__)

CANCELLED = Answer(fault="cancelled", detail="CancelledError")


async def ask(
    model: Model,
    settings: ModelSettings,
    parameters: ModelRequestParameters | None,
    instructions: str,
    content: str,
) -> Answer:
    """Ask once. Whatever a provider's answer makes its client raise becomes a failed answer.

    An error's text goes to the log at level DEBUG and nowhere else (C4).
    """
    try:
        message = ModelRequest(parts=[UserPromptPart(content=content)], instructions=instructions)
        response = await _response(model, settings, parameters, message)
    except asyncio.CancelledError:
        return CANCELLED
    except UserError as error:
        raise InvalidSetting(str(error), place="model") from error
    except Exception as error:
        _logger.debug("%s did not answer", model.model_id, exc_info=error)
        return answer_from_error(error)
    return answer_from(response)


async def _response(
    model: Model,
    settings: ModelSettings,
    parameters: ModelRequestParameters | None,
    message: ModelRequest,
) -> ModelResponse:
    # Entered for each call, so that no connection outlives it.
    async with model:
        return await model_request(
            model, [message], model_settings=settings, model_request_parameters=parameters
        )
