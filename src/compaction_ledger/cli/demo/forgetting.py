"""Signing, proving and forgetting, on a copy of the demonstration's ledger."""

from __future__ import annotations

import shutil
from pathlib import Path

from compaction_ledger.cli.commands.range_records import event_record
from compaction_ledger.cli.demo.cases import SECOND_CONVERSATION
from compaction_ledger.cli.demo.document import DemoProof
from compaction_ledger.cli.demo.teller import Teller
from compaction_ledger.cli.documents.erasing import EraseDocument
from compaction_ledger.cli.documents.records import SummaryRecord
from compaction_ledger.cli.documents.signing import CheckpointDocument
from compaction_ledger.cli.views.records import show_events
from compaction_ledger.cli.views.signing import show_checkpoint
from compaction_ledger.domain.erasure import ErasedFact
from compaction_ledger.domain.errors import Erased
from compaction_ledger.domain.proof.merkle import check_inclusion, leaf_hash
from compaction_ledger.ledger import Ledger


def prove_and_forget(path: Path, teller: Teller, summary: SummaryRecord) -> DemoProof:
    """Sign the log, prove that a summary is in it, erase a conversation, and verify."""
    copy = path.with_name("proved.db")
    shutil.copyfile(path, copy)
    shutil.copytree(f"{path}.keys", f"{copy}.keys")
    with Ledger.open(copy, create=False) as ledger:
        checkpoint = _prove(ledger, teller, summary.index or 0)
        return _forget(ledger, teller, checkpoint)


def _prove(ledger: Ledger, teller: Teller, index: int) -> CheckpointDocument:
    teller.title(
        "Proof: the log is signed",
        "Whoever can rewrite the whole file can make every seal hold again. So the log is signed from"
        " time to time: one hash over all its events, which is kept elsewhere. From then on it can be"
        " proved what stood in it, to somebody who has neither the file nor this software.",
    )
    signed = ledger.checkpoint()
    document = CheckpointDocument.of(signed, None)
    teller.show(show_checkpoint, document)
    (proof,) = ledger.prove(index)
    head = signed.checkpoint
    check_inclusion(leaf_hash(proof.extra), index, head.size, proof.hashes, head.root)
    teller.claim(
        f"{len(proof.hashes)} hashes prove that the summary at index {index} is among the"
        f" {head.size} events that are signed.",
        holds=proof.index == index and head.size == ledger.size(),
    )
    return document


def _forget(ledger: Ledger, teller: Teller, checkpoint: CheckpointDocument) -> DemoProof:
    teller.title(
        "Forgetting: a conversation is erased",
        f"Whoever held the conversation {SECOND_CONVERSATION} wants it forgotten. What is sealed"
        " cannot be taken out of the log; but each conversation is encrypted with a key of its own,"
        " and that is destroyed.",
    )
    erased = ledger.erase(SECOND_CONVERSATION)
    events = [
        event_record(entry, None)
        for entry in ledger.events()
        if isinstance(entry.fact, ErasedFact) or entry.index >= erased.requested
    ]
    teller.show(show_events, events)
    teller.claim(
        "Its events are where they were, and nobody can read them any more.",
        holds=len(events) > 2 and all(event.erased for event in events[:-2]),
    )
    teller.claim("Nothing of it is read, and nothing comes back.", holds=_is_refused(ledger))
    verified = ledger.verify()
    teller.claim(
        f"The log still verifies: {verified.events} events, every seal holds, and the"
        f" {checkpoint.size} that were signed are still the same.",
        holds=verified.ok and ledger.checkpoint().checkpoint.size == verified.events,
    )
    return DemoProof(checkpoint=checkpoint, erased=EraseDocument.of(erased))


def _is_refused(ledger: Ledger) -> bool:
    try:
        ledger.assemble(SECOND_CONVERSATION, budget=10**6)
    except Erased:
        return True
    return False
