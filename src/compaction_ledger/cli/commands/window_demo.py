"""`window demo`: an agent's run, compacted while it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compaction_ledger.cli.calling import JsonOption, RootOptions
from compaction_ledger.cli.failing import FINDING


def window_demo(
    ctx: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Keep the ledger there, to try the other commands on it."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """An agent with tools works on an incident, and its window is compacted while it does.

    Shows what is sent before and after, the pins, the tokens and how much of each request a
    cache can serve; every claim is checked. The agent is a script: no model and no network is
    needed, and everything happens in a folder that is deleted afterwards.

    \b
    Example:
      compaction-ledger window demo
    """
    from compaction_ledger.cli.window_demo.walk import walk

    root = ctx.find_root().obj
    document = walk(keep, as_json=json or (isinstance(root, RootOptions) and root.json))
    if not document.ok:
        raise typer.Exit(FINDING)
