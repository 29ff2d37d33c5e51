"""`checkpoint` and `prove`: sign the log, and prove what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compaction_ledger.cli.calling import Call, JsonOption, LedgerOption, ScopeOption
from compaction_ledger.cli.failing import FINDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compaction_ledger.domain.proof.inclusion import InclusionProof
    from compaction_ledger.ledger import Ledger


def checkpoint(
    ctx: typer.Context,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Sign the log as it is now, and publish that in the folder of checkpoints.

    The first time, a key is made in the folder of keys. A log that does not go on
    from what was signed before is refused, with both heads, and the exit code is 1.

    It then goes to the witnesses, copies and time-stamp authority that are set; the
    exit code is 1 where one of them failed, and the checkpoint is published all the
    same.

    \b
    Example:
      compaction-ledger checkpoint
    """
    from compaction_ledger.cli.documents.signing import CheckpointDocument
    from compaction_ledger.cli.views.signing import show_checkpoint

    call = Call.of(ctx, ledger, json=json)
    with call.open() as opened:
        signed = opened.checkpoint()
        document = CheckpointDocument.of(signed, opened.spread(signed))
    call.answer(document, show_checkpoint)
    if document.failures:
        raise typer.Exit(FINDING)


def prove(
    ctx: typer.Context,
    conversation: Annotated[
        str | None, typer.Argument(metavar="[CONVERSATION]", help="Its id; with FROM_PAIR.")
    ] = None,
    from_pair: Annotated[
        int | None,
        typer.Argument(
            min=0, metavar="[FROM_PAIR]", help="The first pair of the range to prove events of."
        ),
    ] = None,
    index: Annotated[
        list[int] | None,
        typer.Option("--index", min=0, metavar="N", help="Prove this event; may be repeated."),
    ] = None,
    consistency: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="SIZE", help="Prove that the log began with so many events as now."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a file for each proof.")
    ] = None,
    ledger: LedgerOption = None,
    scope: ScopeOption = None,
    json: JsonOption = False,
) -> None:
    """Prove that events are in the log as it was signed last.

    Each proof can be checked without this software: it is a C2SP tlog-proof, with
    the newest checkpoint in it. With --consistency it is a request to a witness.

    \b
    Examples:
      compaction-ledger prove fund-research 0 --output proofs
      compaction-ledger prove --index 12
      compaction-ledger prove --consistency 4096
    """
    from compaction_ledger.cli.documents.signing import (
        ConsistencyRecord,
        ProofRecord,
        ProveDocument,
    )
    from compaction_ledger.cli.views.signing import show_proofs
    from compaction_ledger.domain.proof.inclusion import SUFFIX
    from compaction_ledger.ledger import Ledger

    call = Call.of(ctx, ledger, scope, json=json)
    ways = [conversation is not None, bool(index), consistency is not None]
    if sum(ways) != 1 or (conversation is None) != (from_pair is None):
        raise typer.BadParameter(
            "give CONVERSATION and FROM_PAIR, or --index, or --consistency", ctx
        )
    with Ledger.open(call.place, create=False, read_only=True) as opened:
        head = opened.newest_checkpoint()
        request: ConsistencyRecord | None = None
        proofs: list[ProofRecord] = []
        if consistency is not None:
            proof = opened.prove_consistency(consistency)
            name = f"{consistency}-{head.size}.consistency"
            request = ConsistencyRecord.of(proof, _written(output, name, proof.encode()))
        else:
            for one in _proofs(call, opened, conversation, from_pair, index):
                file = _written(output, f"{one.index}{SUFFIX}", one.encode())
                proofs.append(ProofRecord.of(one, file))
    call.answer(ProveDocument.of(head, proofs, request), show_proofs)


def _proofs(
    call: Call,
    opened: Ledger,
    conversation: str | None,
    from_pair: int | None,
    index: list[int] | None,
) -> Iterator[InclusionProof]:
    if conversation is None or from_pair is None:
        return opened.prove(*(index or ()))
    return opened.prove_range(conversation, from_pair=from_pair, scope=call.scope)


def _written(folder: Path | None, name: str, data: bytes) -> Path | None:
    """The file that ``data`` was written to, if that is wanted."""
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(data)
    return file
