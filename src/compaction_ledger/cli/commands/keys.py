"""The commands of `keys`: what signs a ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption
from compaction_ledger.cli.failing import CommandGroup

keys = typer.Typer(cls=CommandGroup, rich_markup_mode=None, no_args_is_help=True)


@keys.callback()
def about() -> None:
    """The keys of a ledger. What is printed of them is never secret.

    \b
    Examples:
      compaction-ledger keys show
      compaction-ledger keys rotate-signer --overlap
      compaction-ledger keys show --json
    """


def show(
    ctx: typer.Context,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """The public keys that sign the log, or signed it: what others verify with.

    \b
    Example:
      compaction-ledger keys show
    """
    from compaction_ledger.cli.documents.signing import KeysDocument
    from compaction_ledger.cli.views.signing import show_keys
    from compaction_ledger.ledger import Ledger

    call = Call.of(ctx, ledger, json=json)
    with Ledger.open(call.place, create=False, read_only=True) as opened:
        document = KeysDocument.of(opened.signer_keys())
    call.answer(document, show_keys)


def rotate_signer(
    ctx: typer.Context,
    overlap: Annotated[
        bool, typer.Option("--overlap", help="The keys before it go on signing beside it.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Sign with a new key from now on. What was signed before still verifies.

    \b
    Example:
      compaction-ledger keys rotate-signer --overlap
    """
    from compaction_ledger.cli.documents.signing import KeysDocument
    from compaction_ledger.cli.views.signing import show_keys
    from compaction_ledger.ledger import Ledger

    call = Call.of(ctx, ledger, json=json)
    with Ledger.open(call.place, create=False, read_only=True) as opened:
        files = opened.signer_keys()
        files.rotate(overlap=overlap)
        document = KeysDocument.of(files)
    call.answer(document, show_keys)


def retire_signer(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, 8 hexadecimal digits.")],
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Sign no more with one of several keys. What it signed still verifies.

    \b
    Example:
      compaction-ledger keys retire-signer 3a3853b2
    """
    from compaction_ledger.cli.documents.signing import KeysDocument
    from compaction_ledger.cli.views.signing import show_keys
    from compaction_ledger.ledger import Ledger

    call = Call.of(ctx, ledger, json=json)
    try:
        identifier = bytes.fromhex(key)
    except ValueError:
        raise typer.BadParameter("8 hexadecimal digits", ctx, param_hint="ID") from None
    with Ledger.open(call.place, create=False, read_only=True) as opened:
        files = opened.signer_keys()
        files.retire(identifier)
        document = KeysDocument.of(files)
    call.answer(document, show_keys)


for _name, _command, _in_short in (
    ("show", show, "The public keys that sign the log."),
    ("rotate-signer", rotate_signer, "Sign with a new key from now on."),
    ("retire-signer", retire_signer, "Sign no more with one of several."),
):
    keys.command(_name, short_help=_in_short)(_command)
