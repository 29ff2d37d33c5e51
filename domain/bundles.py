"""What an audit bundle holds, and how it is written down (K5): see ``docs/reference/audit-bundle.md``."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction_ledger.domain.canonical import canonical_json
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.proof.checkpoints import Checkpoint
from compaction_ledger.domain.proof.tiles import TreeReader
from compaction_ledger.domain.windows import WindowPolicy

FORMAT = "compaction-ledger/audit-bundle"
VERSION = 1
MAX_CHECKPOINTS = 5_000
"""A bundle holds at most so many older checkpoints."""
MAX_LINE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SealedEvent:
    """An event as it is stored, with the key that opens its payload and no other, where there is one.

    ``payload`` is empty for what was stored unencrypted and was erased (S3).
    """

    index: int
    envelope: bytes
    payload: bytes
    opening: bytes | None
    name: str
    subject: str
    is_erased: bool


@dataclass(frozen=True, slots=True)
class Published:
    """A checkpoint with the bytes of its note: signatures and cosignatures."""

    checkpoint: Checkpoint
    note: bytes


class SealedLog(TreeReader, Protocol):
    """The part of the log that an export reads. Every event is checked against its seal."""

    def head(self) -> tuple[int, str]:
        """The log's size and origin."""
        ...

    def subject_of(self, scope: str, conversation: str) -> str | None:
        """The reference that stands for a conversation, if it has one."""
        ...

    def conversation_of(self, subject: str) -> tuple[str, str] | None:
        """Scope and id of the conversation that a reference stands for, if that is still known."""
        ...

    def indices_of(self, subject: str, stop: int) -> Sequence[int]:
        """Where the events of a subject are, below ``stop``, in order."""
        ...

    def events(self, start: int, stop: int, *, openings: bool) -> Sequence[SealedEvent]:
        """Some of the events from ``start`` below ``stop``, without a gap; one at least."""
        ...

    def events_at(self, indices: Sequence[int], *, openings: bool) -> Sequence[SealedEvent]:
        """The events at these indices, in this order."""
        ...


class BundleWriter(Protocol):
    """Where the members go, one after the other."""

    def member(self, name: str, pieces: Iterable[bytes]) -> None: ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a bundle holds. ``size`` is that of its checkpoint; ``conversation`` is scope and id."""

    origin: str
    size: int
    checkpoints: tuple[int, ...]
    events: int
    openings: bool
    envelopes: bool = False
    subject: str | None = None
    conversation: tuple[str, str] | None = None

    @property
    def kind(self) -> str:
        """``log`` or ``conversation``."""
        return "log" if self.subject is None else "conversation"

    def encode(self) -> bytes:
        """``manifest.json``."""
        named = self.conversation
        return canonical_json(
            {
                "bundle": FORMAT,
                "version": VERSION,
                "kind": self.kind,
                "origin": self.origin,
                "size": self.size,
                "checkpoints": list(self.checkpoints),
                "events": self.events,
                "openings": self.openings,
                "envelopes": self.envelopes,
                "subject": self.subject,
                "conversation": None if named is None else {"scope": named[0], "id": named[1]},
            }
        )


def encode_keys(log: Sequence[str], witnesses: Sequence[str]) -> bytes:
    """``keys.json``: verifier keys, as the exporter knows them."""
    return canonical_json({"log": list(log), "witnesses": list(witnesses)})


def encode_policy(policy: WindowPolicy, registry: PromptRegistry) -> bytes:
    """``policy.json``: when a range was due, and which prompt versions may be projected, and why not."""
    prompts = [
        {
            "name": spec.prompt.name,
            "version": spec.prompt.version,
            "given": spec.given,
            "returns": spec.returns,
            "verdict": registry.verdict(spec.prompt),
            "instructions": spec.instructions,
        }
        for spec in registry
    ]
    window = {
        "minimum_pairs": policy.minimum_pairs,
        "range_pairs": policy.range_pairs,
        "keep_newest": policy.keep_newest,
    }
    return canonical_json({"prompts": prompts, "window": window})


def encode_consistency(old: int, new: int, proof: Sequence[bytes]) -> bytes:
    """A line of ``consistency.jsonl``."""
    return f'{{"from":{old},"proof":{_hashes(proof)},"to":{new}}}\n'.encode()


def encode_event(event: SealedEvent, proof: Sequence[bytes] | None) -> bytes:
    """A line of ``events.jsonl``."""
    opening = "null" if event.opening is None else f'"{_base64(event.opening)}"'
    return (
        f'{{"envelope":"{_base64(event.envelope)}","index":{event.index},"opening":{opening},'
        f'"payload":"{_base64(event.payload)}","proof":{"null" if proof is None else _hashes(proof)}}}\n'
    ).encode()


def encode_envelopes(events: Iterable[SealedEvent]) -> Iterator[bytes]:
    """The lines of ``envelopes.jsonl``."""
    for event in events:
        yield f'{{"envelope":"{_base64(event.envelope)}"}}\n'.encode()


def _hashes(proof: Sequence[bytes]) -> str:
    quoted = ",".join(f'"{_base64(step)}"' for step in proof)
    return f"[{quoted}]"


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
