"""The demonstration from its beginning to its end."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from compaction_ledger import composition
from compaction_ledger.cli.demo.cases import case_a, case_b, case_c
from compaction_ledger.cli.demo.document import DemoDocument, DemoTampering
from compaction_ledger.cli.demo.forgetting import prove_and_forget
from compaction_ledger.cli.demo.stage import CONVERSATION, Stage
from compaction_ledger.cli.demo.steps import (
    summarize,
    the_next_request,
    what_summaries_are_bound_to,
    which_lines_count,
    which_ranges_are_due,
)
from compaction_ledger.cli.demo.tampering import change_payload
from compaction_ledger.cli.demo.teller import Teller
from compaction_ledger.cli.documents.records import SummaryRecord
from compaction_ledger.cli.documents.upkeep import VerifyDocument
from compaction_ledger.cli.screen import out, print_json
from compaction_ledger.cli.views.upkeep import show_verify
from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.ledger import Ledger

INTRODUCTION = (
    "A long conversation with a language model does not fit into its next request forever. So the"
    " older replies are replaced by summaries. Compaction Ledger keeps every word that the user"
    " said, and writes down which messages each summary came from, who made it, and what each"
    " request was really given. Here is all of it on the conversation of a user with a"
    " fund-research assistant. Every line marked 'ok' is a claim that has just been checked."
)


def walk(keep: Path | None, *, json: bool) -> DemoDocument:
    """Walk through everything; print it, and the one document at the end if ``json``."""
    if keep is not None and keep.exists():
        raise InvalidSetting("there is something already, name a new file", place=str(keep))
    console: Console | None = None if json else out()
    with TemporaryDirectory(prefix="compaction-ledger-demo-") as folder:
        path = Path(folder) / "demo.db"
        document = _walk(path, Teller(console), keep)
        if keep is not None:
            shutil.copyfile(path, keep)
            shutil.copytree(f"{path}.keys", f"{keep}.keys")
    if console is None:
        print_json(document)
    else:
        _end(console, document)
    return document


def _walk(path: Path, teller: Teller, keep: Path | None) -> DemoDocument:
    teller.title("Compaction Ledger, step by step", INTRODUCTION)
    with Ledger.open(path) as ledger:
        stage = Stage(ledger, teller)
        imported = which_lines_count(stage)
        plan = which_ranges_are_due(stage, composition.default_summarizer())
        compaction, events = summarize(stage)
        ranges = what_summaries_are_bound_to(stage, plan)
        originals, request = the_next_request(stage)
        first, second, third = case_a(stage), case_b(stage), case_c(stage)
    tampering = _tamper(path, teller, ranges[1].summaries[0])
    proof = prove_and_forget(path, teller, ranges[1].summaries[0])
    return DemoDocument(
        ok=teller.ok,
        ledger=None if keep is None else str(keep),
        imported=imported,
        plan=plan,
        compaction=compaction,
        events=events,
        ranges=ranges,
        originals_bytes=originals,
        request=request,
        case_a=first,
        case_b=second,
        case_c=third,
        tampering=tampering,
        proof=proof,
        claims=teller.claims,
    )


def _tamper(path: Path, teller: Teller, summary: SummaryRecord) -> DemoTampering:
    index = summary.index or 0
    teller.title(
        "Tampering: somebody changes one bit of a copy of the file",
        "What is stored of each event is encrypted, so whoever can write to the file cannot choose"
        " what a summary says. But they can drop its protections and break it: on a copy, the trigger"
        f" that keeps the log append-only is dropped, and one bit of the event at index {index} is"
        " changed.",
    )
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    shutil.copytree(f"{path}.keys", f"{copy}.keys")
    byte = change_payload(copy, index)
    verified, verified_copy = verified_file(path), verified_file(copy)
    teller.show(show_verify, verified_copy)
    teller.claim(
        f"verify finds it and names the index: {index}.",
        holds=[finding.index for finding in verified_copy.findings] == [index],
    )
    with Ledger.open(copy, create=False, read_only=True) as ledger:
        made = ledger.assemble(CONVERSATION, budget=10**6).manifest
    teller.claim(
        "Even before anybody verifies: the changed summary is not used, the originals are.",
        holds=any(it.reason == "damaged" and it.from_pair == 10 for it in made.rejected),
    )
    teller.claim(
        f"The file itself is in order: {verified.events} events, every seal holds.",
        holds=verified.ok,
    )
    return DemoTampering(index=index, byte=byte, verified=verified, verified_copy=verified_copy)


def verified_file(path: Path) -> VerifyDocument:
    """What `verify` says of a file."""
    with Ledger.open(path, create=False, read_only=True) as ledger:
        return VerifyDocument.of(ledger.verify(), seal_only=False)


def _end(console: Console, document: DemoDocument) -> None:
    failed = sum(not claim.holds for claim in document.claims)
    console.print()
    console.rule(align="left")
    if failed:
        console.print(f"{failed} of {len(document.claims)} claims do NOT hold.")
    else:
        console.print(f"All {len(document.claims)} claims hold.")
    if document.ledger is None:
        console.print("Keep the ledger to try the commands: compaction-ledger demo --keep demo.db")
        return
    console.print(f"The ledger is in {document.ledger}. Try:", soft_wrap=True)
    for words in (f"show {CONVERSATION} 0 --text", "log", "verify"):
        console.print(f"  compaction-ledger --ledger {document.ledger} {words}", soft_wrap=True)
