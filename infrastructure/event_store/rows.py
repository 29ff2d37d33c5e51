"""What the recorders read: an event with its leaf, and what stands for a conversation."""

from __future__ import annotations

from typing import Literal, NamedTuple


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


class Subject(NamedTuple):
    """The conversation that a reference stands for, or stood for until it was erased (L4, S3)."""

    scope: str
    conversation: str
    state: Literal["live", "erased"]
