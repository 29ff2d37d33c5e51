"""How a request's messages look on the wire, per provider shape (H3, H7).

Messages are dictionaries whose keys stand in canonical order, so that a rendered body is RFC 8785.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.windows import Range

ShapeName = Literal["openai-chat", "anthropic", "converse", "pydantic-ai"]
Json = dict[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OpenAIChat:
    """OpenAI Chat Completions messages. Consecutive user messages are allowed there."""

    name: ShapeName = "openai-chat"
    system_apart = False

    def system(self, text: str) -> Any:
        return {"content": text, "role": "system"}

    def user(self, texts: Sequence[str]) -> list[Json]:
        return [{"content": text, "role": "user"} for text in texts]

    def assistant(self, text: str) -> list[Json]:
        return [{"content": text, "role": "assistant"}]


class Anthropic:
    """Anthropic Messages. Roles alternate: several user texts become blocks of one turn."""

    name: ShapeName = "anthropic"
    system_apart = True

    def system(self, text: str) -> Any:
        return text

    def user(self, texts: Sequence[str]) -> list[Json]:
        if len(texts) == 1:
            return [{"content": texts[0], "role": "user"}]
        return [{"content": [{"text": text, "type": "text"} for text in texts], "role": "user"}]

    def assistant(self, text: str) -> list[Json]:
        return [{"content": text, "role": "assistant"}]


class Converse:
    """Bedrock Converse. Roles alternate; every text is a block."""

    name: ShapeName = "converse"
    system_apart = True

    def system(self, text: str) -> Any:
        return [{"text": text}]

    def user(self, texts: Sequence[str]) -> list[Json]:
        return [{"content": [{"text": text} for text in texts], "role": "user"}]

    def assistant(self, text: str) -> list[Json]:
        return [{"content": [{"text": text}], "role": "assistant"}]


class PydanticAI:
    """Pydantic AI ``ModelMessage`` objects, as its ``ModelMessagesTypeAdapter`` reads them."""

    name: ShapeName = "pydantic-ai"
    system_apart = False

    def system(self, text: str) -> Any:
        return {"kind": "request", "parts": [{"content": text, "part_kind": "system-prompt"}]}

    def user(self, texts: Sequence[str]) -> list[Json]:
        return [
            {
                "kind": "request",
                "parts": [{"content": text, "part_kind": "user-prompt"} for text in texts],
            }
        ]

    def assistant(self, text: str) -> list[Json]:
        return [{"kind": "response", "parts": [{"content": text, "part_kind": "text"}]}]


Shape = OpenAIChat | Anthropic | Converse | PydanticAI

SHAPES: dict[str, Shape] = {
    shape.name: shape for shape in (OpenAIChat(), Anthropic(), Converse(), PydanticAI())
}


def shape_named(name: str) -> Shape:
    """The shape of this name; raises :class:`InvalidSetting`, which lists the names."""
    try:
        return SHAPES[name]
    except KeyError:
        raise InvalidSetting(f"{name!r} is none of {', '.join(SHAPES)}", place="shape") from None


@dataclass(frozen=True, slots=True)
class SummaryFrame:
    """What a summary's block says of its origin (H7)."""

    window: Range
    model: ModelIdentity
    prompt: PromptVersion
    recorded_at: int
    origin: str | None = None
    """From where it was imported, if it was."""
    made_at: int | None = None
    """When it was made there, if that is known."""

    @property
    def time(self) -> str:
        """When it was made, as far as is known."""
        if self.origin is None:
            return f"recorded {iso_time(self.recorded_at)}"
        made = "at an unknown time" if self.made_at is None else iso_time(self.made_at)
        return f"made {made}, imported {iso_time(self.recorded_at)} from {json.dumps(self.origin)}"


def summary_block(frame: SummaryFrame, text: str) -> str:
    """The marked block of a summary (H7).

    Each line of ``text`` is led by ``| ``, so no line in it can begin with ``[``, which alone opens and
    closes a block: whatever a summary says, it cannot end its block or pose as another one.
    """
    model = json.dumps(str(frame.model))  # in ASCII: no character of it can begin a line
    head = (
        f"[derived summary of the assistant's replies in pairs {frame.window}; model {model}; "
        f"prompt {frame.prompt}; {frame.time}]\n"
        "[not the user's words and not evidence; lossy; may be out of date]\n"
    )
    body = "\n".join(f"| {line}" for line in text.splitlines())
    return f"{head}{body}\n[end of the derived summary of pairs {frame.window}]"


def iso_time(microseconds: int) -> str:
    """Microseconds since the epoch as ISO 8601 in UTC, to the second."""
    return (EPOCH + timedelta(microseconds=microseconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
