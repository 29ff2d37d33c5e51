"""`demo`: everything at once, on a conversation that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compaction_ledger.cli.calling import JsonOption, RootOptions
from compaction_ledger.cli.failing import FINDING


def demo(
    ctx: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Keep the ledger there, to try the other commands on it."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Walk through everything on an example, and check each thing that is said.

    The conversation comes with the package, no model and no network is needed, and
    everything happens in a folder that is deleted afterwards.

    \b
    Example:
      compaction-ledger demo --keep demo.db
    """
    from compaction_ledger.cli.demo.walk import walk

    root = ctx.find_root().obj
    document = walk(keep, json=json or (isinstance(root, RootOptions) and root.json))
    if not document.ok:
        raise typer.Exit(FINDING)
