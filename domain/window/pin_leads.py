"""What announces the sentences behind it, so that they cannot be told without it (T9).

"My colleague said:", "Please don't:", a title over a list, "Here is the landlord's letter."
"""

from __future__ import annotations

import re
from typing import NamedTuple

from compaction_ledger.domain.window import pin_words as words
from compaction_ledger.domain.window.pin_sentences import Line, Sentence
from compaction_ledger.domain.window.pin_words import has_operator, words_of

_COLON = re.compile(r"[:：](?=[*_]*(?:\s|$))|：")
_EMPHASIS = " \t\r\n*_"
_MOST_LABEL_WORDS = 3
_SPAN = 400  # so much of a sentence says how it begins
_SHORT_SENTENCE = 8
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
        ends = following is None or following.kind == "blank"
        self.paragraph_end[index] = line.end if ends else self.paragraph_end[index + 1]
        self.next_heading[index] = (
            line.start if line.kind == "heading" else self.next_heading[index + 1]
        )
        self.next_words[index] = index if line.kind != "blank" else self.next_words[index + 1]
        further = self.next_words[index + 1]
        goes_on = further < len(self.lines) and (
            self.lines[further].kind == "item"
            or (further == index + 1 and self.lines[further].kind == "text")
        )
        self.block_end[index] = self.block_end[further] if goes_on else line.end

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
        others, governs = _judge(span, is_label=False)
        return _Lead(sentence.start, layout.next_heading[following], others) if governs else None
    colon = _COLON.search(text, sentence.words, sentence.end)
    if colon is not None and colon.end() < sentence.end:
        others, governs = _judge(text[sentence.words : colon.start()], is_label=True)
        until = layout.paragraph_end[index] if others else line.end
        return _Lead(sentence.start, until, others) if governs else None
    if colon is not None or _stands_before_list(text, layout, sentence, line, following):
        others, governs = _judge(span, is_label=True)
        until = len(text) if others else layout.block_end[following]
        return _Lead(sentence.start, until, others) if governs else None
    return _handing_over(text, layout, index, sentence)


def _stands_before_list(
    text: str, layout: _Layout, sentence: Sentence, line: Line, following: int
) -> bool:
    """Whether ``sentence`` is the unfinished line above a list."""
    return (
        following < len(layout.lines)
        and layout.lines[following].kind == "item"
        and line.kind == "text"
        and sentence.end == line.end
        and text[sentence.end - 1] not in ".!。！"
    )


def _handing_over(text: str, layout: _Layout, index: int, sentence: Sentence) -> _Lead | None:
    """ "Here is what my landlord wrote." and "None of the following.", with no colon."""
    span = text[sentence.words : min(sentence.end, sentence.words + _SPAN)]
    if words.FOLLOWING.search(span) and _judge(span, is_label=False)[1]:
        until = max(layout.paragraph_end[index], layout.block_end[layout.next_words[index + 1]])
        return _Lead(sentence.start, until, others=True)
    if _HANDING_OVER.match(span) and any(word in words.REPORTS for word in words_of(span)):
        return _Lead(sentence.start, len(text), others=True)
    return None


_HANDING_OVER = re.compile(
    r"(?:here(?:'s|’s| is| are| comes)|(?:this|that|the following) is|see|hier (?:ist|kommt|sind)|voici|voilà"
    r"|aquí|ecco|aqui|hier is|вот)\b",
    re.IGNORECASE,
)


def _judge(label: str, *, is_label: bool) -> tuple[bool, bool]:
    """Whether ``label`` announces words of others, and whether it says something of what follows."""
    found = words_of(label)
    others = (
        any(word in words.REPORTS or word in words.EXAMPLES for word in found)
        or words.UNSPACED_REPORTS.search(label) is not None
        or words.UNSPACED_EXAMPLES.search(label) is not None
    )
    telling = [word for word in found if word not in words.MODALS]
    if others or has_operator(_MUST.sub("", label), telling):
        return others, True
    if all(word in words.POLITE or word in words.FRAME for word in found):
        return False, False
    titled = any(word in words.POLITE or word in words.LABELS for word in found)
    short = is_label and len(found) <= _MOST_LABEL_WORDS and not titled
    return False, short or (is_label and bool(found) and found[0] in words.SCOPES)
