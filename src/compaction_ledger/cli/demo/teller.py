"""Tells the demonstration to whoever watches, and keeps account of what it claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from compaction_ledger.cli.demo.document import Claim
from compaction_ledger.cli.plain import visible

AnyDocument = TypeVar("AnyDocument")

INDENT = 4


class Teller:
    """Prints as it goes; on no console, it only keeps account."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self._gap = True  # whether a blank line is due before anything but a claim
        self.claims: list[Claim] = []

    @property
    def ok(self) -> bool:
        """Whether everything claimed so far was so."""
        return all(claim.holds for claim in self.claims)

    def title(self, title: str, why: str) -> None:
        """A new step, and why it matters."""
        if self._console is not None:
            self._fill_gap()
            self._console.rule(Text(title, style="bold"), align="left")
            self.say(why)

    def say(self, text: str) -> None:
        """A paragraph."""
        if self._console is not None:
            self._fill_gap()
            self._console.print(Text(text))
            self._console.print()

    def show(self, view: Callable[[Console, AnyDocument], None], document: AnyDocument) -> None:
        """A document as people see it."""
        if self._console is not None:
            self._fill_gap()
            view(self._console, document)
            self._console.print()

    def quote(self, who: str, text: str) -> None:
        """Words out of the conversation or a request."""
        if self._console is not None:
            self._fill_gap()
            self._console.print(Text(f"{who}:", style="bold"))
            self._console.print(Padding(Text(visible(text)), (0, 0, 1, INDENT)))

    def claim(self, claim: str, *, holds: bool) -> None:
        """Say something that has just been computed, and whether it is so."""
        self.claims.append(Claim(claim=claim, holds=holds))
        if self._console is not None:
            label = Text("  ok    ", "green") if holds else Text("FAILED  ", "bold red")
            line = Text(claim)
            for number, part in enumerate(line.wrap(self._console, self._console.width - 8)):
                self._console.print((label if number == 0 else Text(" " * 8)) + part)
            self._gap = True

    def _fill_gap(self) -> None:
        if self._console is not None and self._gap:
            self._console.print()
        self._gap = False
