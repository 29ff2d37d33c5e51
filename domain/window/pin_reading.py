"""A text as the rules of pins read it: its sentences, and what has to be quoted with each of them (T9)."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from compaction_ledger.domain.window import pin_phrases as phrases
from compaction_ledger.domain.window import pin_words as words
from compaction_ledger.domain.window.pin_corrections import (
    corrects,
    takes_back,
    units_of,
    without_mark,
)
from compaction_ledger.domain.window.pin_leads import governed
from compaction_ledger.domain.window.pin_regions import Regions, set_apart
from compaction_ledger.domain.window.pin_sentences import (
    Sentence,
    first_word,
    lines_of,
    sentences_of,
)
from compaction_ledger.domain.window.pin_words import words_of

_FRAGMENT_WORDS = 5
_SPAN = 400  # so much of a sentence says how it begins


class Context(NamedTuple):
    """What a quote in a sentence must take in: from ``lead`` on, or up to ``tail``, where they are set.

    ``others``: the lead announces somebody else's words or an example, so that no rule is proposed here.
    """

    lead: int | None = None
    tail: int | None = None
    others: bool = False


class Reading(NamedTuple):
    """The sentences of a text in order, each with its context, and what is set apart in it."""

    text: str
    sentences: list[Sentence]
    contexts: list[Context]
    regions: Regions
    starts: list[int]

    def sentence_at(self, place: int) -> int:
        """The index of the sentence that ``place`` is in, or of the one before it; -1 before the first."""
        return bisect_right(self.starts, place) - 1


def read(text: str) -> Reading:
    """Read ``text``, in linear time."""
    lines = lines_of(text)
    sentences = sentences_of(text, lines)
    leads = governed(text, lines, sentences)
    tails = _tails(text, sentences)
    contexts = [
        Context(lead and lead[0], tail, bool(lead and lead[1]))
        for lead, tail in zip(leads, tails, strict=True)
    ]
    return Reading(text, sentences, contexts, set_apart(text), [each.start for each in sentences])


def _tails(text: str, sentences: list[Sentence]) -> list[int | None]:
    """For each sentence up to where a quote must reach: what narrows it or takes it back stands behind."""
    found: list[int | None] = [None] * len(sentences)
    measured: dict[
        str, list[int]
    ] = {}  # sentences that no correction has taken up yet, by their units
    for index, sentence in enumerate(sentences):
        span = text[sentence.words : min(sentence.end, sentence.words + _SPAN)]
        units = units_of(span)
        if index and corrects(span):
            about = [each for unit in units for each in measured.pop(unit, ())]
            if not about and not _says_something_new(span):
                about = [index - 1]
            for each in about:
                found[each] = sentence.end
        elif index and _belongs_to_previous(span):
            found[index - 1] = sentence.end
        for unit in units:
            measured.setdefault(unit, []).append(index)
    return found


def _says_something_new(span: str) -> bool:
    """Whether a sentence marked as a correction begins with a rule of its own: "Actually, no nuts"."""
    if takes_back(span):
        return False
    rest = words_of(without_mark(span))
    return bool(rest) and rest[0] in words.OPENING_WORDS


def _is_trailing(span: str, first: str, rest: list[str]) -> bool:
    """Whether a few words only say who said it, or for what it holds: "He said.", "per night"."""
    if first in words.SCOPES - words.OPENING_WORDS and span[0].islower():
        return True
    return first in words.OTHERS and any(word in words.REPORTS for word in rest)


def _belongs_to_previous(span: str) -> bool:
    span = span.lstrip("(（[ ")
    first = first_word(span, 0, len(span))
    if not first:
        unspaced = words.UNSPACED_FRAGMENTS.match(span) is not None
        return unspaced or words.JOKES.issuperset(span.strip()) or span.startswith("/s")
    if first in words.FRAGMENTS or words.UNSPACED_FRAGMENTS.match(span):
        return True
    if phrases.LOOKING_BACK.match(span) and not phrases.EMPHASIZING.search(span):
        return True
    rest = words_of(span)
    if len(rest) < _FRAGMENT_WORDS and _is_trailing(span, first, rest):
        return True
    if first in words.CONDITIONS and "," not in span and len(rest) <= _FRAGMENT_WORDS:
        return first not in words.ONLY or rest[1:2] in (["if"], ["wenn"], ["si"], ["se"], ["als"])
    if first in words.BUTS:
        return any(word in words.PERMISSIONS for word in rest[1:])
    return len(rest) <= _FRAGMENT_WORDS and all(word in words.HEDGING_FRAGMENTS for word in rest)
