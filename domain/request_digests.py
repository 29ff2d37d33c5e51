"""By which digest a recorded request is known again, from the request itself (H8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, cast

from compaction_ledger.domain.assembly import REQUEST_TAG
from compaction_ledger.domain.canonical import encode_ordered, tagged_sha256
from compaction_ledger.domain.window.placement import REQUEST_TAG as WINDOW_TAG

RequestKind = Literal["request", "window"]
_MEMBERS = ("messages", "input")


def request_digests(given: bytes, kind: RequestKind, shape: str) -> Iterator[str]:
    """The digests that a request of this kind and shape would have been recorded with.

    Of its very bytes first. A copy that was formatted in another way, or that has the messages among other
    arguments of the call, has the same values: then of the compact JSON of these. One in which a key stands
    twice has not: which of both is meant differs from reader to reader.
    """
    for body in _bodies(given, kind):
        yield _digest(body, kind, shape)


def _digest(body: bytes, kind: RequestKind, shape: str) -> str:
    tag = REQUEST_TAG if kind == "request" else WINDOW_TAG
    return tagged_sha256(tag, shape.encode() + b"\x00" + body)


def _bodies(given: bytes, kind: RequestKind) -> Iterator[bytes]:
    yield given
    try:
        value: Any = json.loads(given, object_pairs_hook=_members)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if kind == "window":
            yield from (encode_ordered(members[name]) for name in _MEMBERS if name in members)
        elif "messages" in members:
            known = {name: members[name] for name in ("messages", "system") if name in members}
            yield encode_ordered(known)
            yield encode_ordered({"messages": members["messages"]})
    elif isinstance(value, list) and kind == "window":
        yield encode_ordered(value)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises :class:`ValueError` where a key stands twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands twice")
    return members
