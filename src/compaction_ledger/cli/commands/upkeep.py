"""`verify`, `rebuild` and `version`."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption
from compaction_ledger.cli.failing import FINDING

if TYPE_CHECKING:
    from compaction_ledger.cli.documents.upkeep import VerifyDocument


def verify(
    ctx: typer.Context,
    seal_only: Annotated[
        bool, typer.Option("--seal-only", help="Check the log alone, not the read models.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Check every event against its seal, and every row against the events.

    The file is opened for reading only. The exit code is 1 when something is found.

    \b
    Example:
      compaction-ledger verify --ledger copy-for-the-auditor.db
    """
    from compaction_ledger.cli.views.upkeep import show_verify

    call = Call.of(ctx, ledger, json=json)
    document = _verify(call, seal_only=seal_only)
    call.answer(document, show_verify)
    if not document.ok:
        raise typer.Exit(FINDING)


def _verify(call: Call, *, seal_only: bool) -> VerifyDocument:
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
            found = opened.verify(report, seal_only=seal_only)
    except DamagedLog as error:
        damage = FindingRecord(code=error.code, index=error.index, message=str(error))
        return VerifyDocument(ok=False, seal_only=seal_only, events=0, lag=0, findings=[damage])
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
