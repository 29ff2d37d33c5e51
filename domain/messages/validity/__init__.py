"""What each provider refuses (T2, T5): strict checkers, written from the providers' documentation.

They share no code with the shapes, which read and write the same messages: what one gets wrong, the other
shows. None of them raises, whatever JSON comes in, and none changes what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compaction_ledger.domain.messages.interface import Problem, Wire
from compaction_ledger.domain.messages.validity import (
    anthropic,
    converse,
    openai_chat,
    openai_responses,
    pydantic_ai,
)

CHECKERS: Mapping[str, Callable[[Sequence[Wire]], list[Problem]]] = {
    "openai-chat": openai_chat.problems,
    "openai-responses": openai_responses.problems,
    "anthropic": anthropic.problems,
    "converse": converse.problems,
    "pydantic-ai": pydantic_ai.problems,
}
"""By the name of the shape."""

PENDING_CALL = "pending_call"
"""The one code that whoever works in the middle of a run may allow: results are still to come."""

PROBLEM_CODES: Mapping[str, str] = {
    "bad_id": "An id has characters, or a length, that the provider does not take",
    "bad_name": "A tool's name has characters, or a length, that the provider does not take",
    "blank_text": "A text has nothing but white space, and the provider takes no such text",
    "duplicate_call": "Two calls have one id where the provider tells calls apart by it",
    "duplicate_item": "Two items have one id",
    "duplicate_result": "A call is answered twice",
    "empty_content": "There is no content where the provider demands some",
    "empty_text": "A text is the empty string where the provider takes none",
    "first_role": "The first message is not one of a user",
    "last_role": "The last message is not one that a model can answer",
    "malformed": "A member is missing or is not of its type",
    "misplaced_result": "A tool result stands behind other content of its message",
    "missing_text": "A document stands in a message without a text",
    "no_messages": "There is no message at all",
    "not_an_object": "A message, or a part of one, is no JSON object",
    "orphan_reasoning": "A reasoning item has nothing behind it that it led to",
    "orphan_result": "A tool result answers no call that waits for it",
    "pending_call": "The transcript ends before this call was answered",
    "result_before_call": "A tool result stands before its call",
    "roles_alternate": "Two messages of one side stand side by side",
    "system_placement": "Instructions stand where the provider takes none",
    "thinking_order": "A turn that calls tools has its thinking behind other content",
    "trailing_space": "The last message is an assistant's and ends in white space",
    "unanswered_call": "A call has no result where the provider demands it",
    "unknown_role": "The role or kind of a message is none of this provider's",
    "wrong_place": "A part stands in a message of a role that cannot hold it",
}
"""Every code a checker may give, each in one line. Codes are stable."""
