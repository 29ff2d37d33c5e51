"""The embedded default: picks whole sentences out of the replies. Offline and deterministic."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import MAX_SUMMARY_CHARACTERS, Answer, FinishFacts
from compaction_ledger.domain.identifiers import is_well_formed
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.summarization import AssistantReply, SummaryRequest
from compaction_ledger.infrastructure.summarizers.sentences import sentences, tokens

# Raise it with every change that can change a summary: it is part of the job's identity (I1).
VERSION = "1"

LONGEST_SENTENCE = 1_000
"""A longer one is left out: it is never cut."""

_CANDIDATES = 2_000
_LEAST_GAIN = 0.25
"""Of the best sentence's: what says less than this is not worth its place."""
_FIGURE = re.compile(r"\d")
_IDENTIFIER = re.compile(r"[^\W\d_]\w*\d|\d\w*[^\W\d_]|\w_\w|[A-Z]{2}")
_NO_SPACE_AFTER = tuple("。！？｡．」』】）")


@dataclass(frozen=True, slots=True)
class _Candidate:
    reply: int
    place: int
    text: str
    tokens: frozenset[str]
    score: float


class ExtractiveSummarizer:
    """Keeps the sentences that carry most, word for word and in their order.

    ``share`` is how much of the replies' text to keep, ``max_characters`` the upper bound. At least
    one sentence of each reply is kept while that stays below half of the text.
    """

    def __init__(self, *, share: float = 0.22, max_characters: int = 5_000) -> None:
        if not 0.0 < share < 1.0:
            raise InvalidSetting(f"must be above 0 and below 1, not {share}", place="share")
        if not 1 <= max_characters <= MAX_SUMMARY_CHARACTERS:
            raise InvalidSetting(
                f"must be from 1 to {MAX_SUMMARY_CHARACTERS}, not {max_characters}",
                place="max_characters",
            )
        self._share = share
        self._max_characters = max_characters
        self._model = ModelIdentity.of(
            "compaction-ledger",
            "extractive",
            {"max_characters": str(max_characters), "share": repr(share), "version": VERSION},
        )

    @property
    def model(self) -> ModelIdentity:
        """Name, version and the two settings: each of them changes the text."""
        return self._model

    def summarize(self, request: SummaryRequest) -> Answer:
        """Pick sentences. Nothing can fail here; the replies may leave nothing to pick."""
        size = sum(len(reply.text) for reply in request.replies)
        target = min(self._max_characters, max(1, round(size * self._share)))
        floor = min(self._max_characters, max(target, size // 2))
        candidates = _candidates(request.replies)
        chosen = _one_of_each(candidates, floor, self._max_characters)
        _fill(chosen, candidates, target)
        return Answer(text=_joined(chosen), finish=FinishFacts(signals=("stop",)))


def _usable(reply: AssistantReply) -> Iterator[tuple[int, str]]:
    """The sentences that could stand in a summary as they are (C3)."""
    for place, sentence in enumerate(sentences(reply.text)):
        short = len(sentence) <= LONGEST_SENTENCE
        if short and "\x00" not in sentence and is_well_formed(sentence):
            yield place, sentence


def _candidates(replies: Sequence[AssistantReply]) -> list[_Candidate]:
    """The best sentences, best first. Two passes, so that memory holds no more than these."""
    frequency: Counter[str] = Counter()
    count = 0
    last: list[int] = []
    for reply in replies:
        end = 0
        for place, sentence in _usable(reply):
            frequency.update(tokens(sentence))
            count, end = count + 1, place
        last.append(end)
    weights = {
        token: round(1_000 * math.log1p(found) * math.log((count + 1) / found))
        for token, found in frequency.items()
    }
    best: list[_Candidate] = []
    for index, reply in enumerate(replies):
        scored = (
            _Candidate(index, place, text, words := tokens(text), _score(text, words, weights))
            for place, text in _usable(reply)
        )
        placed = (_placed(candidate, last[index]) for candidate in scored)
        best += heapq.nsmallest(_CANDIDATES // len(replies) + 1, placed, key=_rank)
    return sorted(best, key=_rank)


def _score(text: str, words: frozenset[str], weights: dict[str, int]) -> float:
    """How much a sentence says of the whole, with a premium on figures, dates and identifiers."""
    if not words:
        return 0.0
    score = sum(weights[word] for word in words) / math.sqrt(len(words))
    if _FIGURE.search(text):
        score *= 1.5
    if _IDENTIFIER.search(text):
        score *= 1.2
    return score


def _placed(candidate: _Candidate, last: int) -> _Candidate:
    """A reply's opening tends to be its answer; a question at its end tends to be a courtesy."""
    factor = 1.3 if candidate.place == 0 else 1.0
    if candidate.place == last and candidate.text.endswith(("?", "？", "؟")):
        factor *= 0.4
    return _Candidate(
        candidate.reply,
        candidate.place,
        candidate.text,
        candidate.tokens,
        candidate.score * factor,
    )


def _rank(candidate: _Candidate) -> tuple[float, int, int]:
    return -candidate.score, candidate.reply, candidate.place


def _one_of_each(candidates: Sequence[_Candidate], limit: int, most: int) -> list[_Candidate]:
    """The best sentence of each reply while they fit, no sentence twice; one if ``most`` allows."""
    chosen: list[_Candidate] = []
    replies: set[int] = set()
    texts: set[str] = set()
    used = 0
    for candidate in candidates:
        if candidate.reply in replies or candidate.text in texts:
            continue
        if used + len(candidate.text) + 1 <= limit:
            chosen.append(candidate)
            replies.add(candidate.reply)
            texts.add(candidate.text)
            used += len(candidate.text) + 1
    return chosen or [candidate for candidate in candidates if len(candidate.text) <= most][:1]


def _fill(chosen: list[_Candidate], candidates: Sequence[_Candidate], target: int) -> None:
    """Add what says most that is not said yet, until the target is reached.

    What a sentence adds can only shrink as others are chosen, so the queue is put right lazily.
    """
    said = frozenset[str]().union(*(candidate.tokens for candidate in chosen))
    taken = {(candidate.reply, candidate.place) for candidate in chosen}
    least = candidates[0].score * _LEAST_GAIN if candidates else 0.0
    queue = [
        (-candidate.score, index)
        for index, candidate in enumerate(candidates)
        if (candidate.reply, candidate.place) not in taken
    ]
    heapq.heapify(queue)
    used = sum(len(candidate.text) + 1 for candidate in chosen)
    while queue and used < target:
        _, index = heapq.heappop(queue)
        candidate = candidates[index]
        if used + len(candidate.text) + 1 > target:
            continue
        gain = -candidate.score * _news(candidate, said)
        if queue and (gain, index) > queue[0]:
            heapq.heappush(queue, (gain, index))
            continue
        if -gain > least:
            chosen.append(candidate)
            said |= candidate.tokens
            used += len(candidate.text) + 1


def _news(candidate: _Candidate, said: frozenset[str]) -> float:
    """The share of a sentence's tokens that no chosen sentence has: near zero for a repetition."""
    if not candidate.tokens:
        return 0.0
    return len(candidate.tokens - said) / len(candidate.tokens)


def _joined(chosen: list[_Candidate]) -> str:
    """One paragraph for each reply, everything in its original order."""
    paragraphs: dict[int, str] = {}
    for candidate in sorted(chosen, key=lambda chosen: (chosen.reply, chosen.place)):
        before = paragraphs.get(candidate.reply, "")
        space = "" if not before or before.endswith(_NO_SPACE_AFTER) else " "
        paragraphs[candidate.reply] = f"{before}{space}{candidate.text}"
    return "\n".join(paragraphs.values())
