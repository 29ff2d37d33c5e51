"""Telemetry through the API of OpenTelemetry (an extra): it goes wherever the host's SDK sends it.

Without an SDK it goes nowhere, and costs next to nothing. No exporter is set up here, and none is asked for.
Messages of exceptions are never told: they may name ids.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Mapping
from contextvars import Token
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from opentelemetry import context, metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import Span, Status, StatusCode, Tracer, TracerProvider

from compaction_ledger.domain.errors import LedgerError
from compaction_ledger.infrastructure.telemetry.names import (
    ATTRIBUTES,
    COUNTERS,
    GAUGES,
    MEASURES,
    PROVIDERS,
    SCOPE,
    SPANS,
    MetricShape,
    SpanShape,
)

logger = logging.getLogger(__name__)

Value = str | int | tuple[str, ...]
_KINDS = {False: trace.SpanKind.INTERNAL, True: trace.SpanKind.CLIENT}
_FAILED = Status(StatusCode.ERROR)


class Source(Protocol):
    """What is asked for the present numbers."""

    def read(self, gauge: str) -> Iterable[tuple[int, Mapping[str, object]]]:
        """The numbers of a gauge, each with what it is of. May raise anything."""
        ...


class OpenTelemetry:
    """Spans and metrics of one process; make one and keep it, as its instruments are never given back.

    Without providers of its own it uses the global ones, whether they are set before or after.
    """

    def __init__(
        self,
        version: str,
        tracers: TracerProvider | None = None,
        meters: MeterProvider | None = None,
    ) -> None:
        self._edge = _Edge()
        self._sources = weakref.WeakValueDictionary[int, Source]()
        self._tracer = trace.get_tracer(SCOPE, version, tracers)
        meter = metrics.get_meter(SCOPE, version, meters)
        self._counters = {
            name: meter.create_counter(shape.name, shape.unit, shape.description)
            for name, shape in COUNTERS.items()
        }
        self._measures = {
            name: meter.create_histogram(
                shape.name,
                shape.unit,
                shape.description,
                explicit_bucket_boundaries_advisory=shape.buckets,
            )
            for name, shape in MEASURES.items()
        }
        for name, shape in GAUGES.items():
            meter.create_observable_gauge(
                shape.name, [partial(self._read, name)], shape.unit, shape.description
            )

    def span(self, name: str, **attributes: object) -> _OpenSpan:
        """A span; it is the present one while it lasts."""
        return _OpenSpan(self._edge, self._tracer, SPANS[name], attributes)

    def count(self, name: str, n: int = 1, **attributes: object) -> None:
        """Add to a counter."""
        try:
            self._counters[name].add(n, _outside(COUNTERS[name], attributes))
        except Exception as error:  # noqa: BLE001 - of telemetry alone
            self._edge.met(error)

    def record(self, name: str, value: float, **attributes: object) -> None:
        """Record in a histogram."""
        try:
            self._measures[name].record(value, _outside(MEASURES[name], attributes))
        except Exception as error:  # noqa: BLE001 - of telemetry alone
            self._edge.met(error)

    def observe(self, source: Source) -> None:
        """Read its gauges whenever metrics are collected. It is not kept from being collected itself."""
        self._sources[id(source)] = source

    def forget(self, source: Source) -> None:
        """Read it no more."""
        self._sources.pop(id(source), None)

    def _read(self, gauge: str, _options: CallbackOptions) -> list[Observation]:
        """The numbers of all sources. Where several have one for the same, the greatest."""
        greatest: dict[tuple[tuple[str, object], ...], int] = {}
        for reference in self._sources.valuerefs():  # a list, whatever other threads do
            source = reference()
            try:
                for number, attributes in source.read(gauge) if source is not None else ():
                    found = tuple(attributes.items())
                    greatest[found] = max(number, greatest.get(found, number))
            except Exception as error:  # noqa: BLE001 - a store that is away, mostly
                self._edge.met(error)
        return [
            Observation(number, _outside(GAUGES[gauge], dict(attributes)))
            for attributes, number in greatest.items()
        ]


class _OpenSpan:
    """A span while it lasts."""

    __slots__ = ("_attributes", "_edge", "_failed", "_shape", "_span", "_token", "_tracer")

    def __init__(
        self, edge: _Edge, tracer: Tracer, shape: SpanShape, attributes: Mapping[str, object]
    ) -> None:
        self._edge = edge
        self._tracer = tracer
        self._shape = shape
        self._attributes = attributes
        self._span: Span | None = None
        self._token: Token[Context] | None = None
        self._failed = False

    def __enter__(self) -> Self:
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001 - of telemetry alone
            self._edge.met(error)
        return self

    def tell(self, **attributes: object) -> None:
        """Set attributes. With ``error``, the span has failed."""
        try:
            self._tell(attributes)
        except Exception as error:  # noqa: BLE001 - of telemetry alone
            self._edge.met(error)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None and not self._failed:
                self._tell(_ended_by(error))
        except Exception as problem:  # noqa: BLE001 - of telemetry alone
            self._edge.met(problem)
        try:
            if self._token is not None:
                context.detach(self._token)
        except Exception as problem:  # noqa: BLE001 - of telemetry alone
            self._edge.met(problem)
        try:
            if self._span is not None:
                self._span.end()
        except Exception as problem:  # noqa: BLE001 - of telemetry alone
            self._edge.met(problem)

    def _begin(self) -> None:
        shape = self._shape
        self._span = self._tracer.start_span(
            shape.name.format(**self._attributes) if shape.client else shape.name,
            kind=_KINDS[shape.client],
            attributes=_outside(shape, self._attributes),
            record_exception=False,
            set_status_on_exception=False,
        )
        self._token = context.attach(trace.set_span_in_context(self._span))

    def _tell(self, attributes: Mapping[str, object]) -> None:
        span = self._span
        if span is None or not span.is_recording():
            return
        self._failed = self._failed or attributes.get("error") is not None
        span.set_attributes(_outside(self._shape, attributes))
        if self._failed:
            span.set_status(_FAILED)


class _Edge:
    """Where errors of telemetry end. The first one is told to the log of the process."""

    def __init__(self) -> None:
        self._told = False

    def met(self, error: Exception) -> None:
        """Nothing comes of it but a line."""
        first, self._told = not self._told, True
        if first:
            logger.warning("some telemetry is lost, which is told once: %s", type(error).__name__)
        logger.debug("some telemetry is lost", exc_info=error)


def _ended_by(error: BaseException) -> dict[str, str]:
    """What is told of what ended a span: never its message. A stop is no error."""
    if not isinstance(error, Exception):
        return {"result": "stopped"}
    return {"error": error.code if isinstance(error, LedgerError) else type(error).__name__}


def _outside(shape: SpanShape | MetricShape, attributes: Mapping[str, object]) -> dict[str, Value]:
    """What goes out of these attributes, under its names there."""
    found: dict[str, Value] = dict(shape.always)
    for name in shape.attributes:
        value = attributes.get(name)
        if isinstance(value, (str, int, tuple)):
            found[ATTRIBUTES[name]] = value
    provider = found.get("gen_ai.provider.name")
    if isinstance(provider, str):
        found["gen_ai.provider.name"] = PROVIDERS.get(provider, provider)
    return found
