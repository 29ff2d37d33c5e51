"""The page on telemetry says what goes out, and the page on how to see it shows what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pages
import pytest

from compaction_ledger.infrastructure.telemetry.names import (
    ATTRIBUTES,
    COUNTERS,
    GAUGES,
    MEASURES,
    SPANS,
    MetricShape,
    SpanShape,
)
from compaction_ledger.usecases import telemetry

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference" / "telemetry.md").read_text(encoding="utf-8")
TABLES = {"counter": COUNTERS, "histogram": MEASURES, "gauge": GAUGES}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (`.+) \|$", section, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r" \|", line)] for line in lines]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def outside(shape: SpanShape | MetricShape) -> set[str]:
    return {*(ATTRIBUTES[name] for name in shape.attributes), *(name for name, _ in shape.always)}


def test_the_port_and_the_adapter_know_the_same_names() -> None:
    assert set(SPANS) == set(get_args(telemetry.SpanName))
    assert set(COUNTERS) == set(get_args(telemetry.CounterName))
    assert set(MEASURES) == set(get_args(telemetry.MeasureName))
    assert set(GAUGES) == set(get_args(telemetry.GaugeName))
    assert set(ATTRIBUTES) == set(telemetry.Attributes.__annotations__)
    for words in (telemetry.OfModel, telemetry.OfJob):
        assert set(words.__annotations__) <= set(ATTRIBUTES)


def test_every_span_has_its_row() -> None:
    found = {names(name)[0]: set(names(attributes)) for name, _, attributes in rows("Spans")}
    assert found == {shape.name: outside(shape) for shape in SPANS.values()}


def test_every_metric_has_its_row() -> None:
    found = {
        names(name)[0]: (kind, names(unit)[0], set(names(attributes)))
        for name, kind, unit, attributes, _ in rows("Metrics")
    }
    assert found == {
        shape.name: (kind, shape.unit, outside(shape))
        for kind, table in TABLES.items()
        for shape in table.values()
    }


def test_every_attribute_has_its_row() -> None:
    found = [name for row in rows("Attributes") for name in names(row[0])]
    used: list[SpanShape | MetricShape] = [*SPANS.values()]
    used += [shape for table in TABLES.values() for shape in table.values()]
    expected = {name for shape in used for name in outside(shape)}
    assert sorted(found) == sorted(expected)
    assert set(ATTRIBUTES.values()) <= expected  # none is told in vain


@pytest.mark.parametrize("name", ["scope", "conversation", "text", "message", "holder", "claim"])
def test_nothing_that_belongs_to_people_has_a_name(name: str) -> None:
    told = {*ATTRIBUTES, *ATTRIBUTES.values()}
    assert not [one for one in told if name in re.split(r"[._]", one)]


@pytest.mark.slow
def test_the_lines_of_the_how_to_show_spans(tmp_path: Path) -> None:
    page = DOCS / "how-to" / "watch-with-opentelemetry.md"
    code = [block.text for block in pages.blocks(page) if block.words[0] == "python"]
    assert len(code) == 2
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join([*code, "    ledger.rebuild()"])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"name": "rebuild"' in done.stdout
