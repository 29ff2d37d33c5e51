"""The table of stored forms: an older schema stays readable when a fact gets another shape (A10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ConfigDict
from scenarios import claimed, completed, released
from scenarios import started as an_attempt

from compaction_ledger.domain.errors import MalformedEvent, UnknownEvent
from compaction_ledger.domain.events import AttemptStarted, ClaimReleased, RangeCompleted
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.codec import Codec, Reader


@dataclass(frozen=True)
class ReleasedOnce:
    """A claim's end as it was stored in an imagined past, with a word in place of the reason."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    claim_id: str
    identity: str
    why: str


def upcast(old: ReleasedOnce) -> ClaimReleased:
    return ClaimReleased(old.claim_id, old.identity, "expired" if old.why == "late" else "stopped")


LATER = Codec(
    {AttemptStarted: ("AttemptStarted", 1), ClaimReleased: ("ClaimReleased", 2)},
    {"ClaimReleased@1": Reader(ReleasedOnce, upcast)},
)
OLD = b'{"claim_id":"c1","identity":"i","why":"late"}'


def test_an_older_form_is_read_as_the_present_fact() -> None:
    assert LATER.decode("ClaimReleased@1", OLD) == ClaimReleased("c1", "i", "expired")


def test_the_present_form_is_what_is_written_and_read() -> None:
    fact = released()
    assert LATER.topic_of(fact) == "ClaimReleased@2"
    assert LATER.encode(fact) == codec.encode(fact)
    assert LATER.decode("ClaimReleased@2", LATER.encode(fact)) == fact
    attempt = an_attempt()
    assert LATER.decode(LATER.topic_of(attempt), LATER.encode(attempt)) == attempt


@pytest.mark.parametrize(
    ("topic", "payload", "error"),
    [
        ("ClaimReleased@1", codec.encode(released()), MalformedEvent),
        ("ClaimReleased@2", OLD, MalformedEvent),
        ("ClaimReleased@3", OLD, UnknownEvent),
        ("RangeCompleted@1", codec.encode(completed()), UnknownEvent),
        (b"ClaimReleased@1", OLD, UnknownEvent),
    ],
)
def test_each_form_is_read_strictly(topic: Any, payload: bytes, error: type[Exception]) -> None:
    with pytest.raises(error, match="index 7"):
        LATER.decode(topic, payload, 7)


def test_a_form_is_present_or_older() -> None:
    with pytest.raises(ValueError, match="ClaimReleased@1"):
        Codec({ClaimReleased: ("ClaimReleased", 1)}, {"ClaimReleased@1": Reader(Any, upcast)})


def test_facts_of_this_version() -> None:
    for fact in (claimed(), completed(), released()):
        assert codec.decode(codec.topic_of(fact), codec.encode(fact)) == fact
    assert codec.topic_of(completed()) == f"{RangeCompleted.__name__}@1"
