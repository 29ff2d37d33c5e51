"""What the steps of the demonstration share: the ledger, the conversation and the teller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files

from compaction_ledger.cli.commands.range_records import event_record, range_document
from compaction_ledger.cli.demo.document import DemoRequest
from compaction_ledger.cli.demo.teller import Teller
from compaction_ledger.cli.documents.records import EventRecord, ShowDocument
from compaction_ledger.cli.documents.requests import ManifestDocument
from compaction_ledger.domain.assembly import Assembly
from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.eligibility import Eligibility, eligible
from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import DEFAULT_SCOPE
from compaction_ledger.usecases.transcribing import FileImport

CONVERSATION = "fund-research"
SYSTEM = "You are a fund-research assistant. Name the date of each figure."
NEXT_USER = "With all of that in mind: does the mixture still fit my limits?"

LIMITS_PAIR = 2
"""The pair in which the user sets the limits that must never be forgotten."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One walk."""

    ledger: Ledger
    teller: Teller

    def bring_in(self) -> FileImport:
        """Import the conversation that comes with the package."""
        with as_file(files("compaction_ledger.cli.demo").joinpath("conversation.jsonl")) as path:
            return self.ledger.import_file(path)

    def lines(self, conversation: str = CONVERSATION) -> Eligibility:
        """The lines of a conversation as they are now."""
        return eligible(self.ledger.transcripts.conversation(DEFAULT_SCOPE, conversation))

    def pairs(self, conversation: str = CONVERSATION) -> Sequence[Pair]:
        """The pairs of a conversation as they are now."""
        return self.lines(conversation).pairs

    def events(self, start: int) -> list[EventRecord]:
        """What was recorded since index ``start``."""
        ledger = self.ledger
        return [event_record(entry, ledger.stream_of(entry)) for entry in ledger.events(start)]

    def range(self, from_pair: int) -> ShowDocument:
        """All that the ledger knows of a range."""
        return range_document(self.ledger, DEFAULT_SCOPE, CONVERSATION, from_pair)

    def request(self, budget: int) -> Assembly:
        """The next request under ``budget``."""
        return self.ledger.assemble(CONVERSATION, budget=budget, system=SYSTEM, next_user=NEXT_USER)

    def deliver(self, assembly: Assembly) -> DemoRequest:
        """Record that ``assembly`` was sent."""
        return DemoRequest(
            manifest=ManifestDocument.of(assembly.manifest),
            delivery=self.ledger.record_delivery(assembly),
        )
