"""`witness serve` and `witness show`: a witness of our own (K3)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption
from compaction_ledger.cli.failing import CommandGroup
from compaction_ledger.cli.keys_given import keys_given

witness = typer.Typer(cls=CommandGroup, rich_markup_mode=None, no_args_is_help=True)

FolderOption = Annotated[
    Path,
    typer.Option(
        "--folder", metavar="FOLDER", help="Where the witness keeps its key and what it cosigned."
    ),
]


@witness.callback()
def about() -> None:
    """A witness, which cosigns the checkpoints of a log and refuses forks.

    It is worth something only where those who run the ledger cannot reach it.

    \b
    Examples:
      compaction-ledger witness serve --folder witness --log-key KEY
      compaction-ledger witness show --folder witness --json
    """


@witness.command("serve", short_help="Serve a witness over HTTP.")
def witness_serve(
    ctx: typer.Context,
    folder: FolderOption,
    log_key: Annotated[
        list[str],
        typer.Option(
            "--log-key",
            metavar="KEY",
            help="The verifier key of a log, or @FILE with some; several times for several.",
        ),
    ],
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to listen.")
    ] = "127.0.0.1:8753",
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="TEXT", help="The name of its key, chosen once."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Serve a witness until it is stopped: the protocol C2SP tlog-witness.

    Its key is made the first time. The line that begins with KEY is for those
    who check cosignatures. SIGTERM and Control-C end it, with exit code 0.

    \b
    Example:
      compaction-ledger witness serve --folder witness --log-key @keys.txt
    """
    from compaction_ledger.cli.documents.witness import WitnessServeDocument
    from compaction_ledger.cli.views.witness import show_serving
    from compaction_ledger.cli.witnessing import serve_until_stopped
    from compaction_ledger.witness_parts import open_witness, witness_server

    call = Call.of(ctx, None, json=json)
    address = _address(ctx, listen)
    parts = open_witness(folder, keys_given(ctx, log_key, "--log-key"), name)
    server = witness_server(parts, address)
    document = WitnessServeDocument(
        name=parts.verifier_key.name,
        key=str(parts.verifier_key),
        url=f"http://{_host(address[0])}:{server.server_address[1]}",
        logs=sorted(parts.service.logs),
    )
    serve_until_stopped(server, lambda: call.answer(document, show_serving))


@witness.command("show", short_help="What a witness has cosigned last.")
def witness_show(
    ctx: typer.Context,
    folder: FolderOption,
    json: JsonOption = False,
) -> None:
    """Show a witness's key, and the newest checkpoint of each log.

    It only reads; the witness may run meanwhile.

    \b
    Example:
      compaction-ledger witness show --folder witness
    """
    from compaction_ledger.cli.documents.witness import WitnessShowDocument
    from compaction_ledger.cli.views.witness import show_witness
    from compaction_ledger.witness_parts import look_at_witness

    call = Call.of(ctx, None, json=json)
    call.answer(WitnessShowDocument.of(look_at_witness(folder)), show_witness)


def _address(ctx: typer.Context, listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise typer.BadParameter("write HOST:PORT", ctx, param_hint="--listen")
    return host, int(port)


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
