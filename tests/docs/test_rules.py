"""Every rule is cited in the code and by a test, and the table of citations says nothing untrue."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {
    "E": 6,
    "W": 5,
    "B": 4,
    "I": 2,
    "A": 11,
    "C": 5,
    "D": 3,
    "V": 3,
    "H": 9,
    "P": 5,
    "L": 5,
    "T": 15,
    "K": 6,
    "S": 4,
}
EVERY = [f"{letter}{n}" for letter, count in COUNTS.items() for n in range(1, count + 1)]


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_rules", ROOT / "docs" / "make_rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(maker: ModuleType) -> str:
    text: str = maker.PAGE.read_text(encoding="utf-8")
    return text


def test_the_page_has_every_rule(maker: ModuleType, page: str) -> None:
    assert maker.rules(page) == EVERY


@pytest.mark.slow
def test_every_rule_is_cited(maker: ModuleType) -> None:
    code, tests = maker.citations()
    assert {rule for rule in EVERY if not code[rule]} == set()
    assert {rule for rule in EVERY if not tests[rule]} == set()


@pytest.mark.slow
def test_what_the_table_names_is_so(maker: ModuleType, page: str) -> None:
    """New citations need not be in it at once; what is in it must be true."""
    fresh = maker.filled(page)
    for rule in EVERY:
        [shown] = re.findall(rf"^\| {rule} \|.+$", page, re.MULTILINE)
        [now] = re.findall(rf"^\| {rule} \|.+$", fresh, re.MULTILINE)
        names = {name for name in re.findall(r"`([^`]+)`", shown) if name.endswith((".py", ".sql"))}
        assert names
        assert names <= set(re.findall(r"`([^`]+)`", now)), f"{rule}: run docs/make_rules.py"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("the contract C1 to C4", ["C1", "C2", "C3", "C4"]),
        ("(E1, E2; A10)", ["E1", "E2", "A10"]),
        ("U+E100, UTF8, SHA256, DEL, C1", []),
        ("Amazon S3, or S3 and DynamoDB; the rules S1 to S3 (S4)", ["S1", "S2", "S3", "S4"]),
    ],
)
def test_what_counts_as_a_citation(maker: ModuleType, text: str, rules: list[str]) -> None:
    assert list(maker.cited_in(text)) == rules
