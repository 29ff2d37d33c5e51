"""How far a backfill is: a bar on a terminal, else a line every few seconds. On stderr, both of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from compaction_ledger.cli.backfill.rate import Rate
from compaction_ledger.cli.plain import duration, plural, visible
from compaction_ledger.cli.screen import Screen
from compaction_ledger.usecases.archiving import ArchiveProgress

LINE_SECONDS = 5.0


class _Told(NamedTuple):
    """How far it is: done of how much, in words, how much a second, and seconds until the end."""

    done: int
    total: int
    words: list[str]
    rate: str
    left: float | None

    def __str__(self) -> str:
        left = [] if self.left is None else [f"{duration(self.left)} left"]
        return ", ".join([*self.words, self.rate, *left])


_Show = Callable[[_Told], None]


@dataclass(slots=True)
class Teller:
    """Tells people how far it is."""

    console: Screen = field(default_factory=lambda: Screen(stderr=True))
    clock: Callable[[], float] = time.monotonic
    _bar: Progress | None = None
    _lock: Lock = field(default_factory=Lock)

    def note(self, text: str) -> None:
        """Say what happened, at once."""
        bar = self._bar
        if bar is not None:
            bar.console.print(visible(text))
        else:
            self._write(text)

    @contextmanager
    def importing(self) -> Generator[Callable[[ArchiveProgress], None]]:
        """While the archive is taken over."""
        pairs, size = Rate(self.clock), Rate(self.clock)
        with self._shown("Importing") as show:

            def tell(progress: ArchiveProgress) -> None:
                pairs.note(progress.pairs)
                size.note(progress.bytes)
                words = [
                    plural(progress.conversations, "conversation"),
                    plural(progress.pairs, "pair"),
                    *([f"{progress.refused:,} refused"] if progress.refused else []),
                ]
                left = size.seconds_for(progress.size - progress.bytes)
                show(_Told(progress.bytes, progress.size, words, _speed(pairs, "pairs"), left))

            yield tell

    @contextmanager
    def summarizing(self, due: int) -> Generator[Callable[[int], None]]:
        """While so many ranges are summarized; told with how many are done, also those from before."""
        rate = Rate(self.clock)
        with self._shown("Summarizing") as show:

            def tell(done: int) -> None:
                rate.note(done)
                words = [f"{done:,} of {plural(due, 'range')}"]
                left = rate.seconds_for(max(0, due - done))
                show(_Told(done, due, words, _speed(rate, "ranges"), left))

            yield tell

    @contextmanager
    def _shown(self, what: str) -> Generator[_Show]:
        if not self.console.is_terminal:
            yield self._lines(what)
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=None, told="")

            def draw(told: _Told) -> None:
                bar.update(task, completed=told.done, total=told.total, told=str(told))

            self._bar = bar
            try:
                yield draw
            finally:
                self._bar = None

    def _lines(self, what: str) -> _Show:
        next_at = self.clock() + LINE_SECONDS

        def line(told: _Told) -> None:
            nonlocal next_at
            if self.clock() >= next_at:
                next_at = self.clock() + LINE_SECONDS
                share = 100 * told.done // told.total if told.total else 100
                self._write(f"{what}: {share} %, {told}")

        return line

    def _write(self, text: str) -> None:
        with self._lock:
            sys.stderr.write(visible(text) + "\n")
            sys.stderr.flush()


def _speed(rate: Rate, unit: str) -> str:
    number = rate.per_second
    return f"{number:,.0f} {unit}/s" if number >= 10 else f"{number:.1f} {unit}/s"
