"""What several documents have in common. Times are ISO 8601 in UTC, to the microsecond."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from compaction_ledger.domain.eligibility import LeftOut
from compaction_ledger.domain.identity import ModelIdentity

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class Document(BaseModel):
    """Base of all documents and their parts: members never come and go within a version."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Model(Document):
    """A model's identity (I1)."""

    provider: str
    name: str
    settings: dict[str, str]
    """Those that change output, as text."""

    @classmethod
    def of(cls, model: ModelIdentity) -> Model:
        return cls(provider=model.provider, name=model.name, settings=dict(model.settings))

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


class LineLeftOut(Document):
    """A line of the conversation that makes no pair, and why (E2)."""

    position: Count
    """Its place in the conversation, from 0."""

    message: str
    """The message's id."""

    run: str
    """The run that it names."""

    reason: str
    """A code of rule E2; `plan -v` says what each means."""

    @classmethod
    def of(cls, line: LeftOut) -> LineLeftOut:
        return cls(
            position=line.position, message=line.message_id, run=line.run, reason=line.reason
        )


def moment(microseconds: int) -> Time:
    """Microseconds since the epoch as ISO 8601."""
    return f"{EPOCH + timedelta(microseconds=microseconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def moment_or_none(microseconds: int | None) -> Time | None:
    """As :func:`moment`, where there may be none."""
    return None if microseconds is None else moment(microseconds)


def counted(reasons: Iterable[str]) -> dict[str, int]:
    """How often each reason stands there, by name."""
    return dict(sorted(Counter(reasons).items()))
