"""Logs with signed checkpoints, and bundles of them that are taken apart and put together."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from facts import delivery
from histories import made_up_job
from scenarios import claimed, completed, failed, started

from compaction_ledger import bundle_verifier
from compaction_ledger.domain.bundles import BundleWriter, Published
from compaction_ledger.domain.erasure import ErasureCompleted, ErasureRequested
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.proof.checkpoints import Checkpoint
from compaction_ledger.domain.proof.merkle import root_of
from compaction_ledger.domain.proof.notes import NoteSigner, sign_note
from compaction_ledger.domain.proof.tiles import TreeReader
from compaction_ledger.domain.range_stream import EMPTY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.infrastructure.bundles.archive import BundleArchive
from compaction_ledger.infrastructure.event_store.application import LedgerLog, SealedRecorder
from compaction_ledger.infrastructure.event_store.exporting import ExportedLog
from compaction_ledger.infrastructure.event_store.mapper import StreamEvent
from compaction_ledger.infrastructure.event_store.streams import erasure_stream
from compaction_ledger.infrastructure.keys.memory import MemoryKeyProvider, MemoryWrappedKeys
from compaction_ledger.infrastructure.keys.ring import KeyRing
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Cosigner, Ed25519Signer
from compaction_ledger.usecases.exporting import Exported, Selection, Stated, export_bundle

Members = dict[str, bytes]
SCOPE = "tenant-1"


class LeavesAlone:
    """The tree over a recorder, of which nothing is kept but the leaves."""

    def __init__(self, recorder: SealedRecorder) -> None:
        self._recorder = recorder

    def leaf_hashes(self, start: int, stop: int) -> Sequence[bytes]:
        return [row.leaf for row in self._recorder.rows(start, stop - start, stop)]

    def nodes(self, level: int, start: int, stop: int) -> Sequence[bytes]:
        return ()


@dataclass
class Keeper:
    """One log with keys, a signer and a witness."""

    recorder: SealedRecorder
    ring: KeyRing = field(default_factory=lambda: KeyRing(MemoryKeyProvider, MemoryWrappedKeys()))
    tree: TreeReader | None = None

    def __post_init__(self) -> None:
        self.origin = self.recorder.head()[1]
        self.log = LedgerLog(self.recorder, self.ring)  # type: ignore[arg-type] # recorders are both
        self.private = Ed25519PrivateKey.generate()
        self.signer = Ed25519Signer(self.origin, self.private)
        self.witness = Ed25519Cosigner(
            "witness.example/w1", Ed25519PrivateKey.generate(), lambda: 1_750_000_000
        )
        self.published: list[Published] = []

    @property
    def key(self) -> str:
        """The log's verifier key."""
        return str(self.signer.verifier_key)

    def summarize(self, conversation: str, ranges: int = 2, *, plain: bool = False) -> None:
        """Some facts of a conversation: ranges that failed once and were completed, and a delivery."""
        log = LedgerLog(self.recorder) if plain else self.log  # type: ignore[arg-type] # as above
        for number in range(ranges):
            job = replace(made_up_job(number * 10), scope=SCOPE, conversation=conversation)
            key = RangeKey(SCOPE, conversation, job.from_pair)
            facts = (claimed(job=job), started(), failed(), started(number=2), completed(job=job))
            log.append(key, EMPTY, facts)
        log.deliver(delivery(f"d-{conversation}", conversation))

    def sign(self, *signers: NoteSigner) -> Published:
        """Sign the log as it is, and publish that."""
        size, origin = self.recorder.head()
        leaves = [row.leaf for row in self.recorder.rows(0, size, size)]
        checkpoint = Checkpoint(origin, size, root_of(leaves))
        note = sign_note(checkpoint.encode(), signers or (self.signer, self.witness)).encode()
        made = Published(checkpoint, note)
        self.published.append(made)
        return made

    def export(
        self, selection: Selection | None = None, checkpoint: Published | None = None
    ) -> Members:
        """The members of a bundle."""
        written = Written()
        self.export_to(written, selection, checkpoint)
        return written.members

    def source(self) -> ExportedLog:
        """What an export reads."""
        return ExportedLog(self.recorder, self.tree or LeavesAlone(self.recorder), self.ring)

    def export_to(
        self,
        writer: BundleWriter,
        selection: Selection | None = None,
        checkpoint: Published | None = None,
        source: ExportedLog | None = None,
    ) -> Exported:
        """Export to a writer; by default everything, as of the last checkpoint."""
        stated = Stated([self.key], [], WindowPolicy(), DEFAULT_REGISTRY)
        return export_bundle(
            source or self.source(),
            checkpoint or self.published[-1],
            self.published,
            selection or Selection(),
            stated,
            writer,
        )

    def erase(self, conversation: str, *, complete: bool = True) -> str:
        """Erase a conversation, or only request it; the reference that stood for it."""
        subject = self.recorder.find_subject(SCOPE, conversation)
        assert subject is not None
        keys = (subject.key,) if subject.key else ()
        stream = erasure_stream(subject.reference)
        self.ring.begin(subject)
        requested = ErasureRequested(subject.reference, keys)
        self.log._save([StreamEvent(stream, 1, requested)], subject)
        if complete:
            self.ring.destroy(subject.reference)
            self.recorder.blank(subject.reference)
            completed = ErasureCompleted(subject.reference, keys, ("transcripts",))
            self.log._save([StreamEvent(stream, 2, completed)], subject)
        return subject.reference

    def subject(self, conversation: str) -> str:
        """The reference of a conversation."""
        found = self.recorder.find_subject(SCOPE, conversation)
        assert found is not None
        return found.reference


@dataclass
class Written:
    """A writer that keeps the members."""

    members: Members = field(default_factory=dict)

    def member(self, name: str, pieces: Any) -> None:
        self.members[name] = b"".join(pieces)


def zipped(members: Mapping[str, bytes] | Sequence[tuple[str, bytes]]) -> bytes:
    """Members as a bundle's bytes."""
    file = BytesIO()
    archive = BundleArchive(file)
    for name, data in members.items() if isinstance(members, Mapping) else members:
        archive.member(name, [data])
    archive.finish()
    return file.getvalue()


def unzipped(data: bytes) -> Members:
    """A bundle's members, as any program reads them."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check(
    data: bytes, keys: Sequence[str], witnesses: Sequence[str] = ()
) -> bundle_verifier.Bundle:
    """Run the verifier on a bundle's bytes."""
    return bundle_verifier.Bundle(
        BytesIO(data),
        [bundle_verifier.parse_key(key, bundle_verifier.LOG_KEY) for key in keys],
        [bundle_verifier.parse_key(key, bundle_verifier.WITNESS_KEY) for key in witnesses],
    )


def canonical(value: Any) -> bytes:
    """JSON as it stands in bundles."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def lines_of(data: bytes) -> list[Any]:
    """The values of a member of lines."""
    return [json.loads(line) for line in data.splitlines()]


def as_lines(values: Sequence[Any]) -> bytes:
    """A member of lines."""
    return b"".join(canonical(value) + b"\n" for value in values)


def edited(members: Members, name: str, change: Callable[[Any], Any]) -> Members:
    """The members, one of them changed in place: a list of lines, or one value."""
    is_lines = name.endswith(".jsonl")
    value = lines_of(members[name]) if is_lines else json.loads(members[name])
    change(value)
    return {**members, name: as_lines(value) if is_lines else canonical(value)}


def base64_of(data: bytes) -> str:
    """As in bundles."""
    return base64.b64encode(data).decode()


def write(path: Path, members: Members) -> Path:
    """A bundle in a file."""
    path.write_bytes(zipped(members))
    return path
