#!/usr/bin/env python3
"""Fill in, in docs/reference/rules.md, where each rule is cited: in the code, and in the tests.

What a rule demands is written by hand in that page; this program rewrites its last two columns. A
citation is a rule's name in a comment or a docstring. ``C1 to C4`` cites each of the four.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "rules.md"
CODE = ("domain", "infrastructure", "projections", "src/compaction_ledger", "docs/vectors")

ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+?) \| .*? \| .*? \|$", re.MULTILINE)
# "DEL, C1" is a class of control characters, "Amazon S3" and "S3 and DynamoDB" are services.
CITATION = re.compile(
    r"(?<!DEL, )(?<!Amazon )\b([EWBIACDVHPLTKS])(\d{1,2})\b(?! and DynamoDB)"
    r"(?:(?: to |–)\1(\d{1,2})\b)?"
)

Places = dict[str, list[str]]


def rules(page: str) -> list[str]:
    """The names of all rules, in the order of the page."""
    return [found[1] for found in ROW.finditer(page)]


def cited_in(text: str) -> Iterator[str]:
    """The rules that a text names."""
    for letter, first, last in CITATION.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f"{letter}{number}"


def prose(path: Path) -> str:
    """The comments and docstrings of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sql":
        return "\n".join(re.findall(r"--(.*)", text))
    kinds = (tokenize.COMMENT, tokenize.STRING)
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(
        token.string
        for token in found
        if token.type in kinds and token.string.startswith(("#", '"""', 'r"""'))
    )


def places(folders: tuple[str, ...], suffixes: tuple[str, ...]) -> Places:
    """For each rule, the files below ``folders`` that cite it."""
    found: Places = defaultdict(list)
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and not path.parent.is_symlink():
                for rule in sorted(set(cited_in(prose(path)))):
                    found[rule].append(path.relative_to(ROOT).as_posix())
    return found


def citations() -> tuple[Places, Places]:
    """Where the rules are cited: in the code, and in the tests."""
    return places(CODE, (".py", ".sql")), places(("tests",), (".py",))


def filled(page: str) -> str:
    """The page with its last two columns made anew."""
    code, tests = citations()

    def row(found: re.Match[str]) -> str:
        cells = (
            _cell(where.get(found[1], []), cut) for where, cut in ((code, ""), (tests, "tests/"))
        )
        return f"| {found[1]} | {found[2]} | {' | '.join(cells)} |"

    return ROW.sub(row, page)


def _cell(paths: list[str], cut: str) -> str:
    shown = (path.removeprefix(cut).removeprefix("src/compaction_ledger/") for path in paths)
    return "<br>".join(f"`{path}`" for path in shown) or "—"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
