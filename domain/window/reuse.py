"""How much of a request is the same as of the one before it: what a provider's prompt cache can serve
(T10).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile


def common_prefix(before: Sequence[bytes], now: Sequence[bytes]) -> int:
    """Bytes at the beginning that two requests share; each is given as the JSON of its messages.

    Counted in the JSON list that they make, with its commas, up to the first byte that differs.
    """
    same = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
    )
    shared = sum(map(len, now[:same])) + same
    if same < len(before) and same < len(now):
        shared += _common(before[same], now[same])
    return shared


def _common(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def sent(messages: Sequence[bytes]) -> int:
    """Bytes of the JSON list that these messages make, without its brackets."""
    return sum(map(len, messages)) + max(0, len(messages) - 1)
