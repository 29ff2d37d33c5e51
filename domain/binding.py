"""Source binding (B1, B3): which exact messages a summary stands for."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.domain.canonical import encode_ordered, tagged_sha256
from compaction_ledger.domain.conversation import PAIRS_PER_RANGE, Pair
from compaction_ledger.domain.errors import InvalidJob
from compaction_ledger.domain.windows import Range

SOURCE_TAG = b"compaction-ledger/source/v1"


def source_bytes(scope: str, conversation: str, pairs: Sequence[Pair]) -> bytes:
    """The source bytes of ten consecutive pairs: RFC 8785, keys written in canonical order (B1)."""
    return encode_ordered(
        {
            "conversation": conversation,
            "from": pairs[0].index,
            "pairs": [
                {
                    "assistant": {"id": pair.assistant.id, "text": pair.assistant.text},
                    "index": pair.index,
                    "run": pair.run,
                    "user": {"id": pair.user.id, "text": pair.user.text},
                }
                for pair in pairs
            ],
            "scope": scope,
            "to": pairs[-1].index,
            "v": 1,
        }
    )


def source_hash(scope: str, conversation: str, pairs: Sequence[Pair]) -> str:
    """``SHA-256("compaction-ledger/source/v1" || 0x00 || source bytes)``, lower-case hexadecimal (B1)."""
    return tagged_sha256(SOURCE_TAG, source_bytes(scope, conversation, pairs))


def message_ids(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """The twenty ids in order: user, assistant, user, … (I1)."""
    ids: list[str] = []
    for pair in pairs:
        ids += (pair.user.id, pair.assistant.id)
    return tuple(ids)


def pairs_of(pairs: Sequence[Pair], window: Range) -> Sequence[Pair]:
    """The ten pairs of ``window``; raises :class:`InvalidJob` where the conversation has not got them."""
    source = pairs[window.from_pair : window.to_pair + 1] if window.is_aligned else ()
    if len(source) != PAIRS_PER_RANGE:
        raise InvalidJob(f"range {window} is not ten aligned pairs of this conversation")
    return source
