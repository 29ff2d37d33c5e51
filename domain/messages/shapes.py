"""The wire shapes by name (T1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.messages.anthropic import Anthropic
from compaction_ledger.domain.messages.converse import Converse
from compaction_ledger.domain.messages.interface import MessageShape
from compaction_ledger.domain.messages.openai_chat import OpenAIChat
from compaction_ledger.domain.messages.openai_responses import OpenAIResponses
from compaction_ledger.domain.messages.pydantic_ai import PydanticAI

_ALL: tuple[MessageShape, ...] = (
    OpenAIChat(),
    OpenAIResponses(),
    Anthropic(),
    Converse(),
    PydanticAI(),
)
SHAPES: Mapping[str, MessageShape] = MappingProxyType({shape.name: shape for shape in _ALL})


def shape_named(name: str) -> MessageShape:
    """The shape of this name. Raises :class:`InvalidSetting` listing the names."""
    shape = SHAPES.get(name)
    if shape is None:
        raise InvalidSetting(f"{name!r} is no message shape; there are {', '.join(SHAPES)}")
    return shape
