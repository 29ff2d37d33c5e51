"""Question and answer lines, such as the results of deep research benchmarks: one conversation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import an_id_if_any, an_object, the_text
from compaction_ledger.infrastructure.importers.interface import ImportResult, JsonObject, Sample
from compaction_ledger.infrastructure.importers.reading import read_lines, shown
from compaction_ledger.infrastructure.importers.turns import Part

QUESTIONS = frozenset({"prompt", "query", "question"})
ANSWERS = frozenset({"answer", "article", "completion", "response"})


class PairsImporter:
    """Each line is one question and its answer; the file is one conversation in their order."""

    name = "pairs"
    description = "JSON Lines of question and answer, such as {id, prompt, article}"

    def sniff(self, sample: Sample) -> bool:
        """Whether every line has exactly one question and one answer, both strings."""
        lines = sample.objects
        return bool(lines) and len(lines) == len(sample.records) and all(map(_is_pair, lines))

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the file line by line."""
        collector = Collector(self.name, path)
        parts: list[Part] = []
        for place, value in read_lines(path):
            parts += _parts(an_object(value, place), place, collector)
            collector.took()
        collector.add_parts(None, parts)
        return collector.result(conversation)


def _is_pair(line: JsonObject) -> bool:
    question, answer = QUESTIONS & set(line), ANSWERS & set(line)
    return (len(question), len(answer)) == (1, 1) and all(
        isinstance(line[key], str) for key in question | answer
    )


def _parts(line: JsonObject, place: str, collector: Collector) -> Iterator[Part]:
    question, answer = QUESTIONS & set(line), ANSWERS & set(line)
    if (len(question), len(answer)) != (1, 1):
        questions, answers = ", ".join(sorted(QUESTIONS)), ", ".join(sorted(ANSWERS))
        raise MalformedRecord(f"must have one of {questions} and one of {answers}", place=place)
    own = an_id_if_any(line, "id", place)
    user_id, answer_id = (None, None) if own is None else (own, f"{own}/answer")
    (asked,), (answered,) = question, answer
    yield Part(f"{place} {asked}", "user", "user", the_text(line, asked, place), user_id)
    text = the_text(line, answered, place)
    yield Part(f"{place} {answered}", "text", "assistant", text, answer_id, ending="ended")
    for key in sorted(set(line) - question - answer - {"id"}):
        collector.left_out_part(f"{place} {shown(key)}", "metadata", "beside question and answer")
