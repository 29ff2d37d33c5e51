"""The commands, put together. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from compaction_ledger.cli.calling import JsonOption, LedgerOption, RootOptions, ScopeOption
from compaction_ledger.cli.commands.assembling import assemble
from compaction_ledger.cli.commands.backfill import backfill
from compaction_ledger.cli.commands.checking import check
from compaction_ledger.cli.commands.compacting import compact
from compaction_ledger.cli.commands.delivered import delivered
from compaction_ledger.cli.commands.demo import demo
from compaction_ledger.cli.commands.erasing import erase
from compaction_ledger.cli.commands.exporting import export
from compaction_ledger.cli.commands.importing import import_file, import_summary
from compaction_ledger.cli.commands.keys import keys
from compaction_ledger.cli.commands.looking import log, ranges, show
from compaction_ledger.cli.commands.operating import migrate, status
from compaction_ledger.cli.commands.planning import plan
from compaction_ledger.cli.commands.replaying import diff, replay
from compaction_ledger.cli.commands.signing import checkpoint, prove
from compaction_ledger.cli.commands.upkeep import rebuild, verify, version
from compaction_ledger.cli.commands.window import window
from compaction_ledger.cli.commands.witness import witness
from compaction_ledger.cli.commands.working import work
from compaction_ledger.cli.failing import PROGRAM, CommandGroup, run

app = typer.Typer(
    name=PROGRAM,
    cls=CommandGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - how Typer calls it
    if wanted:
        from compaction_ledger import __version__

        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Summaries of long conversations, each bound to the messages it came from.

    \b
    New here? Look at everything on an example:
      compaction-ledger demo
    \b
    Then with a conversation of your own:
      compaction-ledger import chat.json --conversation chat
      compaction-ledger compact chat
      compaction-ledger assemble chat --budget 40000
      compaction-ledger verify

    Exit codes: 0 fine; 1 something was found; 2 wrong usage, bad input or the
    store cannot do it; 130 and 143 stopped by a signal.
    """
    ctx.obj = RootOptions(ledger, scope, json)


for _name, _command, _in_short in (
    ("demo", demo, "Walk through everything on an example."),
    ("import", import_file, "Take conversations over from a file."),
    ("backfill", backfill, "Take over and summarize a whole archive."),
    ("plan", plan, "Which lines count, which ranges are due."),
    ("compact", compact, "Summarize every range that is due."),
    ("work", work, "Summarize what is due, again and again."),
    ("assemble", assemble, "The next request within a budget."),
    ("ranges", ranges, "List the ranges with their status."),
    ("show", show, "The summaries of a range and their binding."),
    ("log", log, "List the events of the log."),
    ("replay", replay, "What was known at a point of the log."),
    ("diff", diff, "What changed between two points."),
    ("delivered", delivered, "What the requests of a run were given."),
    ("status", status, "How the ledger is: lag, claims, work, size."),
    ("verify", verify, "Check every seal and every row."),
    ("export", export, "A bundle that an auditor can check."),
    ("erase", erase, "Forget a conversation for good."),
    ("checkpoint", checkpoint, "Sign the log as it is now, and publish that."),
    ("prove", prove, "Prove events, or that nothing was rewritten."),
    ("rebuild", rebuild, "Build the read models anew from the log."),
    ("migrate", migrate, "Make or update the tables on PostgreSQL."),
    ("import-summary", import_summary, "Bring in a summary made elsewhere."),
    ("check", check, "Is a transcript valid for its provider?"),
    ("version", version, "Versions of software and formats."),
):
    app.command(_name, short_help=_in_short)(_command)
app.add_typer(keys, name="keys", short_help="Keys of the ledger: show, rotate, retire.")
app.add_typer(
    window, name="window", short_help="Windows of running agents: demo, show, search, mcp."
)
app.add_typer(witness, name="witness", short_help="A witness of checkpoints: serve, show.")


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run the command line with ``words``, else the process's own, and leave with its exit code."""
    sys.exit(run(app, sys.argv[1:] if words is None else list(words)))
