"""Stream ids (L4): derived from the subject's random reference, so that nothing else links them to it."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from uuid import UUID

from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.window.keys import WindowKey


@lru_cache(maxsize=4096)
def range_stream(subject: str, key: RangeKey) -> UUID:
    """The stream of a range of the conversation that ``subject`` stands for."""
    return _derived(subject, f"range/{key.from_pair}")


def delivery_stream(subject: str, delivery_id: str) -> UUID:
    """The stream of one delivery."""
    return _derived(subject, f"delivery/{delivery_id}")


@lru_cache(maxsize=4096)
def window_stream(subject: str, key: WindowKey) -> UUID:
    """The stream of the window of a run of the conversation that ``subject`` stands for."""
    return _derived(subject, f"window/{key.run}")


def window_delivery_stream(subject: str, delivery_id: str) -> UUID:
    """The stream of one delivery of a window."""
    return _derived(subject, f"window-delivery/{delivery_id}")


def erasure_stream(subject: str) -> UUID:
    """The stream of a subject's erasure."""
    return _derived(subject, "erasure")


def _derived(subject: str, what: str) -> UUID:
    digest = hashlib.sha256(
        b"compaction-ledger/stream/v1\x00" + f"{subject}/{what}".encode()
    ).digest()
    return UUID(bytes=digest[:16])
