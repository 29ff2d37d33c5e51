"""What a summary says that its source does not (T13).

Word for word: something is found if the source has it, character for character, where no word or number
goes on before or behind it. 500 is not in 5,000 or 1500, $500 is not €500, 5 is not in -5. Only white space
counts as equal whatever it is. That everything is found does not make a summary true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from compaction_ledger.domain.events import Stored
from compaction_ledger.domain.grounding_items import (
    GroundedKind,
    goes_on_before,
    goes_on_behind,
    items,
    stretches,
    words,
)

_MANY = 64
"""With more things to be found than this it pays to know all words of the source first."""
_DEEPEST_JSON = 2


@dataclass(frozen=True, slots=True)
class Ungrounded(Stored):
    """Something of a summary that does not occur in its source, word for word as the summary has it."""

    kind: GroundedKind
    text: str


def ungrounded(summary_texts: Iterable[str], source_texts: Iterable[str]) -> tuple[Ungrounded, ...]:
    """What the summary's texts say that no text of the source does, each once, in order of first mention.

    A source that holds JSON is read as it stands, and as what the JSON means. Takes time that grows with the
    source once for each different item.
    """
    found = (item for text in summary_texts for item in items(text))
    wanted = list(dict.fromkeys(Ungrounded(item.kind, item.text) for item in found))
    if not wanted:
        return ()
    source = _Source(source_texts, many=len(wanted) > _MANY)
    return tuple(item for item in wanted if not source.has(item.kind, item.text))


class _Source:
    """The texts of a source as one, in which things are looked for."""

    def __init__(self, texts: Iterable[str], *, many: bool) -> None:
        readings = (reading for text in texts for reading in _readings(text, _DEEPEST_JSON))
        self._text = "\n".join(_SPACE.sub(" ", reading) for reading in readings)
        self._words = frozenset(words(self._text)) if many else None
        self._last = 0

    def has(self, kind: GroundedKind, text: str) -> bool:
        """Whether it occurs as a whole. Looked for first from where the one before was found."""
        wanted = _SPACE.sub(" ", text)
        if self._words is not None and not self._words.issuperset(words(wanted)):
            return False
        place = self._find(kind, wanted, self._last)
        if place < 0 and self._last:
            place = self._find(kind, wanted, 0)
        if place >= 0:
            self._last = place
        return place >= 0

    def _find(self, kind: GroundedKind, wanted: str, start: int) -> int:
        text = self._text
        stretch = stretches(wanted)
        place = text.find(wanted, start)
        while place >= 0:
            end = place + len(wanted)
            if not goes_on_before(text, place) and not goes_on_behind(text, end, kind):
                return place
            beyond = stretch.match(text, place) if stretch else None
            place = text.find(wanted, beyond.end() if beyond else place + 1)
        return -1


_SPACE = re.compile(r"\s+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def _readings(text: str, deep: int) -> Iterator[str]:
    """``text`` as it stands; with its backslash escapes undone; and the names and values of its JSON."""
    yield text
    if "\\" in text:
        yield _ESCAPE.sub(_unescaped, text)
    if deep and text.lstrip()[:1] in ("{", "["):
        try:
            value: object = _json.decode(text)
        except (ValueError, RecursionError):
            return
        for leaf in _leaves(value):
            yield from _readings(leaf, deep - 1)


def _unescaped(escape: re.Match[str]) -> str:
    code, character = escape.groups()
    return chr(int(code, 16)) if code else _ESCAPED.get(character, character)


def _leaves(value: object) -> Iterator[str]:
    """Names, texts and numbers, each as it is written, in order."""
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, (list, tuple)):
            waiting.extend(reversed(cast("list[object]", one)))


def _as_list(pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return pairs


_json = json.JSONDecoder(parse_int=str, parse_float=str, object_pairs_hook=_as_list)
