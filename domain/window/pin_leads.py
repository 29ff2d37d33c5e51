"""What announces the sentences behind it, so that they cannot be told without it (T9).

"My colleague said:", "Please don't:", a title over a list, "Here is the landlord's letter."
"""

from __future__ import annotations

import re
from typing import NamedTuple

from compaction_ledger.domain.window import pin_phrases as phrases
from compaction_ledger.domain.window import pin_words as words
from compaction_ledger.domain.window.pin_sentences import NO_WORDS, Line, Sentence
from compaction_ledger.domain.window.pin_words import has_operator, words_of

_COLON = re.compile(r"[:：](?=[*_]*(?:\s|$))|：")
_EMPHASIS = " \t\r\n*_"
_MOST_LABEL_WORDS = 3
_SPAN = 400  # so much of a sentence says how it begins
_SHORT_SENTENCE, _VERY_SHORT = 8, 4
_MUST = re.compile("必须|必須")


class _Lead(NamedTuple):
    """An announcement from ``start`` that holds for all sentences before ``until``."""

    start: int
    until: int
    others: bool


class _Layout:
    """The lines of a text, and for each one where what begins there is over, counted once from behind."""

    def __init__(self, lines: list[Line], size: int) -> None:
        self.lines = lines
        count = len(lines)
        self.block_end = [size] * (count + 1)
        self.paragraph_end = [size] * (count + 1)
        self.next_heading = [size] * (count + 1)
        self.next_words = [count] * (count + 1)
        for index in range(count - 1, -1, -1):
            self._count(index, lines[index], lines[index + 1] if index + 1 < count else None)

    def _count(self, index: int, line: Line, following: Line | None) -> None:
        ends = following is None or following.kind in NO_WORDS
        self.paragraph_end[index] = line.end if ends else self.paragraph_end[index + 1]
        self.next_heading[index] = (
            line.start if line.kind == "heading" else self.next_heading[index + 1]
        )
        self.next_words[index] = index if line.kind not in NO_WORDS else self.next_words[index + 1]
        further = self.next_words[index + 1]
        goes_on = further < len(self.lines) and (
            self.lines[further].kind == "item"
            or (further == index + 1 and self.lines[further].kind == "text")
        )
        self.block_end[index] = self.block_end[further] if goes_on else line.end

    def end_under(self, index: int, following: int) -> int:
        """Up to where a title in line ``index`` holds: under an item, only for the items further in."""
        inside = following < len(self.lines) and self.indent(following) > self.indent(index)
        if self.lines[index].kind != "item" or not inside:
            return self.block_end[following]
        outer, end = self.indent_of(self.lines[index]), following
        while end < len(self.lines) and (
            self.lines[end].kind in NO_WORDS or self.indent(end) > outer
        ):
            end += 1
        return self.lines[end - 1].end

    def indent(self, index: int) -> int:
        """How far in a line begins."""
        return self.indent_of(self.lines[index])

    @staticmethod
    def indent_of(line: Line) -> int:
        """The same of a line."""
        return line.start - line.begin

    def last_line(self, sentence: Sentence) -> int:
        """The index of the line in which ``sentence`` ends."""
        index = sentence.line
        while index + 1 < len(self.lines) and self.lines[index].end < sentence.end:
            index += 1
        return index


def governed(
    text: str, lines: list[Line], sentences: list[Sentence]
) -> list[tuple[int, bool] | None]:
    """For each sentence where the announcement begins that it stands under, and whether that is of others."""
    layout = _Layout(lines, len(text))
    found: list[tuple[int, bool] | None] = []
    active: _Lead | None = None
    for sentence in sentences:
        if active and sentence.start >= active.until:
            active = None
        found.append((active.start, active.others) if active else None)
        lead = _lead(text, layout, sentence)
        if lead and active:
            lead = _Lead(active.start, max(active.until, lead.until), active.others or lead.others)
        active = lead or active
    return found


def _lead(text: str, layout: _Layout, sentence: Sentence) -> _Lead | None:
    """What ``sentence`` announces, if what follows cannot be told without it."""
    index = layout.last_line(sentence)
    line, following = layout.lines[index], layout.next_words[index + 1]
    span = text[sentence.words : sentence.end]
    if layout.lines[sentence.line].kind == "heading":
        others, governs = _judge(span)
        return _Lead(sentence.start, layout.next_heading[following], others) if governs else None
    colon = _COLON.search(text, sentence.words, sentence.end)
    if colon is not None and text[colon.end() : sentence.end].strip(_EMPHASIS):
        others, governs = _judge(text[sentence.words : colon.start()], is_label=True)
        until = layout.paragraph_end[index] if others else line.end
        return _Lead(sentence.start, until, others) if governs else None
    if colon is not None or _stands_before_list(text, layout, sentence, line, following):
        others, governs = _judge(span, is_label=True, is_title=True)
        until = len(text) if others else layout.end_under(index, following)
        return _Lead(sentence.start, until, others) if governs else None
    return _handing_over(text, layout, index, sentence)


def _stands_before_list(
    text: str, layout: _Layout, sentence: Sentence, line: Line, following: int
) -> bool:
    """Whether ``sentence`` is the unfinished line above a list."""
    return (
        following < len(layout.lines)
        and layout.lines[following].kind == "item"
        and (line.kind == "text" or layout.indent(following) > layout.indent_of(line))
        and sentence.end == line.end
        and text[sentence.end - 1] not in ".!。！"
    )


def _handing_over(text: str, layout: _Layout, index: int, sentence: Sentence) -> _Lead | None:
    """ "Here is what my landlord wrote." and "None of the following.", with no colon."""
    span = text[sentence.words : min(sentence.end, sentence.words + _SPAN)]
    found = words_of(span)
    if phrases.FOLLOWING.search(span) and (
        any(word in _TURNING or word.endswith("n't") for word in found)
        or words.UNSPACED_OPERATORS.search(span)
    ):
        until = max(layout.paragraph_end[index], layout.block_end[layout.next_words[index + 1]])
        return _Lead(sentence.start, until, others=True)
    if phrases.HANDING_OVER.match(span) and any(word in words.REPORTS for word in found):
        return _Lead(sentence.start, len(text), others=True)
    line = layout.lines[index]
    if sentence.end == line.end and index + 1 < len(layout.lines):
        handed = found[-1:] and found[-1] in words.REPORTS and text[line.end - 1].isalpha()
        if handed or phrases.MATERIAL.search(span):
            return _Lead(sentence.start, len(text), others=True)
    plain = [word.strip(".,;!") for word in span.casefold().split()]
    supposed = len(found) <= _VERY_SHORT and any(word in words.EXAMPLES for word in plain)
    told = found[-1:] and found[-1] in _TOLD and any(word in words.REPORTS for word in found)
    if supposed or (told and len(found) <= _SHORT_SENTENCE):
        return _Lead(sentence.start, layout.paragraph_end[index], others=True)
    return None


_TURNING = (
    words.NEGATIONS
    | words.AVERSIONS
    | words.REPORTS
    | words.EXAMPLES
    | (words.CONDITIONS - words.ONLY)
)
_TOLD = frozenset(
    {"things", "this", "these", "points", "rules", "words", "dinge", "folgendes", "choses", "cosas"}
)


def _judge(label: str, *, is_label: bool = False, is_title: bool = False) -> tuple[bool, bool]:
    """Whether ``label`` announces words of others, and whether it says something of what follows.

    Of a title over lines of their own it must be known that it says nothing; a label in front of others in
    its line says something if it is short, and a heading only by its words.
    """
    found = words_of(label)
    others = (
        any(word in words.REPORTS or word in words.EXAMPLES for word in found)
        or words.UNSPACED_REPORTS.search(label) is not None
        or words.UNSPACED_EXAMPLES.search(label) is not None
    )
    telling = [word for word in found if word not in words.MODALS]
    averse = any(word in words.AVERSIONS for word in found)
    if others or averse or has_operator(_MUST.sub("", label), telling):
        return others, True
    if words.UNSPACED_AVERSIONS.search(label):
        return False, True
    if all(word in words.POLITE or word in words.FRAME for word in found):
        return False, False
    titled = any(word in words.LABELS or word in words.TITLES for word in found)
    if is_title:
        return False, not titled or found[0] in words.SCOPES
    short = is_label and len(found) <= _MOST_LABEL_WORDS and not titled
    return False, short or (is_label and bool(found) and found[0] in words.SCOPES)
