"""What a query asks for, and where it stands in an original, character for character (T15)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from compaction_ledger.domain.terms import (
    UNSPACED,
    Folded,
    fold,
    fold_text,
    is_single,
    is_unspaced,
    search_terms,
    spaced_pattern,
    terms_of_folded,
    word_pattern,
)

CONTEXT = 100
"""Characters on each side of a match that are quoted with it."""

_QUOTED = re.compile(r'"([^"]*)"')
_SLACK = 4  # the part of the context that may be given up


class Need(NamedTuple):
    """Something that must be there: terms side by side, as this exact text (folded)."""

    terms: tuple[str, ...]
    pattern: re.Pattern[str]


class Wanted(NamedTuple):
    """What a query asks for. ``sequence`` are the terms of the whole query, where it has several needs."""

    needs: tuple[Need, ...]
    sequence: tuple[str, ...]
    phrase: re.Pattern[str]

    def find(self, folded: Folded) -> tuple[int, int] | None:
        """Where it stands in the original: its words side by side, or else the longest of them.

        ``None`` where not all of them are there.
        """
        found = self.phrase.search(folded.text)
        if found is None:
            longest = -1
            for need in self.needs:
                one = need.pattern.search(folded.text)
                if one is None:
                    return None
                if len(one[0]) > longest:
                    longest, found = len(one[0]), one
        return None if found is None else folded.original(*found.span())


def locate(text: str, query: str) -> tuple[int, int] | None:
    """Where in ``text`` stands what ``query`` asks for: from (included) and to (excluded), in characters."""
    return wanted(query).find(fold(text))


def quote_around(text: str, start: int, end: int, context: int = CONTEXT) -> tuple[int, int]:
    """What to quote of a match: with its context, no character cut from its marks, no word where possible.

    A quarter of the context is given up for a whole word.
    """
    first, last, slack = max(0, start - context), min(len(text), end + context), context // _SLACK
    if first:
        first = next(
            (at + 1 for at in range(first, min(first + slack, start)) if text[at].isspace()), first
        )
    if last < len(text):
        last = next(
            (at for at in range(last, max(last - slack, end), -1) if text[at].isspace()), last
        )
    while first > 0 and _belongs_to_previous(text[first]):
        first -= 1
    while last < len(text) and _belongs_to_previous(text[last]):
        last += 1
    return first, last


@lru_cache(maxsize=256)
def wanted(query: str) -> Wanted:
    """What a query asks for. Nothing where it has no word."""
    folded = fold_text(query)
    needs: list[Need] = []
    pieces: list[str] = []
    at = 0
    for quoted in _QUOTED.finditer(folded):
        for piece in _pieces(folded[at : quoted.start()]):
            pieces.append(piece)
            needs.extend(_needs_of(piece))
        literal = quoted[1].strip()
        if terms_of_folded(literal).sequence:
            pieces.append(literal)
            needs.append(_need(literal))
        at = quoted.end()
    for piece in _pieces(folded[at:]):
        pieces.append(piece)
        needs.extend(_needs_of(piece))
    different = tuple({need.pattern.pattern: need for need in needs}.values())
    sequence = search_terms(" ".join(pieces)).sequence if len(needs) > 1 else []
    return Wanted(different, tuple(sequence), _side_by_side(pieces))


def inner(terms: tuple[str, ...]) -> tuple[str, ...]:
    """The terms that surely stand side by side wherever the text of ``terms`` does.

    A lone character at either end may be half of a pair there.
    """
    first = 1 if terms and is_single(terms[0]) else 0
    last = len(terms) - 1 if len(terms) > first and is_single(terms[-1]) else len(terms)
    return terms[first:last]


def lone(terms: tuple[str, ...]) -> tuple[str, ...]:
    """The lone characters at the ends of ``terms``: what :func:`inner` leaves out."""
    ends = dict.fromkeys((*terms[:1], *terms[-1:]))
    return tuple(term for term in ends if is_single(term))


def _pieces(text: str) -> Iterable[str]:
    """What stands between spaces, without the signs around it, and cut where signs touch unspaced script."""
    word = word_pattern()
    between = rf"(?<=[{UNSPACED}])(?:(?!{word})\S)+|(?:(?!{word})\S)+(?=[{UNSPACED}])"
    for chunk in text.split():
        for piece in re.split(between, chunk):
            core = re.search(rf"{word}(?:.*{word})?", piece, re.DOTALL)
            if core:
                yield core[0]


def _needs_of(piece: str) -> Iterable[Need]:
    """A piece as a whole; of unspaced script, each pair of characters for itself."""
    if is_unspaced(piece):
        return map(_need, terms_of_folded(piece).sequence)
    return (_need(piece),)


def _need(literal: str) -> Need:
    return Need(tuple(terms_of_folded(literal).sequence), re.compile(_bounded(literal)))


def _bounded(literal: str) -> str:
    """A pattern for exactly this, and not as a part of a longer word where words have bounds."""
    spaced = spaced_pattern()
    one = re.compile(spaced)
    before = f"(?<!{spaced})" if one.match(literal) else ""
    after = f"(?!{spaced})" if one.match(literal[-1:]) else ""
    return before + re.escape(literal) + after


def _side_by_side(pieces: list[str]) -> re.Pattern[str]:
    """A pattern for the pieces in order, with nothing but signs and spaces between them."""
    if not pieces:
        return re.compile(r"(?!)")
    between = rf"(?:(?!{word_pattern()}).)+"
    return re.compile(between.join(map(_bounded, pieces)), re.DOTALL)


def _belongs_to_previous(character: str) -> bool:
    """Whether it is a mark, or what joins or varies the character before it."""
    return len(fold_text("a" + character)) < 2 or character in "\u200d\uff9e\uff9f"
