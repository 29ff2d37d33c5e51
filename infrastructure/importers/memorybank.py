"""MemoryBank files: per person a history of dated question and answer pairs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list,
    an_object,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import ImportResult, JsonObject, Sample
from compaction_ledger.infrastructure.importers.reading import label, read_document, shown
from compaction_ledger.infrastructure.importers.turns import Part


class MemoryBankImporter:
    """One conversation per person, in the order of the dates. Days are no times: none are given."""

    name = "memorybank"
    description = "MemoryBank histories (query and response by date)"

    def sniff(self, sample: Sample) -> bool:
        """Whether the document maps people to histories."""
        first = sample.objects[0] if len(sample.records) == 1 and sample.objects else {}
        people = list(first.values())
        return bool(people) and all(
            isinstance(person, dict) and isinstance(person.get("history"), dict)
            for person in people
        )

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read every person's history."""
        collector, name = Collector(self.name, path), label(path)
        for person, value in an_object(read_document(path), name).items():
            place = f"{name}[{person!r}]"
            record = an_object(value, place)
            parts = list(
                _parts(the_object(record, "history", place), f"{place} history", collector)
            )
            for key in record:
                if key != "history":
                    collector.left_out(f"{place} {shown(key)}", "metadata", "about the person")
            collector.add_parts(person, parts)
        return collector.result(conversation)


def _parts(history: JsonObject, place: str, collector: Collector) -> Iterator[Part]:
    for day in sorted(history, key=lambda key: _date(key, place)):
        for number, value in enumerate(a_list(history[day], f"{place}[{day}]")):
            here = f"{place}[{day}][{number}]"
            entry = an_object(value, here)
            yield Part(f"{here} query", "user", "user", the_text(entry, "query", here))
            yield Part(f"{here} response", "text", "assistant", the_text(entry, "response", here))
            collector.took()


def _date(text: str, place: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise MalformedRecord(f"{text!a} is no ISO 8601 date", place=place) from error
