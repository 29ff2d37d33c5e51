"""Export an audit bundle: the whole log, or one conversation, as of a signed checkpoint (K5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeVar

from compaction_ledger.domain.bundles import (
    MAX_CHECKPOINTS,
    MAX_LINE,
    BundleWriter,
    Manifest,
    Published,
    SealedEvent,
    SealedLog,
    encode_consistency,
    encode_envelopes,
    encode_event,
    encode_keys,
    encode_policy,
)
from compaction_ledger.domain.erasure import ERASURE_EVENTS
from compaction_ledger.domain.errors import (
    InvalidInput,
    InvalidProof,
    InvalidSetting,
    UnknownConversation,
)
from compaction_ledger.domain.ports import Progress
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.proof.merkle import (
    Frontier,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_at,
)
from compaction_ledger.domain.proof.tiles import Tiles
from compaction_ledger.domain.windows import WindowPolicy

T = TypeVar("T")

PROOFS_AT_ONCE = 256
"""How many proofs share what was read of the tree; then memory is given back."""


class Selection(NamedTuple):
    """Which events: all of them, or those of the conversation that ``subject`` stands for."""

    subject: str | None = None
    envelopes: bool = False
    openings: bool = True


class Stated(NamedTuple):
    """What goes in for people to read: verifier keys of the log and of witnesses, policy and prompts."""

    log_keys: Sequence[str]
    witness_keys: Sequence[str]
    policy: WindowPolicy
    registry: PromptRegistry


@dataclass(frozen=True, slots=True)
class Exported:
    """What a bundle holds: so many events, of a log of ``size``, and so many older checkpoints.

    ``subject`` is the reference of the conversation, ``None`` where it is the whole log.
    """

    origin: str
    events: int
    size: int
    root: bytes
    checkpoints: int
    subject: str | None


def subject_named(log: SealedLog, scope: str, conversation: str) -> str:
    """The reference of a conversation. Raises :class:`UnknownConversation`."""
    subject = log.subject_of(scope, conversation)
    if subject is None:
        raise UnknownConversation(
            f"the log has no event of conversation {conversation!r} in scope {scope!r}; what was erased"
            " is exported by its reference"
        )
    return subject


def export_bundle(
    log: SealedLog,
    checkpoint: Published,
    older: Sequence[Published],
    selection: Selection,
    stated: Stated,
    writer: BundleWriter,
    progress: Progress | None = None,
) -> Exported:
    """Write all members of a bundle to ``writer``. Memory does not grow with the log.

    Everything is proved to oneself first. Raises :class:`InvalidProof` where the log is not the one that
    was signed, kinds of :class:`DamagedLog`, and of key errors where a payload cannot be opened.
    """
    return _Export(log, checkpoint, older, selection, writer, progress).run(stated)


class _Export:
    def __init__(
        self,
        log: SealedLog,
        checkpoint: Published,
        older: Sequence[Published],
        selection: Selection,
        writer: BundleWriter,
        progress: Progress | None,
    ) -> None:
        self._log = log
        self._head = checkpoint.checkpoint
        self._note = checkpoint.note
        self._check_head()
        self._older = self._before(older)
        self._selection = selection
        self._writer = writer
        self._progress = progress
        self._erased: set[str] = set()
        self._requested: set[str] = set()

    def run(self, stated: Stated) -> Exported:
        head, selection = self._head, self._selection
        subject = selection.subject
        indices = None if subject is None else self._log.indices_of(subject, head.size)
        if subject is not None and not indices:
            raise UnknownConversation(f"no event of {subject} stands below the checkpoint")
        events = head.size if indices is None else len(indices)
        sizes = tuple(one.checkpoint.size for one in self._older)
        manifest = Manifest(
            head.origin,
            head.size,
            sizes,
            events,
            selection.openings,
            selection.envelopes and subject is not None,
            subject,
            None if subject is None else self._log.conversation_of(subject),
        )
        write = self._writer.member
        consistency = self._proved(self._consistency)
        write("manifest.json", [manifest.encode()])
        write("keys.json", [encode_keys(stated.log_keys, stated.witness_keys)])
        write("policy.json", [encode_policy(stated.policy, stated.registry)])
        write("checkpoint", [self._note])
        for one in self._older:
            write(f"checkpoints/{one.checkpoint.size}", [one.note])
        write("consistency.jsonl", consistency)
        write("events.jsonl", self._all() if indices is None else self._some(indices))
        self._check_erasures()
        if manifest.envelopes:
            write("envelopes.jsonl", encode_envelopes(self._checked(openings=False)))
        return Exported(head.origin, events, head.size, head.root, len(sizes), subject)

    def _check_head(self) -> None:
        size, origin = self._log.head()
        if self._head.origin != origin:
            raise InvalidProof(f"the checkpoint is of {self._head.origin}, this log is {origin}")
        if self._head.size > size:
            raise InvalidProof(f"{self._head.size} events were signed, the log has {size}")
        self._proved(self._check_root)

    def _check_root(self, tiles: Tiles) -> None:
        if root_at(self._head.size, tiles) != self._head.root:
            raise InvalidProof(
                f"the first {self._head.size} events are not those that were signed: run verify"
            )

    def _proved(self, prove: Callable[[Tiles], T]) -> T:
        """What the tree proves: by the hashes that are kept, or, if they do not lead there, by the leaves."""
        try:
            return prove(Tiles(self._log))
        except InvalidProof:
            return prove(Tiles(self._log, kept=False))

    def _before(self, published: Sequence[Published]) -> list[Published]:
        """The older checkpoints of this log, one of each size, the newest that a bundle may hold."""
        found = {
            one.checkpoint.size: one
            for one in published
            if one.checkpoint.origin == self._head.origin and one.checkpoint.size < self._head.size
        }
        return [found[size] for size in sorted(found)][-MAX_CHECKPOINTS:]

    def _consistency(self, tiles: Tiles) -> list[bytes]:
        """What shows that each checkpoint begins the next; each was a head of this very log."""
        lines: list[bytes] = []
        following = [*(one.checkpoint for one in self._older), self._head]
        for old, new in pairwise(following):
            if root_at(old.size, tiles) != old.root:
                raise InvalidProof(
                    f"a checkpoint of size {old.size} was published that is not of this log: run verify"
                )
            proof = consistency_proof(old.size, new.size, tiles)
            check_consistency(old.size, old.root, new.size, new.root, proof)
            lines.append(encode_consistency(old.size, new.size, proof))
        return lines

    def _all(self) -> Iterator[bytes]:
        for event in self._checked(openings=self._selection.openings):
            yield self._line(event, None)

    def _checked(self, *, openings: bool) -> Iterator[SealedEvent]:
        """All events below the checkpoint; at their end the root must be the one that was signed."""
        tree, size = Frontier(), self._head.size
        while tree.size < size:
            events = self._log.events(tree.size, size, openings=openings)
            tree.extend(leaf_hash(event.envelope) for event in events)
            yield from events
            if self._progress:
                self._progress(tree.size, size)
        if tree.root() != self._head.root:
            raise InvalidProof("the events are not those that were signed: run verify")

    def _some(self, indices: Sequence[int]) -> Iterator[bytes]:
        openings = self._selection.openings
        for start in range(0, len(indices), PROOFS_AT_ONCE):
            chunk = indices[start : start + PROOFS_AT_ONCE]
            events = self._log.events_at(chunk, openings=openings)
            proofs = self._proved(partial(self._inclusion, events))
            for event, proof in zip(events, proofs, strict=True):
                yield self._line(event, proof)
            if self._progress:
                self._progress(start + len(chunk), len(indices))

    def _inclusion(self, events: Sequence[SealedEvent], tiles: Tiles) -> list[Sequence[bytes]]:
        size, root = self._head.size, self._head.root
        proofs: list[Sequence[bytes]] = []
        for event in events:
            proofs.append(inclusion_proof(event.index, size, tiles))
            check_inclusion(leaf_hash(event.envelope), event.index, size, proofs[-1], root)
        return proofs

    def _line(self, event: SealedEvent, proof: Sequence[bytes] | None) -> bytes:
        if event.is_erased:
            self._erased.add(event.subject)
        if event.name in ERASURE_EVENTS:
            self._requested.add(event.subject)
        line = encode_event(event, proof)
        if len(line) > MAX_LINE:
            raise InvalidInput(
                f"the event takes {len(line)} bytes, a bundle holds lines of at most {MAX_LINE}",
                place=f"event {event.index}",
            )
        return line

    def _check_erasures(self) -> None:
        """What was erased can be shown to be so only if its request is below the checkpoint (S3)."""
        if self._erased - self._requested:
            raise InvalidSetting(
                "a conversation was erased after the checkpoint: sign a new one first",
                place="checkpoint",
            )
