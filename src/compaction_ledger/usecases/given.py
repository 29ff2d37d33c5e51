"""What is said of the requests of a run: each with all that it held, and how that is known (H8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.events import RequestDelivered
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.request_digests import RequestKind
from compaction_ledger.domain.window.events import WindowDelivered

Told = Literal["by_seal", "by_source", "changed", "not_recorded", "left_out"]
"""How the messages of a group are known: by the sealed job of their summary; because the transcript still
has the source that the delivery is bound to; not at all, because it has not, or because the delivery has
no such hash; or they are no part of the request."""

SummaryState = Literal["sealed", "damaged", "other_summary", "erased"]


@dataclass(frozen=True, slots=True)
class GivenSummary:
    """A summary that stood in a request: pairs of a conversation, or messages of a run.

    ``sealed``: the log has its text at ``index``, and the seal holds; what is not known is ``None``.
    ``messages`` are the ids of what it was made of.
    """

    first: int
    last: int
    identity: str
    index: int
    state: SummaryState
    text: str | None = None
    recorded_at: int | None = None
    model: ModelIdentity | None = None
    prompt: PromptVersion | None = None
    source_hash: str | None = None
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenMessages:
    """Consecutive pairs or messages that were treated alike; ``messages`` are their ids, where known."""

    first: int
    last: int
    disposition: Literal["verbatim", "summarized", "left_out"]
    reason: str | None
    messages: tuple[str, ...]
    told: Told


@dataclass(frozen=True, slots=True)
class GivenPin:
    """A pin that stood in a request: the user's exact words, ``None`` where the log has them no more."""

    pin_id: str
    message: str | None
    quote: str | None
    index: int | None


@dataclass(frozen=True, slots=True)
class Given:
    """One recorded request, with what the log says of all that it held."""

    kind: RequestKind
    entry: Recorded
    fact: RequestDelivered | WindowDelivered
    groups: tuple[GivenMessages, ...]
    summaries: tuple[GivenSummary, ...]
    pins: tuple[GivenPin, ...] = ()

    @property
    def place(self) -> tuple[str, str]:
        """Scope and conversation."""
        return place_of(self.fact)

    @property
    def sound(self) -> bool:
        """Whether every summary that it held is still there as it was sealed."""
        return all(one.state == "sealed" for one in self.summaries)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The requests of a run in the log's order. ``damaged``: indices of events that cannot be read.

    ``erased``: indices of recorded requests of conversations that were erased; of which runs they were is
    not known any more (S3).
    """

    run: str
    size: int
    requests: Sequence[Given]
    damaged: Sequence[int]
    erased: Sequence[int] = ()


def place_of(fact: RequestDelivered | WindowDelivered) -> tuple[str, str]:
    """Scope and conversation of a recorded request."""
    if isinstance(fact, RequestDelivered):
        return fact.scope, fact.conversation
    return fact.window.scope, fact.window.conversation
