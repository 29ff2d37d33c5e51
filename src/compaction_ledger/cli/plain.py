"""Text made safe for a terminal, and times and sizes for people."""

from __future__ import annotations

import re

# Controls (a text may hold terminal commands), surrogates, and what turns the direction of writing.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def visible(text: str) -> str:
    """``text`` with whatever would steer the terminal written as an escape. Line breaks stay."""
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def size(count: int) -> str:
    """A number of bytes, for people."""
    return f"{count:,} bytes"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 range``, ``2 ranges``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """A length of time, for people."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def short_time(time: str | None) -> str:
    """A document's time to the second; nothing for none."""
    return "" if time is None else f"{time[:19]}Z"
