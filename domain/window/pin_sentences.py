"""The sentences of a text, each an exact span of it (T9): careful rather than complete.

A place is a boundary only where it surely is one. Text that is not cut here is judged together, so an
unknown abbreviation makes a sentence too long, which refuses a quote, and never too short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from compaction_ledger.domain.window.pin_words import (
    DANGLING,
    FRAGMENTS,
    OPENING_WORDS,
    UNSPACED_FRAGMENTS,
    UNSPACED_OPERATORS,
    word_set,
)

_MARKS = re.compile(r"[.!?…]+|[。！？｡．؟۔।॥]+")
_BRACKETS = re.compile(r"[()\[\]（）【】]|\n[ \t]*\r?\n")
_CLOSERS = frozenset("\"'”’»)]）」』】》〉*_")
_FULL_STOPS = frozenset("。！？｡．؟۔।॥")
_MARKER = re.compile(
    r"[ \t]*(?:(?:[-*+•‣◦–—·▪●]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])[ \t]+(?:\[[ xX]\][ \t]+)?)+"
)
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+")
_TAG = re.compile(r"[ \t]*</?[A-Za-z][\w:.-]*(?:\s[^<>\n]{0,200})?>[ \t]*")
_INDENT = re.compile(r"[ \t\u3000]*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LAST_WORD = re.compile(r"([^\W_]+(?:[.'’][^\W_]+)*)$")
_LONGEST_WORD = 32

_ABBREVIATIONS = word_set("""
    mt ft rd blvd apt bldg ext lt fr msgr gov pres supt adm cmdr esq maj pvt messrs assn univ
    intl natl mfg eq def thm ref abt fa hr frl pl bhf hbf jh kap hrsg verf eigtl bros approx
    appr incl excl inc ltd corp co dept est etc max min nr nrs vs viz cf ca cca circa al ed vol
    pp p sec ch mr mrs ms dr prof st sr jr rev gen col sgt capt rep sen hon misc resp temp avg
    std hrs jan feb mar apr jun jul aug sep sept oct nov dec tue tues wed thu thur thurs fri bzw
    evtl ggf inkl exkl zzgl mind höchst ungef usw tel abs str mio mrd tsd stk bspw sog ges gem
    vgl bzgl allg entspr einschl abzgl zb dh uvm mo sa env m mme mlle ste av bd janv févr avr
    juil déc ex aprox máx mín sra srta dña ud uds pág núm avda ecc sig dott ing pag mass dra exa
    bijv enz mevr dhr nl o.a m.b.t тыс млн руб г гг стр см ул т.е т.д
    """)
_BEFORE_FIGURES = frozenset({"no", "nos", "art", "fig"})
_NAMES = frozenset({"yahoo", "kahoot", "joomla", "jeopardy"})  # with their exclamation mark
_BEFORE_ORDINALS = word_set("""
    am dem den der des das die vom zum bis ab im und ein eine einen seit vor nach jeder jeden jede
    unser mein ihr den det på til på od do dne dnia ot az aztán og
    """)
_MONTHS = word_set("""
    januar februar märz april mai juni juli august september oktober november dezember jänner
    januari februari mars maj juni juli augusti
    """)
_SHORT_WORDS = word_set("""
    it me you us so too ok yes eur usd gbp chf day pay way out all it's den mir uns ja
    """)
# Words at which a line may begin that says something of its own.
_MAY_BEGIN = OPENING_WORDS | word_set("the a an this my our i we")
_ENDS_OPEN = frozenset(",;、，；—–-/&+=<>~≈(（[")
_SHORT_LINE, _LONG_LINE = 30, 50


NO_WORDS = frozenset({"blank", "tag"})


class Line(NamedTuple):
    """One line: where it starts, where its words start behind a list's marker, and where it ends.

    ``kind``: ``text``, ``item``, ``heading``, ``blank``, or ``tag`` for a line that is nothing but one.
    ``begin`` is where the line begins, with its indentation.
    """

    start: int
    words: int
    end: int
    kind: str
    begin: int


class Sentence(NamedTuple):
    """One sentence: ``start`` with a list's marker, ``words`` without, ``end`` with its last mark."""

    start: int
    words: int
    end: int
    line: int


def lines_of(text: str) -> list[Line]:
    """The lines of ``text``."""
    found: list[Line] = []
    place = 0
    for piece in text.splitlines(keepends=True):
        end = place + len(piece.rstrip())
        if end == place:
            found.append(Line(place, place, place, "blank", place))
        elif _TAG.fullmatch(text, place, end):
            found.append(Line(place, place, end, "tag", place))
        elif heading := _HEADING.match(text, place, end):
            found.append(Line(place, heading.end(), end, "heading", place))
        elif marker := _MARKER.match(text, place, end):
            words = min(marker.end(), end)
            found.append(Line(_indented(text, place, end), words, end, "item", place))
        else:
            start = _indented(text, place, end)
            found.append(Line(start, start, end, "text", place))
        place += len(piece)
    return found


def sentences_of(text: str, lines: list[Line]) -> list[Sentence]:
    """The sentences of ``text`` in order. Linear time."""
    nested = _in_brackets(text)
    found: list[Sentence] = []
    place, index = 0, 0
    for end in _boundaries(text, lines, nested):
        start = _skip_space(text, place, end)
        place = end
        if start == end:
            continue
        while index + 1 < len(lines) and lines[index + 1].start <= start:
            index += 1
        line = lines[index]
        words = line.words if start == line.start and line.words < end else start
        found.append(Sentence(start, words, end, index))
    return found


def first_word(text: str, start: int, end: int) -> str:
    """The first word of a span, case-folded; empty where it begins with none."""
    word = _WORD.match(text, start, end)
    return word.group().casefold().replace("’", "'") if word else ""


def _boundaries(text: str, lines: list[Line], nested: list[tuple[int, int]]) -> Iterator[int]:
    span = 0
    for index, line in enumerate(lines):
        if line.kind in NO_WORDS:
            yield line.end
            continue
        for mark in _MARKS.finditer(text, line.words, line.end):
            while span < len(nested) and nested[span][1] <= mark.start():
                span += 1
            if span < len(nested) and nested[span][0] < mark.start():
                continue
            end = _end_of_sentence(text, line, mark)
            if end is not None:
                yield end
        if not _goes_on(text, lines, index):
            yield line.end


def _end_of_sentence(text: str, line: Line, mark: re.Match[str]) -> int | None:
    """Where the sentence ends that ``mark`` ends, with the marks that close behind it, if it ends one."""
    end = mark.end()
    while end < line.end and end - mark.end() < 4 and text[end] in _CLOSERS:
        end += 1
    if end == line.end:
        return end
    if mark.group()[0] in _FULL_STOPS:
        return None if mark.group() == "．" and text[end].isdigit() else end
    if not text[end].isspace():
        return None
    if mark.group() != ".":
        word = _LAST_WORD.search(text, max(line.words, mark.start() - _LONGEST_WORD), mark.start())
        if mark.group() == "!" and word and word[1].casefold() in _NAMES:
            return None
        return end if _begins(text, end) or _exclaims(text, line, mark) else None
    return end if _is_full_stop(text, line, mark.start(), end) else None


def _exclaims(text: str, line: Line, mark: re.Match[str]) -> bool:
    """Whether ! or ? ends a sentence though a small letter follows: not within a name, as of Yahoo!"""
    if "." in mark.group() or "…" in mark.group():
        return False
    word = _LAST_WORD.search(text, max(line.words, mark.start() - _LONGEST_WORD), mark.start())
    return word is None or word[1].islower() or word.start() == line.words


def _begins(text: str, end: int) -> bool:
    following = text[end : end + 8].lstrip()
    return bool(following) and not following[0].islower()


def _is_full_stop(text: str, line: Line, dot: int, end: int) -> bool:
    """Whether a single dot ends a sentence: not behind an abbreviation, an initial or an ordinal."""
    before = text[max(line.words, dot - _LONGEST_WORD) : dot]
    word = _LAST_WORD.search(before)
    if word is None:
        return True
    last = word[1].casefold()
    following = text[end : end + _LONGEST_WORD].lstrip()
    if last.isdigit() and len(last) < 3:
        ahead = before[: word.start()]
        return bool(ahead.strip()) and (
            not ahead[-1:].isspace() or _is_no_ordinal(ahead, following)
        )
    if any(
        part in _ABBREVIATIONS or (len(part) == 1 and part.isalpha()) for part in last.split(".")
    ):
        return False
    if last in _BEFORE_FIGURES and any(each.isdigit() for each in following.partition(" ")[0]):
        return False
    if following[:1].isdigit() and len(last) < 4:
        return last in _SHORT_WORDS
    return True


def _is_no_ordinal(before: str, following: str) -> bool:
    if not following or following[0].islower():
        return False
    previous = _LAST_WORD.search(before.rstrip())
    next_word = first_word(following, 0, len(following))
    return next_word not in _MONTHS and not (
        previous is None or previous[1].casefold() in _BEFORE_ORDINALS
    )


def _goes_on(text: str, lines: list[Line], index: int) -> bool:
    """Whether the sentence at the end of a line goes on in the next: the line was only wrapped."""
    line = lines[index]
    if index + 1 == len(lines) or line.kind == "heading" or lines[index + 1].kind != "text":
        return False
    following = lines[index + 1]
    last, first = text[line.end - 1], text[following.words]
    if last in _ENDS_OPEN:
        return True
    if last in ".!?:：" or last in _FULL_STOPS:
        return False
    opening = first_word(text, following.words, following.end)
    if first in "(（[" or opening in FRAGMENTS or UNSPACED_FRAGMENTS.match(text, following.words):
        return True
    if UNSPACED_OPERATORS.search(text, max(line.words, line.end - 2), line.end):
        return True
    ending = _LAST_WORD.search(text, max(line.words, line.end - _LONGEST_WORD), line.end)
    if ending and ending[1].casefold() in DANGLING:
        return True
    length = line.end - line.start
    if first.islower():
        return opening in DANGLING - _MAY_BEGIN or length >= _SHORT_LINE
    if not first.isupper():  # a figure, a sign, or a script without cases
        return length >= _SHORT_LINE
    return length >= _LONG_LINE


def _in_brackets(text: str) -> list[tuple[int, int]]:
    """The outermost bracketed spans, none of which goes beyond its paragraph."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for mark in _BRACKETS.finditer(text):
        sign = mark.group()
        if sign[0] == "\n":
            opened.clear()
        elif sign in "([（【":
            opened.append(mark.start())
        elif opened:
            start = opened.pop()
            while found and found[-1][0] > start:
                found.pop()
            found.append((start, mark.end()))
    return found


def _indented(text: str, start: int, end: int) -> int:
    indent = _INDENT.match(text, start, end)
    return indent.end() if indent else start


def _skip_space(text: str, place: int, end: int) -> int:
    while place < end and text[place].isspace():
        place += 1
    return place
