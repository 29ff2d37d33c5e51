"""The screen: Rich on a terminal, plain text where there is none, JSON if it was asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from compaction_ledger.cli.plain import visible
from compaction_ledger.domain.ports import Progress as OnProgress


class Screen(Console):
    """A console that takes text for text, and lets a broken pipe through to where it is handled."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As Rich does; into a file or pipe without the spaces that fill up lines."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as captured:
            super().print(*objects, **options)
        self.file.writelines(
            line.rstrip(" \n") + "\n" for line in captured.get().splitlines(keepends=True)
        )

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def out() -> Screen:
    """The screen for results."""
    return Screen(markup=False, highlight=False, emoji=False, soft_wrap=False)


def print_json(document: BaseModel) -> None:
    """Print one document. What the encoding of stdout cannot carry is escaped as JSON does it."""
    ascii_only = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace(
        "-", ""
    ) != "utf8"
    values = document.model_dump(mode="json", by_alias=True)
    sys.stdout.write(json.dumps(values, ensure_ascii=ascii_only, indent=2) + "\n")


def one_line(text: str, width: int) -> str:
    """The beginning of ``text`` on one line, at most ``width`` columns wide."""
    line = " ".join(visible(text).split())
    return line if cell_len(line) <= width else set_cell_size(line, width - 1).rstrip() + "…"


def table(*columns: str, rows: Iterable[Iterable[object]], right: Iterable[str] = ()) -> Table:
    """A table without outer lines, whose cells are folded and never cut."""
    made = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False
    )
    for column in columns:
        made.add_column(column, overflow="fold", justify="right" if column in right else "left")
    for row in rows:
        made.add_row(
            *(cell if isinstance(cell, Text) else Text(visible(str(cell))) for cell in row)
        )
    return made


def facts(rows: Iterable[tuple[str, object]]) -> Table:
    """Names with their values, one below the other."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False, show_edge=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, value if isinstance(value, Text) else Text(visible(str(value))))
    return made


@contextmanager
def progress(what: str) -> Generator[OnProgress]:
    """A bar on stderr while something long goes on; nothing where stderr is no terminal."""
    console = Screen(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report
