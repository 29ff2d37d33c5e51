"""Generations of read-model tables: what is known of each, and what a database does with them (P3).

The table of generations says of each how far it has come, the layout of its tables, and the verdicts that
its rows are judged by. What stands in it is believed no more than a row: it is checked when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from compaction_ledger.domain.canonical import MAX_INTEGER
from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.projections.records import RECORDS, Record

LAYOUT = 2
"""Of the tables and of what the fold puts into them: another number with every change of either."""

MAX_NUMBER = 10**9 - 1
TABLE_NAME = rf"({'|'.join(record.table for record in RECORDS)})_([1-9][0-9]{{0,8}})"
"""A regular expression of the names of tables, with their generation's number."""

Values = Sequence[Any]
Key = Any
"""The values of a primary key, as :meth:`Record.key_values` gives them."""

T = TypeVar("T")


class ReplacedGeneration(Exception):
    """The generation is not there any more: another process rebuilt. Never leaves this package."""


class Generation(NamedTuple):
    """One generation of tables."""

    number: int
    position: int
    layout: int
    verdicts: str
    active: bool

    @property
    def is_ours(self) -> bool:
        """Whether its tables are of the layout that this software reads and writes."""
        return self.layout == LAYOUT


def checked(number: Any, position: Any, layout: Any, active: Any, verdicts: Any) -> Generation:
    """The generation that a row of the table tells of. Raises :class:`DamagedReadModel`.

    One of another layout is only known to be one: what else is said of it is not ours to read.
    """
    if layout != LAYOUT:
        numbers = [value if type(value) is int else 0 for value in (number, position, layout)]
        return Generation(numbers[0], numbers[1], numbers[2], "", active == 1)
    sound = type(number) is type(position) is int and type(verdicts) is str
    if not (sound and 0 < number <= MAX_NUMBER and 0 <= position <= MAX_INTEGER):
        raise DamagedReadModel("the table of the read models' generations is damaged")
    return Generation(number, position, LAYOUT, verdicts, active == 1)


def none_serves() -> DamagedReadModel:
    """The error where no generation is marked as the one that serves."""
    return DamagedReadModel("the read models have no serving generation")


class Session(Protocol):
    """What one transaction can ask of the generations and their rows, and change."""

    # --- which there are ---

    def serving(self) -> Generation:
        """The generation that serves, of whatever layout. Raises :class:`DamagedReadModel`."""
        ...

    def find(self, number: int) -> Generation:
        """The generation with this number. Raises :class:`ReplacedGeneration`."""
        ...

    def known(self) -> Sequence[Generation]:
        """All generations, by number; none where there is no table of them that we know."""
        ...

    def is_prepared(self) -> bool:
        """Whether there is anything of read models, of whatever shape."""
        ...

    def is_known(self) -> bool:
        """Whether there is a table of generations, and it is the one that we know."""
        ...

    def is_kept_by_others(self) -> bool:
        """Whether the serving generation is of a layout from after this software."""
        ...

    # --- their life ---

    def hold(self, number: int) -> Generation | None:
        """Have a generation for oneself until the transaction ends; ``None`` while another has it.

        Raises :class:`ReplacedGeneration`.
        """
        ...

    def hold_all(self) -> None:
        """Have all generations for oneself until the transaction ends. Waits, but not for long."""
        ...

    def begin(self, verdicts: str) -> int:
        """Begin a new generation and return its number; others that do not serve are over."""
        ...

    def index(self, number: int) -> None:
        """Make the indexes that only readers need, where they are not there yet."""
        ...

    def forget(self, kind: type[Record], number: int, scope: str, conversation: str) -> None:
        """Delete a conversation's rows of one table."""
        ...

    def advance(self, number: int, position: int) -> None:
        """Note how far a generation has come."""
        ...

    def switch(self, number: int) -> None:
        """Let a generation serve that is complete; all others are over."""
        ...

    # --- rows ---

    def rows(
        self, kind: type[Record], number: int, given: Mapping[str, str], order: str
    ) -> Sequence[Values]:
        """The rows of one table whose columns have the ``given`` values, in order."""
        ...

    def tally(self, number: int) -> Sequence[Values]:
        """Of the ranges each status, how many have it, and their first expiry."""
        ...

    def rows_at(
        self, kind: type[Record], number: int, names: Sequence[str], keys: Collection[Values]
    ) -> Sequence[Values]:
        """The rows of one table whose columns ``names`` have the values of one of ``keys``."""
        ...

    def write(
        self,
        kind: type[Record],
        number: int,
        rows: Mapping[Key, Record],
        stored: Mapping[Key, bool],
    ) -> None:
        """Store whole rows over those with the same keys; ``stored`` says of some keys if they are there."""
        ...


class Store(Protocol):
    """A database that holds the read models' tables."""

    read_only: bool
    batch: int
    """How many facts are applied at once by a follower."""
    rebuild_batch: int
    """As ``batch``, where nobody waits for the rows."""
    damage: tuple[type[Exception], ...]
    """What a question raises where tables or rows are not what they should be."""

    def read(self, work: Callable[[Session], T], *, lenient: bool = False) -> T:
        """Ask in one snapshot; ``lenient`` gives what is no text as it is, where that can be."""
        ...

    def serving(self) -> Generation:
        """As :meth:`Session.serving`, in a transaction of its own."""
        ...

    def select(
        self, kind: type[Record], given: Mapping[str, str], order: str, *, lenient: bool = False
    ) -> Sequence[Values] | None:
        """Rows of the serving generation, in one snapshot; ``None`` where it is not of our layout."""
        ...

    def change(self, work: Callable[[Session], T], *, slow: bool = False) -> T:
        """Change all that ``work`` does or nothing; it may be called again, if nothing was stored.

        It need not be on the disk when this returns: it can be made again from the log. What is ``slow``
        takes as long as it takes; else the database has to answer at some time.
        """
        ...

    def release(self) -> None:
        """End the transactions of followers that hold a generation and do nothing any more."""
        ...

    def clean(self) -> None:
        """Give back what generations left that are over, as far as nobody uses it any more."""
        ...
