"""The embedded default for windows: sorts whole sentences of the originals into the five lists. Offline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import MAX_SUMMARY_CHARACTERS, Answer, FinishFacts
from compaction_ledger.domain.identifiers import is_well_formed
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.window.structure import KEYS, StructuredSummary
from compaction_ledger.domain.window.summarization import ChunkLine, ChunkRequest
from compaction_ledger.infrastructure.summarizers.chunk_words import CONSTRAINT, DECISION, OUTCOME
from compaction_ledger.infrastructure.summarizers.sentences import sentences

# Raise it with every change that can change a summary: it is part of the job's identity (I1).
VERSION = "1"

LONGEST_SENTENCE = 400
"""A longer one is left out: it is never cut."""

_FEWEST_CHARACTERS = 4
_SHARES = {
    "decisions": 0.2,
    "entities": 0.15,
    "constraints": 0.3,
    "open_questions": 0.1,
    "tool_outcomes": 0.25,
}
_QUESTION = ("?", "？", "؟")
_FIGURE = re.compile(r"\d")
_IDENTIFIER = re.compile(r"[^\W\d_]\w*\d|\d\w*[^\W\d_]|\w_\w|\w[.@/]\w|[A-Z]{2}")
_LETTERS = re.compile(r"[^\W_]")
# An object that holds no other, or a member with a plain value.
_JSON_PIECE = re.compile(
    r"\{[^{}\[\]]*+\}|\"[^\"\\\n]{1,80}\"\s?:\s?(?:\"[^\"\\\n]*+\"|[^\s\",{}\[\]]++)"
)


class _Sentence(NamedTuple):
    """A sentence, where it stands, the list it belongs to, and how much it is worth there."""

    line: int
    place: int
    text: str
    key: str
    score: float


class ExtractiveChunkSummarizer:
    """Keeps sentences and lines of the originals, word for word, sorted by rules that know several languages.

    ``share`` is how much of the text to keep, ``max_characters`` the upper bound of all entries together.
    Nothing is rephrased, so all of it stands in the source; a sentence torn from its surroundings may still
    mislead.
    """

    def __init__(self, *, share: float = 0.12, max_characters: int = 3_000) -> None:
        if not 0.0 < share < 1.0:
            raise InvalidSetting(f"must be above 0 and below 1, not {share}", place="share")
        if not LONGEST_SENTENCE <= max_characters <= MAX_SUMMARY_CHARACTERS * 3 // 4:
            raise InvalidSetting(
                f"must be from {LONGEST_SENTENCE} to {MAX_SUMMARY_CHARACTERS * 3 // 4}, "
                f"not {max_characters}",
                place="max_characters",
            )
        self._share = share
        self._max_characters = max_characters
        self._model = ModelIdentity.of(
            "compaction-ledger",
            "extractive-chunk",
            {"max_characters": str(max_characters), "share": repr(share), "version": VERSION},
        )

    @property
    def model(self) -> ModelIdentity:
        """Name, version and the two settings: each of them changes the text."""
        return self._model

    def summarize_chunk(self, request: ChunkRequest) -> Answer:
        """Pick sentences. Nothing can fail here; the originals may leave nothing to pick."""
        size = sum(len(line.text) for line in request.lines)
        target = min(self._max_characters, max(1, round(size * self._share)))
        chosen = _chosen(list(_sentences(request.lines)), target)
        text = _structure(chosen).canonical() if chosen else ""
        return Answer(text=text, finish=FinishFacts(signals=("stop",)))


# --- sentences and their lists ----------------------------------------------------------------------


def _sentences(lines: Sequence[ChunkLine]) -> Iterator[_Sentence]:
    for index, line in enumerate(lines):
        if line.kind not in ("text", "result") or line.role == "system":
            continue
        for place, text in enumerate(filter(_is_usable, _pieces(line))):
            key = _list_of(line, text)
            yield _Sentence(index, place, text, key, _score(line, place, text, key))


def _pieces(line: ChunkLine) -> Iterator[str]:
    """Sentences and lines; of a tool's result on one long line the objects and members of its JSON."""
    for sentence in sentences(line.text):
        if line.kind == "result" and len(sentence) > LONGEST_SENTENCE:
            yield from (piece.group() for piece in _JSON_PIECE.finditer(sentence))
        else:
            yield sentence


def _is_usable(text: str) -> bool:
    """Whether it could stand in a summary as it is (C3, T7)."""
    return (
        _FEWEST_CHARACTERS <= len(text) <= LONGEST_SENTENCE
        and _LETTERS.search(text) is not None
        and "\x00" not in text
        and is_well_formed(text)
    )


def _list_of(line: ChunkLine, text: str) -> str:
    if line.kind == "result":
        return "tool_outcomes"
    if text.endswith(_QUESTION):
        return "open_questions"
    if line.role == "user" and CONSTRAINT.search(text):
        return "constraints"
    if DECISION.search(text):
        return "decisions"
    return "entities"


def _score(line: ChunkLine, place: int, text: str, key: str) -> float:
    """What is worth more stands first in its list's share: figures, names of things, the user's words."""
    score = 1.0 + 0.8 * bool(_FIGURE.search(text)) + 0.5 * bool(_IDENTIFIER.search(text))
    if line.role == "user":
        score += 1.0
    if key == "tool_outcomes" and OUTCOME.search(text):
        score += 2.0
    return score + 0.5 * (place == 0) - len(text) / LONGEST_SENTENCE


# --- choosing ---------------------------------------------------------------------------------------


def _chosen(found: Sequence[_Sentence], target: int) -> list[_Sentence]:
    """The best of each list within its share, no text twice; then the best of all in what is left."""
    ranked = sorted(found, key=_rank)
    chosen: dict[str, _Sentence] = {}
    left = target
    for key in KEYS:
        mine = (sentence for sentence in ranked if sentence.key == key)
        left -= _take(mine, chosen, round(target * _SHARES[key]))
    _take(ranked, chosen, left)
    if not chosen:  # one sentence at least, the shortest
        return sorted(found, key=lambda sentence: (len(sentence.text), _rank(sentence)))[:1]
    return list(chosen.values())


def _take(candidates: Iterable[_Sentence], chosen: dict[str, _Sentence], room: int) -> int:
    """Add what fits into ``room``, in this order; how much of it was taken."""
    used = 0
    for sentence in candidates:
        size = len(sentence.text) + 3
        if sentence.text not in chosen and used + size <= room:
            chosen[sentence.text] = sentence
            used += size
    return used


def _rank(sentence: _Sentence) -> tuple[float, int, int]:
    return -sentence.score, sentence.line, sentence.place


def _structure(chosen: Iterable[_Sentence]) -> StructuredSummary:
    """Everything in its list, in the order of the originals."""
    ordered = sorted(chosen, key=lambda sentence: (sentence.line, sentence.place))
    lists = {
        key: tuple(sentence.text for sentence in ordered if sentence.key == key) for key in KEYS
    }
    return StructuredSummary(**lists)
