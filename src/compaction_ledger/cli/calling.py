"""What every command is called with, and how it opens the ledger."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from compaction_ledger.ledger import Ledger

    AnyDocument = TypeVar("AnyDocument", bound=BaseModel)

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PLACE",
        help="The ledger: a file, or a postgresql:// URL. Else COMPACTION_LEDGER, else "
        "./compaction-ledger.db.",
    ),
]
ScopeOption = Annotated[
    str | None,
    typer.Option(
        "--scope", metavar="TEXT", help='Who the conversation belongs to. Else "default".'
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
ConversationArgument = Annotated[
    str, typer.Argument(metavar="CONVERSATION", help="The conversation's id.")
]


@dataclass(frozen=True, slots=True)
class RootOptions:
    """What was given before the command's name."""

    ledger: str | None = field(default=None, repr=False)  # a URL may hold a secret (S4)
    scope: str | None = None
    json: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a command. ``given_scope`` is ``None`` where the caller named none."""

    place: str | Path = field(repr=False)  # a URL may hold a secret (S4)
    given_scope: str | None
    json: bool

    @classmethod
    def of(
        cls,
        ctx: typer.Context,
        ledger: str | None,
        scope: str | None = None,
        *,
        json: bool = False,
    ) -> Call:
        """The options given behind the command's name come before those in front of it."""
        from compaction_ledger.settings import ledger_place

        root = ctx.find_root().obj
        if not isinstance(root, RootOptions):
            root = RootOptions()
        return cls(
            place=ledger_place(ledger or root.ledger),
            given_scope=scope if scope is not None else root.scope,
            json=json or root.json,
        )

    @property
    def scope(self) -> str:
        """The scope, for commands that work in exactly one."""
        from compaction_ledger.settings import DEFAULT_SCOPE

        return DEFAULT_SCOPE if self.given_scope is None else self.given_scope

    def open(self, *, create: bool = False, call_seconds: float = 0.0) -> Ledger:
        """The ledger, to be written. Only ``create`` makes a file where there is none.

        A claim holds twice as long as one call of a model may take, and five minutes at least.
        """
        from compaction_ledger.ledger import Ledger
        from compaction_ledger.settings import Settings

        lease = max(Settings().lease_seconds, 2 * call_seconds)
        return Ledger.open(self.place, create=create, settings=Settings(lease_seconds=lease))

    def open_to_read(self) -> Ledger:
        """The ledger, to be looked at. Only read models that lag are written, if they can be."""
        from compaction_ledger.domain.errors import DamagedReadModel, StoreError
        from compaction_ledger.ledger import Ledger

        ledger = Ledger.open(self.place, create=False, read_only=True)
        # Where they cannot be helped they are late, and what is late is shown as it is (H9).
        with suppress(StoreError, DamagedReadModel):
            if ledger.position() < ledger.size():
                with self.open() as writable:
                    writable.catch_up()
        return ledger

    def answer(self, document: AnyDocument, view: Callable[[Console, AnyDocument], None]) -> None:
        """Print ``document``: as JSON if that was asked for, else as ``view`` shows it."""
        from compaction_ledger.cli.screen import out, print_json

        if self.json:
            print_json(document)
        else:
            view(out(), document)
