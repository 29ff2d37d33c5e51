"""Gathers what an importer reads, keeps the account of it, and makes the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from compaction_ledger.domain.errors import InvalidSetting, MalformedRecord
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.infrastructure.importers.interface import (
    ImportedConversation,
    ImportReport,
    ImportResult,
    LeftOutRecord,
    ReasonCode,
)
from compaction_ledger.infrastructure.importers.reading import label
from compaction_ledger.infrastructure.importers.turns import Part, derive


class Collector:
    """The account of one file. Each record is counted by :meth:`took` or :meth:`left_out`."""

    def __init__(self, importer: str, path: Path) -> None:
        self.importer = importer
        self.source = label(path)
        self.stem = path.stem
        self._imported = 0
        self._left_out: list[LeftOutRecord] = []
        self._conversations: list[ImportedConversation] = []

    def took(self, records: int = 1) -> None:
        """Count records that became messages."""
        self._imported += records

    def left_out(self, place: str, reason: ReasonCode, detail: str) -> None:
        """Count a record that became no message."""
        self._left_out.append(LeftOutRecord(place, reason, detail))

    def left_out_part(self, place: str, reason: ReasonCode, detail: str) -> None:
        """Name a part that was left out of a record which is imported."""
        self._left_out.append(LeftOutRecord(place, reason, detail, part=True))

    def add(self, conversation: ImportedConversation) -> None:
        """Take a conversation whose runs the file names."""
        self._conversations.append(conversation)

    def add_parts(
        self, conversation: str | None, parts: Sequence[Part], *, title: str | None = None
    ) -> None:
        """Take a conversation whose runs are derived; without an id it gets the file's name."""
        runs, messages = derive(parts)
        name = self.stem if conversation is None else conversation
        check_id(name, f"{self.source} conversation")
        self.add(ImportedConversation(name, runs, messages, title))

    def result(self, conversation: str | None) -> ImportResult:
        """The result, with ``conversation`` as the id of the one conversation if it is given."""
        found = tuple(self._conversations)
        if not found:
            raise MalformedRecord("holds no conversation", place=self.source)
        if conversation is not None:
            found = (self._renamed(found, conversation),)
        self._check_conversations(found)
        return ImportResult(found, self._report(found))

    def _renamed(
        self, found: Sequence[ImportedConversation], conversation: str
    ) -> ImportedConversation:
        if len(found) > 1:
            raise InvalidSetting(
                f"the file holds {len(found)} conversations, so no one id can be given",
                place=self.source,
            )
        (only,) = found
        check_id(conversation, "conversation")
        return ImportedConversation(conversation, only.runs, only.messages, only.title)

    def _check_conversations(self, found: Iterable[ImportedConversation]) -> None:
        counts = Counter(each.conversation for each in found)
        for name, count in counts.items():
            if count > 1:
                raise MalformedRecord(
                    f"the conversation {name!r} stands {count} times", place=self.source
                )

    def _report(self, found: Sequence[ImportedConversation]) -> ImportReport:
        kinds = Counter(message.kind for each in found for message in each.messages)
        whole = sum(not record.part for record in self._left_out)
        return ImportReport(
            importer=self.importer,
            source=self.source,
            records=self._imported + whole,
            imported=self._imported,
            conversations=len(found),
            runs=sum(len(each.runs) for each in found),
            messages=sum(len(each.messages) for each in found),
            messages_by_kind=dict(sorted(kinds.items())),
            left_out=tuple(self._left_out),
        )
