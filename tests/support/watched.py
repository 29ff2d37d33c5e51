"""A ledger that is watched: what it tells through OpenTelemetry, kept in memory, for one test."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from compaction_ledger import composition
from compaction_ledger.infrastructure.telemetry.opentelemetry import OpenTelemetry

Point = tuple[tuple[str, object], ...]
"""The attributes of a number, by name."""


class Watched:
    """Spans and metrics of the ledgers that are opened while it is in place."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.telemetry = OpenTelemetry("0", self.tracers, MeterProvider([self._reader]))
        monkeypatch.setattr(composition, "telemetry", lambda: self.telemetry)

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        """Those that are over, of this name or all, by the time of their beginning."""
        found = [span for span in self._exporter.get_finished_spans() if name in (None, span.name)]
        return sorted(found, key=lambda span: span.start_time or 0)

    def span(self, name: str) -> ReadableSpan:
        """The only one of this name."""
        [span] = self.spans(name)
        return span

    def clear(self) -> None:
        """Forget the spans."""
        self._exporter.clear()

    def numbers(self, metric: str) -> dict[Point, float]:
        """The present numbers of a metric, by attributes; of a histogram, how many there are."""
        found: dict[Point, float] = {}
        for name, attributes, point in self._points():
            if name == metric:
                value = point.count if isinstance(point, HistogramDataPoint) else point.value
                found[tuple(sorted(attributes.items()))] = value
        return found

    def by(self, metric: str, *attributes: str) -> dict[object, float]:
        """The numbers of a metric added up, by the values of some attributes."""
        found: dict[object, float] = {}
        for point, value in self.numbers(metric).items():
            said = dict(point)
            key = tuple(said.get(attribute) for attribute in attributes)
            place = key[0] if len(key) == 1 else key
            found[place] = found.get(place, 0) + value
        return found

    def metrics(self) -> set[str]:
        """The names of the metrics that have numbers."""
        return {name for name, _, _ in self._points()}

    def everything(self) -> str:
        """All that went out, as an exporter would see it."""
        data = self._reader.get_metrics_data()
        told = "" if data is None else data.to_json()
        return "\n".join([*(span.to_json() for span in self.spans()), told])

    def _points(self) -> list[tuple[str, dict[str, object], Any]]:
        data = self._reader.get_metrics_data()
        return [
            (metric.name, dict(point.attributes or {}), point)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]
