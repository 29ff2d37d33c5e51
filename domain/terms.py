"""Text as it is searched (T15): folded, and cut into terms in the same way for every index.

Folding makes alike what a reader takes for the same (width, case, vowel marks of Arabic, forms of yeh and
kaf, digits of any script, dashes, white space) and remembers where everything came from, so that a match
is told in places of the original. Scripts that put no spaces between words are cut into pairs of
neighboring characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

LAYOUT = f"3/{unicodedata.unidata_version}"
"""Changes with every change of what is made of a text: an index of another layout is made anew."""

LONGEST_TERM = 64
"""Characters of a word that are indexed. What is longer is told apart when the original is looked at."""

# Thai, Lao, Burmese, Khmer, kana (without the middle dot), Han, Hangul.
UNSPACED = (
    "\u0e01-\u0e2e\u0e30-\u0e3a\u0e40-\u0e4e\u0e81-\u0eae\u0eb0-\u0ece\u0edc-\u0edf\u1000-\u103f"
    "\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)

# What is folded to itself, but for the case of ASCII: taken by the stretch, not one by one.
_PLAIN = (
    "!-~\u3001-\u3003\u3008-\u3011\u3041-\u3096\u30a1-\u30fa\u30fc"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
)

_DROPPED = [
    *(0x00AD, 0x034F, 0x061C, 0x0640, 0x0670, 0x180E, 0xFEFF),  # soft hyphen, joiners, tatweel …
    *range(0x0610, 0x061B),
    *range(0x064B, 0x0660),  # the vowel marks of Arabic
    *range(0x06D6, 0x06DD),
    *range(0x06DF, 0x06E5),
    *(0x06E7, 0x06E8, *range(0x06EA, 0x06EE)),
    *range(0x200B, 0x2010),  # also the one that Persian words are joined with
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
]
_SAME = {
    "\u064a": "\u0649\u06cc\u06d2",  # yeh
    "\u0643": "\u06a9\u06aa",  # kaf
    "\u0627": "\u0622\u0623\u0625\u0671",  # alef
    "\u0647": "\u0629\u06c0\u06c1\u06c2\u06d5",  # heh
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "'": "\u2018\u2019\u201a\u201b\u02bc",
    '"': "\u201c\u201d\u201e\u201f\u00ab\u00bb",
}
_NOTHING: dict[int, str | None] = dict.fromkeys(_DROPPED)
_ALIKE: dict[int, str | None] = {
    **_NOTHING,
    **{ord(one): plain for plain, forms in _SAME.items() for one in forms},
}
_SPACES = {ord(one): " " for one in "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f"}
_DOTS = re.compile("i\u0307+")
_TWO_SPACES = re.compile(r"\s\s")
_MOST_KEPT = 100_000


class Folded(NamedTuple):
    """A text as it is compared, with the place in the original of each of its characters."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original of what stands from ``start`` to ``end`` here; ``end`` > ``start``."""
        return self.starts[start], self.ends[end - 1]


class Terms(NamedTuple):
    """What a text is found by.

    ``sequence``: words, and pairs of neighboring characters where a script has no spaces (a lone character
    is itself), in order. ``characters``: each character of such a script once.
    """

    sequence: list[str]
    characters: list[str]


class _Patterns(NamedTuple):
    cluster: re.Pattern[str]
    run: re.Pattern[str]
    word: str
    spaced: str


@cache
def _patterns() -> _Patterns:
    """Made when first needed: the marks of all scripts are looked up one by one."""
    places = (*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0))
    found = [at for at in places if unicodedata.category(chr(at))[0] == "M"]
    marks = _ranges(found)
    spaced_marks = _ranges([at for at in found if not is_unspaced(chr(at))])
    # Vowels and finals of Korean syllables and the marks of narrow kana go with what stands before them,
    # also with something between them that is dropped.
    dropped = _ranges(sorted(_DROPPED))
    behind = rf"[{marks}{dropped}\u1160-\u11ff\uff9e\uff9f]"
    plain = rf"((?:[{_PLAIN}]| (?![{dropped}]*\s))+)(?!{behind})"
    cluster = re.compile(rf"{plain}|\s(?:[{dropped}]*\s)*|.{behind}*", re.DOTALL)
    word = rf"(?:[^\W_{UNSPACED}]|[{spaced_marks}{UNSPACED}])"
    spaced = rf"(?:[^\W_{UNSPACED}]|[{spaced_marks}])"
    run = re.compile(rf"([{UNSPACED}]+)|(?:[^\W_{UNSPACED}]+|[{spaced_marks}])+")
    return _Patterns(cluster, run, word, spaced)


def word_pattern() -> str:
    """A pattern for one character of a word, of any script."""
    return _patterns().word


def spaced_pattern() -> str:
    """A pattern for one character of a word of a script that puts spaces between words."""
    return _patterns().spaced


def fold(text: str) -> Folded:
    """The text as it is compared, and where each of its characters comes from."""
    if text.isascii() and not _TWO_SPACES.search(text):
        size = len(text)
        return Folded(text.lower().translate(_SPACES), range(size), range(1, size + 1))
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    folded = _folded_clusters()
    for cluster in _patterns().cluster.finditer(text):
        at, end = cluster.span()
        if cluster[1] is not None:
            pieces.append(cluster[1].lower())
            starts.extend(range(at, end))
            ends.extend(range(at + 1, end + 1))
        else:
            piece = folded[cluster[0]]
            pieces.append(piece)
            starts.extend([at] * len(piece))
            ends.extend([end] * len(piece))
    return Folded("".join(pieces), starts, ends)


def fold_text(text: str) -> str:
    """As :func:`fold`, the text alone."""
    if text.isascii() and not _TWO_SPACES.search(text):
        return text.lower().translate(_SPACES)
    folded = _folded_clusters()
    return _patterns().cluster.sub(
        lambda found: folded[found[0]] if found[1] is None else found[1].lower(), text
    )


def search_terms(text: str) -> Terms:
    """The terms of a text, the same for what is kept and for what is looked for."""
    return terms_of_folded(fold_text(text))


def terms_of_folded(folded: str) -> Terms:
    """As :func:`search_terms`, of a text that is folded already."""
    sequence: list[str] = []
    characters: dict[str, None] = {}
    for found in _patterns().run.finditer(folded):
        word = found[0]
        if found[1] is None:
            sequence.append(word[:LONGEST_TERM])
            continue
        characters.update(dict.fromkeys(word))
        if len(word) == 1:
            sequence.append(word)
        else:
            sequence.extend(one + other for one, other in pairwise(word))
    return Terms(sequence, list(characters))


def is_unspaced(text: str) -> bool:
    """Whether all of it is of scripts without spaces between words."""
    return _unspaced().fullmatch(text) is not None


def is_single(term: str) -> bool:
    """Whether a term is a lone character of such a script: then it is looked for among the characters."""
    return len(term) == 1 and is_unspaced(term)


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]+")


class _Clusters(dict[str, str]):
    """Characters with what belongs to them, by how they are folded; filled as they are met."""

    def __missing__(self, cluster: str) -> str:
        folded = _fold_cluster(cluster)
        if len(self) < _MOST_KEPT and len(cluster) < LONGEST_TERM:
            self[cluster] = folded
        return folded


@cache
def _folded_clusters() -> _Clusters:
    return _Clusters()


def _fold_cluster(cluster: str) -> str:
    kept = cluster.translate(_NOTHING)
    if kept.isspace():
        return " "
    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", kept).casefold())
    if composed.startswith(" "):
        return kept  # a mark that stands by itself, as in "¯": the space before it is not one of the text
    plain = unicodedata.normalize("NFC", _DOTS.sub("i", composed).translate(_ALIKE))
    return "".join(map(_digit, plain))


def _digit(character: str) -> str:
    return str(unicodedata.decimal(character)) if character.isdecimal() else character


def _ranges(places: list[int]) -> str:
    """Code points as the inside of a character class."""
    found: list[list[int]] = []
    for at in places:
        if found and found[-1][1] == at - 1:
            found[-1][1] = at
        else:
            found.append([at, at])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in found)
