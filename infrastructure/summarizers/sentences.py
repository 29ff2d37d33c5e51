"""Sentences and tokens of any script, found with Unicode punctuation alone: no data, no models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_LINE = re.compile("[^\n\r\x0b\x0c\x85\u2028\u2029]+")
_CLOSING = "[\"'”’»)\\]）」』】》〉]*"
# Marks that end a sentence wherever they stand, and marks that do so only before white space.
_END = re.compile(rf"(?:[。！？｡．]+|[؟۔।॥።]+|[.!?…]+(?={_CLOSING}(?:\s|$))){_CLOSING}")
_BEFORE_DOT = re.compile(r"([^\W_]+(?:\.[^\W_]+)*)\.$")
_LONGEST_WORD = 24
# A dot behind these ends no sentence, behind the latter only before a figure. A dot before a small
# letter never does, so most abbreviations need no entry. Nothing else here knows a language.
_ABBREVIATIONS = frozenset({"bzw", "ca", "cf", "dr", "mr", "mrs", "ms", "prof", "sr", "st", "vs"})
_DOTTED = frozenset({"d.h", "e.g", "i.e", "p.ex", "z.b", "п.с", "т.д", "т.е"})
_BEFORE_FIGURES = frozenset({"approx", "art", "fig", "no", "nr", "p", "pp"})

# Scripts that put no space between words: Thai, Lao, Burmese, Khmer, kana and Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>[^\W_{_UNSPACED}]+)")


def sentences(text: str) -> Iterator[str]:
    """The sentences of ``text`` in order, each an exact part of it without the white space around.

    A line break always ends a sentence, so headings, list items and table rows are sentences too.
    """
    for line in _LINE.finditer(text):
        yield from _in_line(line.group())


def _in_line(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        if _ends_here(line, start, end):
            sentence = line[start : end.end()].strip()
            if sentence:
                yield sentence
            start = end.end()
    rest = line[start:].strip()
    if rest:
        yield rest


def _ends_here(line: str, start: int, end: re.Match[str]) -> bool:
    """Whether this mark really ends a sentence: a single dot may belong to a word or a number."""
    mark = end.group()
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    following = line[end.end() : end.end() + _LONGEST_WORD].lstrip()
    if following[:1].islower():
        return False
    before = line[max(start, end.start() - _LONGEST_WORD) : end.start() + 1]
    word = _BEFORE_DOT.search(before)
    if word is None or len(mark) > 1:
        return True
    if word[1].isdigit():  # the number of a list item
        return before.strip() != f"{word[1]}." or end.start() - start > _LONGEST_WORD
    return not _abbreviated(word[1], following)


def _abbreviated(word: str, following: str) -> bool:
    small = word.lower()
    if len(word) == 1 and word.isupper():
        return True  # an initial
    return (
        small in _ABBREVIATIONS
        or small in _DOTTED
        or (small in _BEFORE_FIGURES and following[:1].isdigit())
    )


def tokens(sentence: str) -> frozenset[str]:
    """What a sentence is about: case-folded words; character pairs in scripts without spaces."""
    found: set[str] = set()
    for run in _RUN.finditer(sentence):
        text = run.group()
        if run.lastgroup == "word":
            found.add(text.casefold())
        elif len(text) == 1:
            found.add(text)
        else:
            found.update(map("".join, pairwise(text)))
    return frozenset(found)
