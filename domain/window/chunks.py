"""Chunks: consecutive messages of a run that are summarized once, from the originals (T8), and their
identity.

A chunk's source is bound like a range's (B1, B3), and its job is identified like a range's (I1), under tags
of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_ledger.domain.canonical import encode_ordered, tagged_sha256
from compaction_ledger.domain.errors import InvalidJob
from compaction_ledger.domain.identifiers import is_hash
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion, check_model
from compaction_ledger.domain.window.keys import WindowKey, check_key

SOURCE_TAG = b"compaction-ledger/chunk-source/v1"
CHUNK_TAG = b"compaction-ledger/chunk/v1"


@dataclass(frozen=True, slots=True)
class ChunkJob:
    """One chunk to be summarized: messages ``first`` to ``last`` (from zero, both included), a model, a
    prompt.

    A plain record (A10); :meth:`check` judges new ones. ``replaces``: the identities of the chunks that it
    takes the place of, whose originals together are its source (T8).
    """

    window: WindowKey
    first: int
    last: int
    source_hash: str
    model: ModelIdentity
    prompt: PromptVersion
    replaces: tuple[str, ...] = ()

    @property
    def key(self) -> WindowKey:
        """Its stream."""
        return self.window

    @property
    def identity(self) -> str:
        """The job's digest, lower-case hexadecimal."""
        return tagged_sha256(
            CHUNK_TAG,
            encode_ordered(  # keys in canonical order
                {
                    "conversation": self.window.conversation,
                    "first": self.first,
                    "last": self.last,
                    "model": {
                        "name": self.model.name,
                        "provider": self.model.provider,
                        "settings": dict(self.model.settings),
                    },
                    "prompt": str(self.prompt),
                    "replaces": self.replaces,
                    "run": self.window.run,
                    "scope": self.window.scope,
                    "source": self.source_hash,
                    "v": 1,
                }
            ),
        )

    def check(self) -> None:
        """A7. Raises :class:`InvalidJob` or :class:`InvalidId`."""
        check_key(self.window)
        if not 0 <= self.first <= self.last:
            raise InvalidJob(f"a chunk is one message or more, not {self.first}..{self.last}")
        if not is_hash(self.source_hash):
            raise InvalidJob("the source hash is not 64 lower-case hexadecimal digits")
        if len(set(self.replaces)) != len(self.replaces):
            raise InvalidJob("each chunk that it takes the place of is named once")
        if not all(map(is_hash, self.replaces)):
            raise InvalidJob("an identity is 64 lower-case hexadecimal digits")
        check_model(self.model)
        PromptVersion.parse(str(self.prompt))


def chunk_source_hash(window: WindowKey, shape: str, first: int, digests: Sequence[str]) -> str:
    """The source hash of the messages from ``first``, by their digests (see ``message_digest``).

    ``SHA-256(tag || 0x00 || RFC 8785 of
    {"conversation","first","messages":[digests],"run","scope","shape","v":1})``.
    """
    return tagged_sha256(
        SOURCE_TAG,
        encode_ordered(
            {
                "conversation": window.conversation,
                "first": first,
                "messages": tuple(digests),
                "run": window.run,
                "scope": window.scope,
                "shape": shape,
                "v": 1,
            }
        ),
    )
