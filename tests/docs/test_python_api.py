"""The page on the Python API names every exported name and no other, with the signatures they have."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import compaction_ledger
from compaction_ledger import AsyncLedger, Ledger, SignalStop, Window, dispatch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python-api.md"
TEXT = PAGE.read_text(encoding="utf-8")
STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def shown(name: str, function: Callable[..., Any]) -> str:
    """A signature as the page has it: names, order and defaults, without types."""
    parts: list[str] = []
    keyword_only = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        star = STARS.get(parameter.kind.name, "")
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        parts.append(f"{star}{parameter.name}{default}")
    return f"{name}({', '.join(parts)})"


def _default(value: object) -> str:
    if value is compaction_ledger.DEFAULT_REGISTRY:
        return "DEFAULT_REGISTRY"
    if inspect.isfunction(value):
        return value.__name__
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _methods(kind: type) -> list[str]:
    return [
        shown(name, member)
        for name, member in inspect.getmembers(kind, callable)
        if not name.startswith("_")
    ]


DISPATCH = [
    shown(name, function)
    for name, function in vars(dispatch).items()
    if name in dispatch.__all__ and inspect.isfunction(function)
]


def test_every_exported_name_has_a_row_and_nothing_else_has() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    assert sorted(rows) == sorted(compaction_ledger.__all__)


@pytest.mark.parametrize("kind", [Ledger, AsyncLedger, SignalStop, Window])
def test_every_method_has_its_signature(kind: type) -> None:
    missing = [line for line in _methods(kind) if f"`{line}`" not in TEXT]
    assert not missing


@pytest.mark.parametrize("line", DISPATCH)
def test_every_function_of_dispatch_has_its_signature(line: str) -> None:
    assert f"- `{line}`" in TEXT


def test_no_signature_is_left_over() -> None:
    real = {line for kind in (Ledger, AsyncLedger, SignalStop, Window) for line in _methods(kind)}
    real |= set(DISPATCH)
    properties = {"transcripts", "policy", "requested", "history", "last_outcome"}
    listed = set(re.findall(r"^- `([^`]+)`", TEXT, re.MULTILINE))
    assert listed <= real | properties
