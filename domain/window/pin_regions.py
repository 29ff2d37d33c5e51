"""What of a text is set apart from what its writer says there: quotations, code, pasted text (T9).

What stands within one of them is somebody else's words, or no words at all, and no pin begins or ends there.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

_QUOTED_LINE = re.compile(r"[ \t]{0,3}(?:>|&gt;|＞)")
_FENCE = re.compile(r"[ \t]{0,3}(```|~~~)")
_HEADER = re.compile(
    r"(?:from|to|cc|date|sent|von|an|gesendet|datum|de|para|fecha|à|date|发件人|收件人|差出人|宛先|от|кому)\s?[:：]"
    r"|(?P<subject>subject|betreff|objet|asunto|oggetto|assunto|onderwerp|主题|主題|件名|тема)\s?[:：]",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"-{2,}\s*(?:original message|forwarded message|ursprüngliche nachricht|message d'origine"
    r"|mensaje original)"
    r"|begin forwarded message|on .{4,80} wrote:|am .{4,80} schrieb",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"[\"“”„‟«»‹›‘‚‛`'「『《〈＂]|~~|<(?P<tag>[A-Za-z][\w:.-]{0,40})(?:\s[^<>\n]{0,200})?(?<!/)>|<!--"
)
_CLOSING = {
    '"': re.compile('"'),
    "＂": re.compile("＂"),
    "“": re.compile("”"),
    "”": re.compile("”"),
    "„": re.compile("[“”]"),
    "‟": re.compile("”"),
    "«": re.compile("»"),
    "»": re.compile("«"),
    "‹": re.compile("›"),
    "›": re.compile("‹"),
    "「": re.compile("」"),
    "『": re.compile("』"),
    "《": re.compile("》"),
    "〈": re.compile("〉"),
    "‘": re.compile(r"’(?!\w)"),
    "‚": re.compile("[‘’]"),
    "‛": re.compile("’"),
    "`": re.compile("`"),
    "'": re.compile(r"(?<=[^\s])'(?!\w)"),
    "~~": re.compile("~~"),
    "<!--": re.compile("-->"),
}
_OPEN_TO_THE_END = frozenset(
    '"“„«「『＂'
)  # unclosed they hold for all that follows; the others are a slip
# What has no content, what only formats, and what wraps the user's own words.
_PLAIN_TAGS = frozenset(
    [
        "br",
        "hr",
        "img",
        "wbr",
        "p",
        "b",
        "i",
        "u",
        "em",
        "strong",
        "span",
        "div",
        "ul",
        "ol",
        "li",
        "h1",
        "h2",
        "h3",
        "task",
        "user",
        "user_query",
        "user_message",
        "query",
        "feedback",
        "request",
        "prompt",
    ]
)
_MOST_TAGS = 32


class Regions:
    """Spans that do not overlap, in order."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def cut_by(self, start: int, end: int) -> bool:
        """Whether ``start`` to ``end`` takes in a part of a span and not the whole."""
        first = bisect_right(self._ends, start)  # the first that ends behind start
        if first < len(self._starts) and self._starts[first] < start:
            return True
        last = bisect_left(self._starts, end) - 1  # the last that begins before end
        return last >= 0 and last >= first and self._ends[last] > end

    def hold(self, place: int) -> bool:
        """Whether ``place`` is within a span."""
        index = bisect_right(self._ends, place)
        return index < len(self._starts) and self._starts[index] <= place


def set_apart(text: str) -> Regions:
    """What is set apart in ``text``: lines first, then pairs of marks in what is left. Linear time."""
    lines, stop = _lines_set_apart(text)
    spans: list[tuple[int, int]] = []
    place = 0
    for start, end in [*lines, (stop, len(text))]:
        if place < start:
            place = _marked(text, place, start, spans)
        if place < end:
            spans.append((max(place, start), end))
            place = end
    return Regions(spans)


def _lines_set_apart(text: str) -> tuple[list[tuple[int, int]], int]:
    """Fenced code and quoted lines, and from where on everything is a forwarded message."""
    spans: list[tuple[int, int]] = []
    fence: str | None = None
    opened = place = 0
    headers = _Headers()
    while place < len(text):
        end = text.find("\n", place) + 1 or len(text)
        head = text[place : min(end, place + 160)]
        mark = _FENCE.match(head)
        if fence is not None:
            if mark and mark[1] == fence:
                spans.append((opened, end))
                fence = None
        elif mark:
            fence, opened = mark[1], place
        elif _QUOTED_LINE.match(head):
            spans.append((place, end))
        elif _FORWARDED.match(head.lstrip(" \t")):
            return spans, place
        elif headers.complete_with(head, place):
            return spans, headers.at
        place = end
    if fence is not None:
        spans.append((opened, len(text)))
    return spans, len(text)


class _Headers:
    """Consecutive header lines of a message: two of them, one with its subject."""

    def __init__(self) -> None:
        self.at = 0
        self._count = 0
        self._subject = False

    def complete_with(self, line: str, place: int) -> bool:
        found = _HEADER.match(line)
        if found is None:
            self._count, self._subject = 0, False
            return False
        if self._count == 0:
            self.at = place
        self._count += 1
        self._subject = self._subject or found["subject"] is not None
        return self._count > 1 and self._subject


def _marked(text: str, place: int, stop: int, spans: list[tuple[int, int]]) -> int:
    """Add what stands between pairs of marks from ``place``; return up to where that reaches."""
    unclosed: set[str] = set()
    while opening := _OPENING.search(text, place, stop):
        place = opening.end()
        mark, tag = opening.group(), opening["tag"]
        if not _opens(text, opening.start(), mark) or (tag and tag.lower() in _PLAIN_TAGS):
            continue
        key = tag or mark
        if key in unclosed:
            continue
        closing = None
        if tag is None or len(unclosed) < _MOST_TAGS:
            closing = (re.compile(f"</{re.escape(tag)}\\s?>") if tag else _CLOSING[mark]).search(
                text, place
            )
        if closing is None and not (
            mark in _OPEN_TO_THE_END or (tag and len(unclosed) >= _MOST_TAGS)
        ):
            unclosed.add(key)
            continue
        place = closing.end() if closing else len(text)
        spans.append((opening.start(), place))
        if place >= stop:
            return place
    return stop


def _opens(text: str, at: int, mark: str) -> bool:
    """Whether a mark that looks alike on both sides, or is an apostrophe, opens here: not behind a word."""
    if mark not in {'"', "'", "”", "‘", "»", "›"}:
        return True
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    return not (before.isalnum() or after.isspace() or not after)
