"""The tables of ``docs/reference/manipulations.md``, written from the rows that the tests go through."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from manipulation_rows import Found, Manipulation
from manipulation_table import MANIPULATIONS
from manipulations_of_signing import SIGNINGS, Signing

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "manipulations.md"


def written(page: str) -> str:
    """The page with its tables as they should be."""
    for name, text in (("found", _groups()), ("signing", _signing(SIGNINGS))):
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        before, after = pattern.split(page)
        page = f"{before}{begin}{text}{end}{after}"
    return page


def _groups() -> str:
    return "\n".join(
        f"### {group}\n\n{_table(rows)}"
        for group, rows in groupby(MANIPULATIONS, key=lambda row: row.group)
    )


def _table(rows: Iterable[Manipulation]) -> str:
    lines = [
        "| changed | found by | where | witness | requests | note |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            row.what,
            _codes(row.found) or "nothing",
            row.where,
            _codes(row.by_witness),
            f"**{row.requests}**" if row.requests == "changed" else row.requests,
            row.note,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)


def _codes(found: Found) -> str:
    return ", ".join(dict.fromkeys(f"`{code}`" for code, _ in found))


def _signing(rows: Iterable[Signing]) -> str:
    lines = ["| changed | the signer | note |", "|---|---|---|"]
    lines += [
        f"| {row.what} | {f'refuses: `{row.answer}`' if row.answer else 'signs'} | {row.note} |"
        for row in rows
    ]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
