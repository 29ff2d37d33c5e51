"""What the recorders read: an event with its leaf."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A stored event with its leaf, unchecked: whoever can write to the file decides what stands there."""

    idx: int
    stream: str
    version: int
    topic: str
    payload: bytes
    envelope: bytes
    leaf: bytes


PlainRow = tuple[int, str, int, str, bytes, bytes, bytes]
"""The same, as the database gives it."""
