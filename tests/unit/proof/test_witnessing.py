"""What a witness takes and refuses, byte by byte (K3)."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from witness_logs import HASH, LooseLog

from compaction_ledger.domain.errors import MalformedProof, WitnessRefused
from compaction_ledger.domain.proof.checkpoints import parse_checkpoint
from compaction_ledger.domain.proof.notes import SignedNote, check_note, parse_note
from compaction_ledger.domain.proof.witnessing import Cosigned, parse_lines
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Cosigner, Ed25519Verifier
from compaction_ledger.usecases.witnessing import WitnessService

LOG = LooseLog()
COSIGNER = Ed25519Cosigner(
    "witness.example/w1", Ed25519PrivateKey.generate(), lambda: 1_700_000_000
)


class Memory:
    """A store of one test."""

    def __init__(self) -> None:
        self.notes: dict[str, bytes] = {}

    def latest(self, origin: str) -> bytes | None:
        return self.notes.get(origin)

    @contextmanager
    def step(self, origin: str) -> Generator[tuple[bytes | None, Cosigned]]:
        def keep(note: bytes) -> None:
            self.notes[origin] = note

        yield self.latest(origin), keep


def service() -> WitnessService:
    return WitnessService({LOG.origin: [Ed25519Verifier.parse(LOG.key)]}, COSIGNER, Memory())


def size_of(witness: WitnessService) -> int:
    latest = witness.latest(LOG.origin)
    return 0 if latest is None else parse_checkpoint(parse_note(latest).text).size


@pytest.mark.slow
@given(st.lists(st.integers(0, 40), max_size=8), st.data())
def test_whatever_is_sent_it_only_goes_on(sizes: list[int], data: st.DataObject) -> None:
    """A model: right requests from the last size are cosigned, and nothing else changes what is kept."""
    witness, last = service(), 0
    logs = [LOG, LOG.forked(7)]
    history: list[tuple[int, bytes]] = []
    for size in sizes:
        log = data.draw(st.sampled_from(logs))
        old = data.draw(st.sampled_from([last, 0, size, max(0, last - 1)]))
        request = log.request(min(old, size), size)
        root = log.root(size)
        before = log.root(min(last, size))
        fits = min(old, size) == last <= size and (not history or before == history[-1][1])
        try:
            lines = witness.add(request.encode())
        except (MalformedProof, WitnessRefused):
            assert not fits
            assert size_of(witness) == last
        else:
            assert fits
            note = SignedNote(parse_note(request.checkpoint).text, parse_lines(lines))
            check_note(note, [Ed25519Verifier(COSIGNER.verifier_key)])
            last = size
            history.append((size, root))
            assert size_of(witness) == last


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_a_mutated_body_never_gets_a_cosignature_of_something_else(data: st.DataObject) -> None:
    """Bytes changed, dropped, doubled: it is refused, or it is a right request of the same checkpoint."""
    witness = service()
    witness.add(LOG.body(0, 5))
    body = bytearray(LOG.body(5, 13))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1)) if len(body) > 1 else 0
        match data.draw(st.sampled_from(["change", "drop", "double", "cut"])):
            case "change":
                body[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
            case "drop":
                del body[at : at + 1]
            case "double":
                body[at:at] = body[at : at + data.draw(st.integers(1, 100))]
            case _:
                del body[max(1, at) :]
    try:
        lines = witness.add(bytes(body))
    except (MalformedProof, WitnessRefused):
        assert size_of(witness) == 5
    else:
        note = SignedNote(parse_note(LOG.note(13)).text, parse_lines(lines))
        check_note(note, [Ed25519Verifier(COSIGNER.verifier_key)])
        assert size_of(witness) == 13


@pytest.mark.slow
def test_every_single_byte_counts() -> None:
    """One bit of any byte changed: what is signed, proved or the size is another, and is refused."""
    body = LOG.body(5, 13)
    source = random.Random(5)
    accepted = 0
    for at in range(len(body)):
        witness = service()
        witness.add(LOG.body(0, 5))
        changed = bytearray(body)
        changed[at] ^= 1 << source.randrange(8)
        try:
            witness.add(bytes(changed))
        except (MalformedProof, WitnessRefused):
            assert size_of(witness) == 5
        else:
            accepted += 1
    assert accepted == 0


@pytest.mark.parametrize(
    "lines", [b"", b"nonsense\n", b"x" * 70_000, LOG.note(3).split(b"\n\n")[1] * 17]
)
def test_lines_that_are_none(lines: bytes) -> None:
    with pytest.raises(MalformedProof):
        parse_lines(lines)


def test_a_log_with_many_signatures_is_cosigned() -> None:  # K2: unknown keys are ignored
    note = parse_note(LOG.note(3))
    for number in range(15):
        stranger = LooseLog(f"stranger/{number}")
        text = note.text.encode()
        signer = stranger.signer
        note = note.and_signed(
            [type(note.signatures[0])(signer.name, signer.key_id, signer.sign(text))]
        )
    body = LOG.body(0, 3).split(b"\n\n", 1)[0] + b"\n\n" + note.encode()
    witness = service()
    witness.add(body)
    kept = parse_note(witness.latest(LOG.origin) or b"")
    assert [one.name for one in kept.signatures] == [LOG.origin, COSIGNER.name]
    assert HASH
