"""Regular expressions that every supported Python reads alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+")
FOLDERS = ("domain", "infrastructure", "projections", "src")


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_group_is_repeated_possessively(folder: str, repo_root: Path) -> None:
    """The first releases of Python 3.11 match such groups wrongly; an atomic group says the same."""
    found = [
        (path.name, number)
        for path in (repo_root / folder).rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if POSSESSIVE_GROUP.search(line) and not line.lstrip().startswith("#")
    ]
    assert found == []


def test_what_is_looked_for_is_found() -> None:
    assert POSSESSIVE_GROUP.search(r"(?:[.]a)*+")
    assert POSSESSIVE_GROUP.search(r"(?:[.]a){2,3}+")
    assert not POSSESSIVE_GROUP.search(r"(?>(?:[.]a)*)|\d++")
