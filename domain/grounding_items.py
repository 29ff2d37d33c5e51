"""What in a summary has to be found in its source (T13): its figures, dates, amounts, identifiers, URLs and
quotations.

Found by spelling alone, in one pass over the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple, cast
from unicodedata import combining

from compaction_ledger.domain.grounding_words import (
    CODES,
    CURRENCY,
    MONTHS,
    SCALES,
    UNSPACED_SCALES,
    UNSPACED_UNITS,
)

GroundedKind = Literal["number", "date", "amount", "identifier", "url", "quotation"]


class Item(NamedTuple):
    """Something to be found: ``text`` is exactly what stands in the summary from ``start`` on."""

    kind: GroundedKind
    text: str
    start: int


# --- where a word or a number ends ------------------------------------------------------------------

# Letters of scripts that put no space between words, and Hangul, whose particles follow a word without one.
# The digits of these scripts are not among them: they are digits like any others.
_UNSPACED = (
    "\u0e00-\u0e4f\u0e5a-\u0ecf\u0eda-\u0eff\u1000-\u103f\u104a-\u108f\u109a-\u109f\u1100-\u11ff"
    "\u1780-\u17df\u17ea-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_SEPARATORS = ".,:'\u2019\u066b\u066c\uff0c\uff0e\uff1a"
"""Between two digits these belong to the number: 5,000 and 3.5 and 1'000 and 10:30."""
_SIGNS = "-\u2212"

_W = rf"[^\W{_UNSPACED}]"
_LETTER = re.compile(_W)
_MONEY = re.compile(f"[{CURRENCY}%\u2030\uff05]")
_INSIDE_URL = "/?&=#%~+-_@:."


@lru_cache(maxsize=4_096)
def _is_letter(character: str) -> bool:
    """Whether words and numbers are made of it: a letter or digit of a spaced script, or a mark above one."""
    return _LETTER.match(character) is not None or combining(character) != 0


def goes_on_before(text: str, start: int) -> bool:
    """Whether what stands at ``start`` really began before: 500 in 1500 or in 5,500, 5 in -5."""
    if start == 0:
        return False
    before, first = text[start - 1], text[start]
    if _is_letter(before) and _is_letter(first):
        return True
    earlier = text[start - 2] if start > 1 else " "
    if first.isdecimal() and before in _SEPARATORS:
        return earlier.isdecimal()
    if before in _SIGNS and (first.isdecimal() or _MONEY.match(first)):
        # Behind a word, a number or its unit it is a hyphen: 10-20, INV-0042, $10-$20.
        return not (_is_letter(earlier) or earlier in _SIGNS or _MONEY.match(earlier))
    return False


def goes_on_behind(text: str, end: int, kind: GroundedKind) -> bool:
    """Whether a word or number that ends at ``end`` really goes on: 5 in 5,000, a URL in a longer one."""
    if end >= len(text):
        return False
    last, after = text[end - 1], text[end]
    if _is_letter(last) and _is_letter(after):
        return True
    later = text[end + 1] if end + 1 < len(text) else " "
    if kind == "url":
        return _is_letter(after) or (after in _INSIDE_URL and _is_letter(later))
    return last.isdecimal() and after in _SEPARATORS and later.isdecimal()


_WHOLE_WORD = re.compile(rf"{_W}+")
_WHOLE_NUMBER = re.compile(rf"\d++(?>(?:[{_SEPARATORS}]\d++)*)")


def words(text: str) -> list[str]:
    """Its words and numbers, cut wherever something may end; letters of unspaced scripts are left out."""
    return _WHOLE_WORD.findall(text)


def stretches(text: str) -> re.Pattern[str] | None:
    """What has no place for ``text`` at all where it has one amid itself; ``None`` if unknown."""
    if _WHOLE_NUMBER.fullmatch(text):
        return _WHOLE_NUMBER
    return _WHOLE_WORD if _WHOLE_WORD.fullmatch(text) else None


# --- figures, dates, amounts, identifiers, URLs -----------------------------------------------------

# Of a group that may be repeated, nothing is given back: `(?>(?:...)*)`. The first releases of Python 3.11
# (Debian 12 has 3.11.2) get `(?:...)*+` wrong (https://github.com/python/cpython/issues/106052).
_GROUPED = r"\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\d)(?:[.,]\d++)?"
_NUMBER = rf"[{_SIGNS}]?(?:{_GROUPED}|\d++(?>(?:[{_SEPARATORS}]\d++)*))"
_NUMBERS = rf"{_NUMBER}(?:\s?[-\u2010-\u2015]\s?{_NUMBER})?"
_SCALE = rf"(?:\s?(?:{SCALES})(?!{_W})|(?:{UNSPACED_SCALES}))"
_UNIT = rf"(?:\s?[{CURRENCY}%\u2030\uff05]|\s?(?:{CODES})(?!{_W})|(?:{UNSPACED_UNITS}))"
_URL = (
    r"(?:[A-Za-z][A-Za-z0-9+.\-]{0,20}://|www\.)"
    r"[^\s<>\"'`|{}\\^\u2018-\u201f\u00ab\u00bb\u3000-\u303f\uff00-\uff0f]++"
)
_DAY = r"\d{1,2}(?:\.|st|nd|rd|th|er|\u00ba|\u00aa)?"
_DATE = (
    rf"{_DAY}\s(?:de\s|of\s)?(?:{MONTHS})(?!{_W})(?:\.?,?\s(?:de\s|del\s)?\d{{4}}(?!{_W}))?"
    rf"|(?:{MONTHS})\.?\s{_DAY}(?!{_W})(?:,?\s\d{{4}}(?!{_W}))?"
    rf"|(?:{MONTHS})\.?\s\d{{4}}(?!{_W})"
    r"|\d{2,4}\s?[\u5e74\ub144](?:\s?\d{1,2}\s?[\u6708\uc6d4](?:\s?\d{1,2}\s?[\u65e5\u53f7\u865f\uc77c])?)?"
    r"|\d{1,2}\s?[\u6708\uc6d4](?:\s?\d{1,2}\s?[\u65e5\u53f7\u865f\uc77c])?"
)
_AMOUNT = (
    rf"(?:(?:{CODES})\s?|[{_SIGNS}]?[{CURRENCY}]\s?){_NUMBERS}{_SCALE}?{_UNIT}?"
    rf"|{_NUMBERS}(?:{_SCALE}{_UNIT}?|{_UNIT})"
)
_TOKEN = (
    rf"(?:[{_SIGNS}](?=\d)|(?:~|\.{{1,2}})?/(?={_W}))?"
    rf"{_W}++(?>(?:(?:[.\-\u2010\u2011/@]|(?<=\d)[{_SEPARATORS}](?=\d)){_W}++)*)"
)
_ITEM = (
    rf"(?=[{_SIGNS}/~.\w{CURRENCY}])(?:(?P<url>{_URL})|(?P<date>{_DATE})|(?P<amount>{_AMOUNT})"
    rf"|(?P<number>[{_SIGNS}]?{_GROUPED})|(?P<token>{_TOKEN}))"
)
_BEHIND_URL = ".,;:!?)]*_"
_PLAIN_DATE = re.compile(
    r"\d{4}[\-/.]\d{1,2}[\-/.]\d{1,2}(?:T[\w:.\-]*)?|\d{1,2}[\-/.]\d{1,2}[\-/.]\d{2,4}"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:[ap]m|h|Z)?"
)
_FIGURES = re.compile(rf"[{_SIGNS}]?[\d{_SEPARATORS}/\-\u2010\u2011]+(?:[^\W\d_]{{1,3}})?")
_DOTTED = re.compile(r"[^\W\d_]{2}\.[^\W\d_]{2}")


@cache
def _item() -> re.Pattern[str]:
    """Made at its first use, as that takes longer than all else at the start of a program."""
    return re.compile(_ITEM)


def items(text: str) -> Iterator[Item]:
    """Everything in ``text`` that has to be found, in order; a quotation beside what stands in it."""
    found = [*_plain_items(text), *_quotations(text)]
    return iter(sorted(found, key=lambda item: (item.start, -len(item.text))))


def _plain_items(text: str) -> Iterator[Item]:
    for match in _item().finditer(text):
        kind = _kind(match)
        if kind is None:
            continue
        start, end = match.span()
        if kind == "url":
            end = start + len(text[start:end].rstrip(_BEHIND_URL))
        # A pattern that stopped inside a word or number: what has to be found is the whole.
        while goes_on_before(text, start):
            start -= 1
        while goes_on_behind(text, end, kind):
            end += 1
        yield Item(kind, text[start:end], start)


def _kind(match: re.Match[str]) -> GroundedKind | None:
    """What a match is; ``None`` for an ordinary word."""
    if match.lastgroup != "token":
        return cast("GroundedKind", match.lastgroup)
    token = match.group()
    if any(map(str.isdecimal, token)):
        if _PLAIN_DATE.fullmatch(token):
            return "date"
        return "number" if _FIGURES.fullmatch(token) else "identifier"
    named = "_" in token.strip("_") or "@" in token or token[0] in "/~."
    return "identifier" if named or _DOTTED.search(token) else None


# --- quotations -------------------------------------------------------------------------------------

_LONGEST_QUOTATION = 1_000
_CLOSING = {
    '"': '"',
    "'": "'",
    "\u2018": "\u2019",
    "\u201c": "\u201d",
    "\u201e": "[\u201c\u201d]",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab",
    "\u2039": "\u203a",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
}
_CLOSERS = {opening: re.compile(closing) for opening, closing in _CLOSING.items()}
_OPENING = re.compile("[" + "".join(_CLOSING) + "]")
_STRAIGHT = "\"'"
_APOSTROPHES = "'\u2019"
_BEHIND_QUOTATION = ".,;:!?\u2026\u3002\uff0c\u3001\uff1b\uff1a\uff01\uff1f\u061f\u060c"


def _quotations(text: str) -> Iterator[Item]:
    """What stands between quotation marks, without white space around and a sentence's end behind it."""
    closings: dict[str, list[int]] = {}
    position = 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        mark = opening.group()
        if not _opens(text, opening.start(), mark):
            continue
        if mark not in closings:
            closings[mark] = _closings(text, mark)
        end = _closed_at(text, position, closings[mark])
        if end is None:
            continue
        inside = text[position:end]
        said = inside.strip().rstrip(_BEHIND_QUOTATION).rstrip()
        if any(map(str.isalnum, said)):
            yield Item("quotation", said, position + inside.index(said))
        position = end + 1


def _opens(text: str, place: int, mark: str) -> bool:
    """Whether a mark opens a quotation: a straight one inside or behind a word does not."""
    if mark not in _STRAIGHT:
        return True
    before = text[place - 1] if place else " "
    return not _is_letter(before) and not text[place + 1 : place + 2].isspace()


def _closings(text: str, mark: str) -> list[int]:
    """Where quotations with this mark may end: not at an apostrophe."""
    found = [closing.start() for closing in _CLOSERS[mark].finditer(text)]
    if _CLOSING[mark] not in _APOSTROPHES:
        return found
    return [
        place
        for place in found
        if not text[place - 1 : place].isspace()
        and not (place + 1 < len(text) and _is_letter(text[place + 1]))
    ]


def _closed_at(text: str, start: int, closings: list[int]) -> int | None:
    """The first of these places behind ``start``, if it is on the same line and not far."""
    index = bisect_left(closings, start)
    if index == len(closings) or closings[index] - start > _LONGEST_QUOTATION:
        return None
    end = closings[index]
    return end if text.find("\n", start, end) < 0 else None
