"""`verify`, `rebuild` and `version`."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption
from compaction_ledger.cli.failing import FINDING
from compaction_ledger.cli.keys_given import keys_given

if TYPE_CHECKING:
    from compaction_ledger.cli.documents.upkeep import VerifyDocument


def verify(
    ctx: typer.Context,
    seal_only: Annotated[
        bool, typer.Option("--seal-only", help="Check the log alone, not the read models.")
    ] = False,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="Compare with this checkpoint, not with the folder's.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key", metavar="KEY", help="Who signed it, or @FILE. Else the ledger's keys."
        ),
    ] = None,
    witness: Annotated[
        list[str] | None,
        typer.Option("--witness", metavar="URL", help="Compare with what a witness cosigned."),
    ] = None,
    witness_key: Annotated[
        list[str] | None,
        typer.Option(
            "--witness-key", metavar="KEY", help="Its key, or @FILE; one for each --witness."
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Check every event against its seal, and every row against the events.

    The log is compared with what was signed of it: with the checkpoints in the
    ledger's folder or the given files, and with what witnesses cosigned last.

    The file is opened for reading only. The exit code is 1 when something is found.

    \b
    Examples:
      compaction-ledger verify --ledger copy-for-the-auditor.db
      compaction-ledger verify --witness https://witness --witness-key KEY
    """
    from compaction_ledger.cli.views.upkeep import show_verify

    call = Call.of(ctx, ledger, json=json)
    urls, witness_keys = witness or [], keys_given(ctx, witness_key or [], "--witness-key")
    if len(urls) != len(witness_keys):
        raise typer.BadParameter("give one key for each --witness", ctx, param_hint="--witness-key")
    against = _Against(
        checkpoint or [],
        keys_given(ctx, key or [], "--key"),
        [f"{url} {its_key}" for url, its_key in zip(urls, witness_keys, strict=True)],
    )
    document = _verify(call, against, seal_only=seal_only)
    call.answer(document, show_verify)
    if not document.ok:
        raise typer.Exit(FINDING)


class _Against(NamedTuple):
    checkpoints: Sequence[Path]
    keys: Sequence[str]
    witnesses: Sequence[str]


def _verify(call: Call, against: _Against, *, seal_only: bool) -> VerifyDocument:
    """What verification finds. Damage that makes reading impossible is a finding as well."""
    from compaction_ledger.cli.documents.upkeep import (
        FindingRecord,
        VerifyDocument,
    )
    from compaction_ledger.cli.screen import progress
    from compaction_ledger.domain.errors import DamagedLog
    from compaction_ledger.ledger import Ledger

    try:
        with (
            Ledger.open(call.place, create=False, read_only=True) as opened,
            progress("Verifying") as report,
        ):
            found = opened.verify(
                report,
                seal_only=seal_only,
                checkpoints=against.checkpoints,
                keys=against.keys,
                witnesses=against.witnesses or None,
            )
    except DamagedLog as error:
        damage = FindingRecord(code=error.code, index=error.index, message=str(error), sides=[])
        return VerifyDocument(
            ok=False,
            seal_only=seal_only,
            events=0,
            lag=0,
            heads=0,
            signed=0,
            witnesses=[],
            findings=[damage],
        )
    return VerifyDocument.of(found, seal_only=seal_only)


def rebuild(
    ctx: typer.Context,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Build the read models anew from the log, beside the old ones, then switch.

    \b
    Example:
      compaction-ledger rebuild
    """
    from compaction_ledger.cli.documents.upkeep import RebuildDocument
    from compaction_ledger.cli.screen import progress
    from compaction_ledger.cli.views.upkeep import show_rebuild

    call = Call.of(ctx, ledger, json=json)
    with call.open() as opened, progress("Rebuilding") as report:
        events = opened.rebuild(report)
    call.answer(RebuildDocument(events=events), show_rebuild)


def version(
    ctx: typer.Context,
    json: JsonOption = False,
) -> None:
    """Print the version of the software and of the formats that it writes.

    \b
    Example:
      compaction-ledger version --json
    """
    from compaction_ledger import __version__, composition
    from compaction_ledger.cli.documents.upkeep import VersionDocument
    from compaction_ledger.cli.views.upkeep import show_version
    from compaction_ledger.domain.prompts import DEFAULT_REGISTRY

    call = Call.of(ctx, None, json=json)
    stored = composition.versions()
    document = VersionDocument(
        version=__version__,
        python=platform.python_version(),
        sqlite=stored.sqlite,
        file_format=stored.file_format,
        envelope_format=stored.envelope_format,
        events=dict(stored.events),
        prompt=str(DEFAULT_REGISTRY.current),
    )
    call.answer(document, show_version)
