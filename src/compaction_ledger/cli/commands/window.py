"""The commands of `window`, put together: what there is of the windows of running agents."""

from __future__ import annotations

import typer

from compaction_ledger.cli.commands.window_demo import window_demo
from compaction_ledger.cli.commands.window_history import mcp, search
from compaction_ledger.cli.commands.window_show import window_show
from compaction_ledger.cli.failing import CommandGroup

window = typer.Typer(cls=CommandGroup, rich_markup_mode=None, no_args_is_help=True)


@window.callback()
def about() -> None:
    """The windows of running agents, and the transcripts behind them.

    \b
    Examples:
      compaction-ledger window demo
      compaction-ledger window search "4,000 EUR" --conversation fund-research
      compaction-ledger window search offers --conversation fund-research --json
    """


for _name, _command, _in_short in (
    ("demo", window_demo, "Watch an agent's window being compacted."),
    ("show", window_show, "Chunks, pins and requests of runs."),
    ("search", search, "Search the transcript of a conversation."),
    ("mcp", mcp, "Serve it to a model, by MCP."),
):
    window.command(_name, short_help=_in_short)(_command)
