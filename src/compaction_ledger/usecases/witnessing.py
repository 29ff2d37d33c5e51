"""A witness (K3): cosigns the checkpoints of logs that it knows, and never two that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.errors import BadSignature, NotSigned, WitnessRefused
from compaction_ledger.domain.proof.checkpoints import Checkpoint, parse_checkpoint
from compaction_ledger.domain.proof.inclusion import parse_witness_request
from compaction_ledger.domain.proof.notes import (
    NoteSignature,
    NoteSigner,
    NoteVerifier,
    SignedNote,
    check_note,
    parse_note,
)
from compaction_ledger.domain.proof.witnessing import WitnessStore, check_step, encode_lines


@dataclass(frozen=True, slots=True)
class WitnessService:
    """A witness with one key. ``logs`` are the keys that it trusts, by the origin of their log."""

    logs: Mapping[str, Sequence[NoteVerifier]]
    cosigner: NoteSigner
    store: WitnessStore

    def add(self, body: bytes) -> bytes:
        """Answer ``add-checkpoint``: the lines of the cosignature, once the checkpoint is safely kept.

        Raises :class:`MalformedProof` and :class:`WitnessRefused`.
        """
        request = parse_witness_request(body)
        note = parse_note(request.checkpoint)
        new = parse_checkpoint(note.text)
        signed = self._signed(note, new)
        with self.store.step(new.origin) as (latest, keep):
            check_step(request, new, self._parsed(latest))
            cosigned = self._cosigned(note)
            keep(SignedNote(note.text, (*signed, cosigned)).encode())
        return encode_lines((cosigned,))

    def latest(self, origin: str) -> bytes | None:
        """The checkpoint that was cosigned last, as a signed note."""
        return self.store.latest(origin)

    def _signed(self, note: SignedNote, new: Checkpoint) -> Sequence[NoteSignature]:
        """The log's own signatures, without whatever else stands there."""
        verifiers = self.logs.get(new.origin)
        if verifiers is None:
            raise WitnessRefused("unknown_log", "this log is not known here")
        try:
            return check_note(note, verifiers).verified
        except (BadSignature, NotSigned) as error:
            raise WitnessRefused("unknown_key", str(error)) from error

    def _cosigned(self, note: SignedNote) -> NoteSignature:
        key = self.cosigner
        return NoteSignature(key.name, key.key_id, key.sign(note.text.encode()))

    @staticmethod
    def _parsed(latest: bytes | None) -> Checkpoint | None:
        return None if latest is None else parse_checkpoint(parse_note(latest).text)
