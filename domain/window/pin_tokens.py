"""Where a token ends: whether a quote begins and ends on the boundaries of tokens (T9).

A boundary is judged by the general categories of Unicode, and holds in every script: where words are not
separated, as in Han, kana and Thai, the only boundaries are punctuation, white space and the ends.
"""

from __future__ import annotations

from unicodedata import category

_JOINERS = frozenset(".,:'’ʼ·")
_DIGIT_JOINERS = frozenset("٫٬،、．，：")
"""Between letters or digits these stand within a token: 5,000 and 12:30 and don't; the latter only
between digits.
"""

_FULL_STOPS = frozenset("。！？｡")
_GLUE = frozenset("#@%‰‱°&/\\^|§†‡※№℃℉＃＠％＆／￥＄")
_EMPHASIS = "*"
_SIGNS = frozenset("+-−±∓~≈≃≅<>≤≥≦≧⩽⩾=≠×÷*/^#%‰°‐‑‒–—＋－＜＞＝～％")
_DASHES = frozenset("-‐‑–—")
_SPACES = " \t\u00a0\u2007\u2009\u202f\u3000\u2002\u2003\u2008\u200a"


def boundary_problem(text: str, start: int, end: int) -> str | None:
    """Why ``text[start:end]`` cuts a token, or ``None`` where it stands on boundaries. Constant time."""
    first, last = text[start], text[end - 1]
    before, after = text[start - 1 : start], text[end : end + 1]
    if _EMPHASIS in {before, after}:
        if not _is_emphasis(text, start, end):
            return "a * stands at one side of it"
    elif before and _joins(before, first, text[max(0, start - 2) : start - 1]):
        return f"{_shown(before)} stands directly before it"
    elif after and _joins(after, last, text[end + 1 : end + 2]):
        return f"{_shown(after)} stands directly behind it"
    if _is_number(first) and (sign := _beyond(text[max(0, start - 6) : start][::-1])):
        return f"{_shown(sign)} before it belongs to its first number"
    if _is_number(last) and (sign := _beyond(text[end : end + 6])):
        return f"{_shown(sign)} behind it belongs to its last number"
    return None


def _joins(neighbor: str, edge: str, beyond: str) -> bool:
    """Whether ``neighbor`` and the quote's ``edge`` are of one token; ``beyond`` is the next one over."""
    kind = category(neighbor)
    if edge in _FULL_STOPS and kind[0] in "LN":
        return False
    if kind[0] in "LNM" or kind in {"Pc", "Pd", "Cf", "Cs", "Co", "Cn", "Sc", "Sm", "Sk"}:
        return True
    if neighbor in _GLUE:
        return True
    if neighbor in _DIGIT_JOINERS:
        return _is_number(edge) and _is_number(beyond or " ")
    return (
        neighbor in _JOINERS
        and bool(beyond)
        and _is_word(beyond)
        and (_is_word(edge) or category(edge)[0] == "S")
    )


def _is_word(character: str) -> bool:
    return category(character)[0] in "LNM"


def _is_number(character: str) -> bool:
    return category(character)[0] == "N" or category(character) == "Sc" or character in "%‰％"


def _beyond(near: str) -> str:
    """The sign, digit or currency that a number has beyond a little white space, if any."""
    rest = near.lstrip(_SPACES)
    if not rest or len(rest) == len(near):
        return ""
    further = rest[1:].lstrip(_SPACES)
    if rest[0] in _DASHES and rest[1:2].isspace() and further and further[0].isalpha():
        return ""  # a dash between two clauses
    kind = category(rest[0])
    return rest[0] if rest[0] in _SIGNS or kind in {"Sc", "Sm", "Nd", "Nl", "No"} else ""


def _is_emphasis(text: str, start: int, end: int) -> bool:
    """Whether as many asterisks stand before as behind, on words: **no nuts**."""
    stars = 0
    while stars < 4 and text[start - stars - 1 : start - stars] == _EMPHASIS:
        stars += 1
    behind = 0
    while behind < 4 and text[end + behind : end + behind + 1] == _EMPHASIS:
        behind += 1
    outside = (
        text[max(0, start - stars - 1) : start - stars] + text[end + behind : end + behind + 1]
    )
    return stars == behind and not any(_is_word(each) for each in outside)


def _shown(character: str) -> str:
    return repr(character) if character.isprintable() else f"U+{ord(character):04X}"
