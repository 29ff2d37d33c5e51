"""What the summarizing model is given: assistant replies with their ids, and nothing else (B4, C5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.identifiers import replace_surrogates
from compaction_ledger.domain.identity import PromptVersion
from compaction_ledger.domain.prompts import PromptRegistry


class AssistantReply:
    """One assistant reply with its message id. Made from a pair only: no user text can be put in (B4)."""

    __slots__ = ("message_id", "text")

    message_id: str
    text: str

    def __init__(self, pair: Pair) -> None:
        if type(pair) is not Pair or pair.assistant.role != "assistant":
            raise TypeError("an AssistantReply is made from a pair with an assistant's message")
        object.__setattr__(self, "message_id", pair.assistant.id)
        object.__setattr__(self, "text", pair.assistant.text)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an AssistantReply cannot be changed")

    def __repr__(self) -> str:
        return f"AssistantReply(message_id={self.message_id!r}, {len(self.text)} characters)"


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The input of a summarizer: a prompt version with its instructions, and the replies of one source."""

    prompt: PromptVersion
    instructions: str
    replies: tuple[AssistantReply, ...]

    def __post_init__(self) -> None:
        for reply in self.replies:
            if type(reply) is not AssistantReply:
                raise TypeError(f"replies must be AssistantReply, not {type(reply).__name__}")


def summary_request(
    registry: PromptRegistry, prompt: PromptVersion, pairs: Sequence[Pair]
) -> SummaryRequest:
    """The request for the replies of ``pairs``, with the instructions that belong to ``prompt``."""
    return SummaryRequest(prompt, registry.instructions(prompt), tuple(map(AssistantReply, pairs)))


def prompt_content(request: SummaryRequest) -> str:
    """The replies as JSON Lines: whatever stands in them stays inside a JSON string (C5).

    A lone surrogate, which no request can carry, becomes U+FFFD here and here alone (E6).
    """
    lines = (
        json.dumps(
            {"message_id": reply.message_id, "reply": replace_surrogates(reply.text)[0]},
            ensure_ascii=False,
        )
        for reply in request.replies
    )
    return "\n".join(lines)
