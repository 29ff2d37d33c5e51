"""What the use cases tell of their work to whoever watches it: spans, counts, measures and gauges.

There is no attribute for a text, for the id of a scope, conversation, message, run, claim or attempt, or for
the name of a holder: so none of them can be told. Nothing that goes wrong in telling reaches the work.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Literal, Protocol, Self, TypedDict, Unpack

SpanName = Literal["compact", "claim", "attempt", "catch_up", "rebuild", "assemble"]
CounterName = Literal[
    "ranges",
    "claims_refused",
    "admissions_refused",
    "attempts",
    "input_tokens",
    "output_tokens",
    "renewals",
    "errors",
]
MeasureName = Literal["attempt_seconds"]
GaugeName = Literal["projection_lag", "backlog"]


class Attributes(TypedDict, total=False):
    """Everything that may be told: numbers, words of closed sets, and the names of models and prompts.

    ``error`` is the code of an error, a refusal or a failed attempt; a span with it is one that failed.
    ``None`` is not told.
    """

    from_pair: int
    to_pair: int
    provider: str
    model: str
    prompt_name: str
    prompt_version: str
    attempt: int | None
    result: str
    error: str | None
    finish: tuple[str, ...]
    input_tokens: int | None
    output_tokens: int | None
    due: int
    completed: int
    position: int
    mode: str
    summaries: int
    rejected: int
    bytes_used: int
    bytes_allowed: int
    state: str


class OfModel(TypedDict):
    """The attributes that say which model it is about."""

    provider: str
    model: str


class OfJob(OfModel):
    """The attributes that say which range, model and prompt version it is about, but not whose."""

    from_pair: int
    to_pair: int
    prompt_name: str
    prompt_version: str


class Span(Protocol):
    """Something that takes its time and is under way."""

    def tell(self, **attributes: Unpack[Attributes]) -> None:
        """Say what has come to be known of it."""
        ...


class Source(Protocol):
    """What is asked for the present numbers, in any thread, for as long as it is there."""

    def read(self, gauge: str) -> Iterable[tuple[int, Attributes]]:
        """The numbers of a gauge, each with what it is of. May raise anything."""
        ...


class Telemetry(Protocol):
    """Where it is told. Thread-safe; raises nothing."""

    def span(
        self, name: SpanName, **attributes: Unpack[Attributes]
    ) -> AbstractContextManager[Span]:
        """Around something that takes its time. What it raises, it goes on raising, and has failed with."""
        ...

    def count(self, name: CounterName, n: int = 1, **attributes: Unpack[Attributes]) -> None:
        """It happened ``n`` times more."""
        ...

    def record(self, name: MeasureName, value: float, **attributes: Unpack[Attributes]) -> None:
        """It measured so much."""
        ...

    def observe(self, source: Source) -> None:
        """Ask ``source`` for its gauges from now on, until it is forgotten or collected."""
        ...

    def forget(self, source: Source) -> None:
        """Ask it no more."""
        ...


class NoTelemetry:
    """Nobody watches."""

    __slots__ = ()

    def span(self, name: SpanName, **attributes: Unpack[Attributes]) -> NoSpan:  # noqa: ARG002
        """A span of which nothing is kept."""
        return _NO_SPAN

    def count(self, name: CounterName, n: int = 1, **attributes: Unpack[Attributes]) -> None:
        """Nothing."""

    def record(self, name: MeasureName, value: float, **attributes: Unpack[Attributes]) -> None:
        """Nothing."""

    def observe(self, source: Source) -> None:
        """Nothing."""

    def forget(self, source: Source) -> None:
        """Nothing."""


class NoSpan:
    """A span of which nothing is kept."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing."""

    def tell(self, **attributes: Unpack[Attributes]) -> None:
        """Nothing."""


_NO_SPAN = NoSpan()
NO_TELEMETRY = NoTelemetry()
