"""The part of the composition root that hands a ledger to an auditor (K5)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from compaction_ledger import signing_parts
from compaction_ledger.composition import Parts
from compaction_ledger.domain.bundles import Published
from compaction_ledger.domain.errors import InvalidProof, InvalidSetting
from compaction_ledger.domain.ports import Progress
from compaction_ledger.domain.proof.checkpoints import open_checkpoint, parse_checkpoint
from compaction_ledger.domain.proof.notes import NoteVerifier, parse_note
from compaction_ledger.infrastructure.bundles.archive import BundleArchive
from compaction_ledger.infrastructure.bundles.files import whole_file
from compaction_ledger.infrastructure.bundles.published import published_notes, read_note
from compaction_ledger.infrastructure.proof.folder import COPIES
from compaction_ledger.usecases.exporting import (
    Exported,
    Selection,
    Stated,
    export_bundle,
    subject_named,
)

_REFERENCE = re.compile("[0-9a-f]{32}")
COSIGNED = "cosigned"
"""In the folder of checkpoints: those with the signatures of witnesses, by their size."""

SIGN_FIRST = "run checkpoint, or export with --sign"


class Chosen(NamedTuple):
    """What to export. Of ``conversation`` (scope and id) and ``subject`` at most one; of neither: all."""

    conversation: tuple[str, str] | None = None
    subject: str | None = None
    envelopes: bool = False
    openings: bool = True


@dataclass(frozen=True, slots=True)
class AuditBundle:
    """A bundle that was written. ``keys`` are the log's verifier keys; an auditor gets them by other means.

    ``later`` is how many events came after its checkpoint, and are not in it.
    """

    path: Path
    sha256: str
    exported: Exported
    keys: tuple[str, ...]
    later: int


def export(
    parts: Parts,
    path: Path,
    chosen: Chosen,
    *,
    checkpoint: Path | None = None,
    sign: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
) -> AuditBundle:
    """Write a bundle to ``path``, as of a checkpoint: that in a file, a new one, or the newest.

    The file is there as a whole or not at all. Raises :class:`InvalidSetting`, :class:`InvalidProof`,
    :class:`UnknownConversation`, and kinds of :class:`StoreError` and :class:`DamagedLog`.
    """
    selection = _selection(parts, chosen)
    newest = _newest(parts, checkpoint, sign=sign)
    before = _older(parts, newest.size)
    # Asked for last: a new key is known before it signs.
    verifiers = () if parts.places is None else signing_parts.signer_keys(parts).verifiers()
    head = _checked(newest, verifiers)
    older = [_checked(read, verifiers) for read in before]
    keys = [str(verifier.verifier_key) for verifier in verifiers]
    stated = Stated(keys, [], parts.context.policy, parts.context.registry)
    with whole_file(path, replace=replace) as file:
        archive = BundleArchive(file)
        made = export_bundle(
            parts.exported, head, older, selection, stated, archive, progress=progress
        )
        archive.finish()
        file.seek(0)  # not by its name: another export may have that by then
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    later = parts.tree.head()[0] - made.size
    return AuditBundle(path, digest, made, tuple(keys), later)


def _selection(parts: Parts, chosen: Chosen) -> Selection:
    subject = chosen.subject
    if subject is not None and not _REFERENCE.fullmatch(subject):
        raise InvalidSetting("a reference is 32 hexadecimal digits", place="subject")
    if chosen.conversation is not None:
        subject = subject_named(parts.exported, *chosen.conversation)
    return Selection(subject, chosen.envelopes, chosen.openings)


class _Read(NamedTuple):
    """A checkpoint as it was read at ``place``, and with the signatures of witnesses, where that is kept."""

    data: bytes
    place: str
    cosigned: bytes | None

    @property
    def size(self) -> int:
        """How many events it is of."""
        return parse_checkpoint(parse_note(self.data).text).size


def _newest(parts: Parts, given: Path | None, *, sign: bool) -> _Read:
    """What is exported: the checkpoint in a file, a new one, or the newest."""
    if given is not None:
        if sign:
            raise InvalidSetting("either a checkpoint that there is, or a new one", place="sign")
        return _Read(read_note(given), str(given), None)
    if sign:
        return _read(parts, signing_parts.log_signer(parts).sign().data, "the new checkpoint")
    data = None if parts.places is None else signing_parts.checkpoint_folder(parts).newest()
    if data is None:
        raise InvalidSetting(f"nothing was signed yet: {SIGN_FIRST}", place="checkpoint")
    return _read(parts, data, "the newest checkpoint")


def _older(parts: Parts, below: int) -> Sequence[_Read]:
    if parts.places is None:
        return []
    notes = published_notes(parts.places.checkpoints / COPIES, below)
    return [_read(parts, data, str(path)) for path, data in notes]


def _read(parts: Parts, data: bytes, place: str) -> _Read:
    known = _Read(data, place, None)
    if parts.places is None:
        return known
    path = parts.places.checkpoints / COSIGNED / str(known.size)
    return known._replace(cosigned=read_note(path)) if path.is_file() else known


def _checked(read: _Read, verifiers: Sequence[NoteVerifier]) -> Published:
    """The checkpoint, with the signatures of witnesses where they are of the same."""
    known = _published(read.data, verifiers, read.place)
    if read.cosigned is None:
        return known
    found = _published(read.cosigned, verifiers, f"{read.place}, cosigned")
    return found if found.checkpoint == known.checkpoint else known


def _published(data: bytes, verifiers: Sequence[NoteVerifier], place: str) -> Published:
    """A checkpoint, signed by a key of this ledger where any is known. Raises :class:`InvalidProof`."""
    if not verifiers:
        return Published(parse_checkpoint(parse_note(data).text), data)
    try:
        return Published(open_checkpoint(data, verifiers).checkpoint, data)
    except InvalidProof as error:
        raise InvalidProof(f"{place}: {error}") from error
