"""Makes the input of a summarizer from texts."""

from collections.abc import Sequence

from compaction_ledger.domain.conversation import Message, Pair
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.summarization import SummaryRequest, summary_request


def pairs_of(replies: Sequence[str], asked: str | Sequence[str] = "?") -> list[Pair]:
    """Pairs with these assistant texts; ``asked`` is the user's, one for all or one for each."""
    questions = [asked] * len(replies) if isinstance(asked, str) else asked
    return [
        Pair(index, f"r{index}", _message(index, "user", user), _message(index, "assistant", reply))
        for index, (user, reply) in enumerate(zip(questions, replies, strict=True))
    ]


def request_of(replies: Sequence[str], asked: str | Sequence[str] = "?") -> SummaryRequest:
    """The request for these replies under the current prompt."""
    return summary_request(DEFAULT_REGISTRY, DEFAULT_REGISTRY.current, pairs_of(replies, asked))


def _message(index: int, role: str, text: str) -> Message:
    return Message(
        id=f"{role[0]}{index}",
        run=f"r{index}",
        role="user" if role == "user" else "assistant",
        status="completed",
        kind="chat",
        text=text,
        conversation="c",
        scope="s",
    )
