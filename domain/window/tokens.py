"""Counting tokens (T3): pluggable; the built-in counter needs no download and errs on the high side."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction_ledger.domain.errors import InvalidSetting

_SMALL = 2_000
# Of OpenAI (a data URL), of Anthropic (a source of type base64), of Bedrock (a source of bytes). Quotes in a
# text are escaped in its JSON: no text of anybody looks like one.
_MEDIA = re.compile(
    rb'"(?:url|image_url|file_data)":"data:[^"]{0,200};base64,[^"]{1000,}"'
    rb'|"type":"base64","media_type":"[^"]{0,200}","data":"[^"]{1000,}"'
    rb'|"source":\{"bytes":"[^"]{1000,}"'
)


class TokenCounter(Protocol):
    """Counts the tokens of messages as they will be sent."""

    def count(self, messages: Sequence[bytes]) -> list[int]:
        """The tokens of each of ``messages``, which are compact JSON in UTF-8."""
        ...


@dataclass(frozen=True, slots=True)
class Utf8Counter:
    """One token for so many bytes of UTF-8, rounded up.

    With the default of one byte it never counts too few, for any text and language: every token of a
    byte-level tokenizer stands for at least one byte. English prose has about four bytes to a token, code
    about three, Chinese about three (one character): who knows the texts, or has the provider's usage
    figures told to the window, need not pay for that margin. Images and files that stand in a message as
    base64 count ``media_tokens`` each: no provider takes them for text.
    """

    bytes_per_token: float = 1.0
    media_tokens: int = 5_000

    def __post_init__(self) -> None:
        if not 0.25 <= self.bytes_per_token <= 16:
            raise InvalidSetting(
                f"must be between 0.25 and 16, not {self.bytes_per_token}", place="bytes_per_token"
            )

    def count(self, messages: Sequence[bytes]) -> list[int]:
        """The bytes of each message, divided and rounded up."""
        each = self.bytes_per_token
        return [
            len(message) if each == 1 and len(message) < _SMALL else self._count(message, each)
            for message in messages
        ]

    def _count(self, message: bytes, each: float) -> int:
        size, media = len(message), 0
        if size >= _SMALL:
            for found in _MEDIA.finditer(message):
                media += self.media_tokens
                size -= found.end() - found.start()
        return media + int(-(-size // each))


@dataclass(frozen=True, slots=True)
class TokenizerCounter:
    """Counts with a tokenizer: ``encode`` returns the tokens of a text, as tiktoken's and others' do.

    ``beside`` is added for each message, for what a provider wraps around it. A text that ``encode`` refuses
    with a :class:`ValueError` counts a token for each byte, which is never too few.
    """

    encode: Callable[[str], Sequence[object]]
    beside: int = 4

    def count(self, messages: Sequence[bytes]) -> list[int]:
        """The tokens of each message's JSON, its members included: a little more than of its text alone."""
        return [self._tokens(message) + self.beside for message in messages]

    def _tokens(self, message: bytes) -> int:
        try:
            return len(self.encode(message.decode("utf-8", "replace")))
        except ValueError:  # as tiktoken's encode refuses the names of special tokens
            return len(message)


MOST_CORRECTED = 4.0
"""No figure makes more tokens of a counted one: what is reported beyond that stands apart."""
LEAST_CORRECTED = 1 / 16


class Gauge:
    """Counts tokens, corrected by the provider's own figures once those are known (T3).

    What a provider reported for one request says how many tokens a counted token is worth. From then on
    counts are multiplied by that, and by a margin, so that they stay on the high side for texts of another
    kind. A short request with tools that nobody told of has many times its tokens; they do not grow with
    it, and are counted apart.
    """

    MARGIN = 1.1

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._scale = 1.0
        self._apart = 0

    @property
    def apart(self) -> int:
        """Tokens that were reported and that no message can have: of what nobody told of."""
        return self._apart

    @property
    def scale(self) -> float:
        """Tokens for each counted one; 1.0 as long as no provider has told."""
        return self._scale

    def uncorrected(self, messages: Sequence[bytes]) -> list[int]:
        """The tokens of each message as the counter counts them: the same at every turn."""
        counted = self._counter.count(messages)
        if len(counted) != len(messages) or any(number < 0 for number in counted):
            raise InvalidSetting(
                f"must give a number for each of {len(messages)} messages, none below zero",
                place="counter",
            )
        return counted

    def count(self, messages: Sequence[bytes]) -> list[int]:
        """The tokens of each message, corrected and rounded up."""
        counted = self.uncorrected(messages)
        if self._scale == 1.0:
            return counted
        scale = self._scale
        return [int(-(-number * scale // 1)) for number in counted]

    def observe(self, counted: int, reported: int, scale: float | None = None) -> None:
        """The provider reported ``reported`` tokens for a request of which :meth:`count` gave ``counted``.

        ``scale``: that of the count, if others were observed since. So the same figure told twice says what
        it says once. A figure that cannot be (zero or less) is left aside, and none makes less than a
        sixteenth of a counted token, or more than four: the rest stands :attr:`apart`.
        """
        if counted > 0 and reported > 0:
            bare = counted / (self._scale if scale is None else scale)
            high = reported * self.MARGIN
            self._scale = min(MOST_CORRECTED, max(LEAST_CORRECTED, high / bare))
            self._apart = max(0, int(high - bare * self._scale))
