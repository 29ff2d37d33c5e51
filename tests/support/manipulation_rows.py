"""The rows of the manipulation matrix (K4): what is changed, and what finds it.

Each row is one function that changes a ledger of ``manipulated.py``. ``found`` is what verification says
then, as code and index, with the ledger's own keys and its folder of checkpoints; ``by_witness`` what is
added where a witness is asked as well. ``requests`` is what becomes of the requests that are assembled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from manipulations import Victim

Change = Callable[[Victim], object]
Found = tuple[tuple[str, int | None], ...]
Requests = Literal["as they were", "without it", "refused", "changed"]


@dataclass(frozen=True)
class Manipulation:
    """One row."""

    group: str
    what: str
    change: Change
    found: Found
    where: str
    by_witness: Found
    requests: Requests
    note: str

    @property
    def name(self) -> str:
        """How the test is named."""
        return self.change.__name__


class Table:
    """The rows in their groups; a change is put in by :meth:`row`."""

    def __init__(self) -> None:
        self.rows: list[Manipulation] = []

    def row(
        self,
        group: str,
        what: str,
        *found: tuple[str, int | None],
        where: str = "",
        by_witness: Found = (),
        requests: Requests = "as they were",
        note: str = "",
    ) -> Callable[[Change], Change]:
        """Add the function that follows."""

        def add(change: Change) -> Change:
            self.rows.append(
                Manipulation(group, what, change, found, where, by_witness, requests, note)
            )
            return change

        return add
