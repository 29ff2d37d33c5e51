"""Writing beside an erasure: what is written while a conversation is being erased is taken back."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from compaction_ledger.domain.erasure import Erasures, Purged
from compaction_ledger.domain.errors import Erased


@contextmanager
def written(
    erasures: Erasures, store: Purged, scope: str, conversations: Sequence[str]
) -> Generator[None]:
    """Around what writes to conversations. Raises :class:`Erased` where one of them is erased.

    Looked at before and again behind it: an erasure that began in between may have passed by already.
    """
    for conversation in conversations:
        erasures.check(scope, conversation)
    yield
    erasures.look()
    try:
        for conversation in conversations:
            erasures.check(scope, conversation)
    except Erased:
        for conversation in conversations:
            if erasures.was_erased(scope, conversation):
                store.forget(scope, conversation)
        raise
