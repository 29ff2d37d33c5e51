"""K6: npm's ``@sigstore/verify`` accepts our checkpoints and proofs of inclusion; it knows no others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from line_peer import LinePeer, data, running, text, texts
from proof_cases import BIG, Leaves, leaf_data, mutations, some
from signed_logs import signed_log
from sigstore_peer import installed

from compaction_ledger.domain.errors import InvalidProof, MalformedProof
from compaction_ledger.domain.proof.checkpoints import Checkpoint, open_checkpoint
from compaction_ledger.domain.proof.inclusion import parse_inclusion
from compaction_ledger.domain.proof.merkle import (
    check_inclusion,
    inclusion_proof,
    leaf_hash,
    root_at,
)
from compaction_ledger.domain.proof.notes import sign_note
from compaction_ledger.domain.proof.tiles import Tiles
from compaction_ledger.infrastructure.proof.ed25519 import (
    Ed25519Signer,
    Ed25519Verifier,
    private_key,
)

SIGNER = Ed25519Signer(
    "compaction-ledger/0123456789abcdef0123456789abcdef", private_key(bytes(range(32)))
)


def authority(signer: Ed25519Signer) -> dict[str, str]:
    """A key as it stands in a question."""
    public = signer.private.public_key()
    encoded = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return {"Name": signer.name, "Hint": text(signer.key_id), "Key": text(encoded)}


KEYS = [authority(SIGNER)]


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The program."""
    return installed(tmp_path_factory.mktemp("sigstore"))


@pytest.fixture
def sigstore(command: tuple[str, Path]) -> Iterator[LinePeer]:
    """The program, running."""
    with running(*command) as peer:
        yield peer


@pytest.fixture(scope="module")
def leaves() -> Leaves:
    """As many as the largest tree has."""
    return Leaves(max(BIG))


class Cases:
    """Proofs of inclusion under signed checkpoints, each with what we say of the same proof."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._tiles = Tiles(leaves)
        self._heads: dict[int, tuple[Checkpoint, str]] = {}
        self._questions: list[dict[str, Any]] = []
        self._expected: list[bool] = []

    def head(self, size: int) -> tuple[Checkpoint, str]:
        """The checkpoint of this size, and its signed note."""
        if size not in self._heads:
            head = Checkpoint(SIGNER.name, size, root_at(size, self._tiles))
            self._heads[size] = head, text(sign_note(head.encode(), [SIGNER]).encode())
        return self._heads[size]

    def add(self, index: int, size: int, *, changed_too: bool = True) -> None:
        """The proof as it is, and changed."""
        proof = inclusion_proof(index, size, self._tiles)
        self._check(index, size, index, proof)
        if not changed_too:
            return
        for changed in mutations(proof, index):
            self._check(index, size, index, changed)
        self._check((index + 1) % size, size, index, proof)
        self._check(index, size, size - 1 - index, proof)
        self._check(index, size + 1, index, proof)

    def _check(self, leaf: int, size: int, index: int, proof: list[bytes]) -> None:
        head, note = self.head(size)
        question = {"Note": note, "Keys": KEYS, "N": index, "Proof": texts(proof)}
        self._questions.append({**question, "Leaf": text(leaf_data(leaf))})
        try:
            check_inclusion(leaf_hash(leaf_data(leaf)), index, size, proof, head.root)
        except InvalidProof:
            self._expected.append(False)
        else:
            self._expected.append(True)

    def ask(self, peer: LinePeer) -> tuple[int, int]:
        """Ask it all, and compare. How many were accepted, and how many refused."""
        answers = peer.ask_all(self._questions)
        for question, expected, answer in zip(
            self._questions, self._expected, answers, strict=True
        ):
            assert answer["OK"] is expected, (question, answer)
        return self._expected.count(True), self._expected.count(False)


def test_k6_proofs_of_sizes_1_to_300(sigstore: LinePeer, leaves: Leaves) -> None:
    source = random.Random(6962)
    cases = Cases(leaves)
    for size in range(1, 301):
        for index in some(size, source):
            cases.add(index, size)
    accepted, refused = cases.ask(sigstore)
    assert accepted > 1_500
    assert refused > 3 * accepted


@pytest.mark.slow
def test_k6_every_proof_of_sizes_1_to_300(sigstore: LinePeer, leaves: Leaves) -> None:
    for size in range(1, 301):
        cases = Cases(leaves)
        for index in range(size):
            cases.add(index, size, changed_too=(size - index) % 10 == 1)
        accepted, refused = cases.ask(sigstore)
        assert accepted >= size
        assert refused >= size // 4


@pytest.mark.slow
def test_k6_proofs_about_65536_and_beyond(sigstore: LinePeer, leaves: Leaves) -> None:
    source = random.Random(65_536)
    cases = Cases(leaves)
    for size in [*BIG[:-1], *(source.randrange(301, max(BIG)) for _ in range(20))]:
        for index in some(size, source):
            cases.add(index, size)
    accepted, refused = cases.ask(sigstore)
    assert accepted > 100
    assert refused > 3 * accepted


def test_k6_checkpoints_are_opened_there(sigstore: LinePeer, leaves: Leaves) -> None:
    cases = Cases(leaves)
    heads = [cases.head(size) for size in [*range(301), *BIG]]
    answers = sigstore.ask_all([{"Note": note, "Keys": KEYS} for _, note in heads])
    for (head, _), answer in zip(heads, answers, strict=True):
        assert answer == {
            "OK": True,
            "Origin": head.origin,
            "Size": str(head.size),
            "Root": text(head.root),
        }


@pytest.mark.slow
@pytest.mark.parametrize("part", ["note", "text"])
def test_k6_changed_checkpoints_are_refused_on_both_sides(sigstore: LinePeer, part: str) -> None:
    """What it overlooks beside the signed text (a name read as a pattern, a last bit of base64) we refuse."""
    head = Checkpoint(SIGNER.name, 300, sha256(b"root").digest())
    note = sign_note(head.encode(), [SIGNER]).encode()
    end = len(note) if part == "note" else len(head.encode().encode())
    changed = [
        note[:at] + bytes([note[at] ^ bit]) + note[at + 1 :] for at in range(end) for bit in (1, 32)
    ]
    changed += [note[:at] + note[at + 1 :] for at in range(end)]
    changed += [note[:at] + note[at : at + 1] + note[at:] for at in range(end)]
    answers = sigstore.ask_all([{"Note": text(one), "Keys": KEYS} for one in changed])
    verifier = [Ed25519Verifier(SIGNER.verifier_key)]
    for one, answer in zip(changed, answers, strict=True):
        with pytest.raises((InvalidProof, MalformedProof)):
            open_checkpoint(one, verifier)
        if answer["OK"]:
            signed = SIGNER.name, "300", text(head.root)
            assert (answer["Origin"], answer["Size"], answer["Root"]) == signed
            assert one.startswith(head.encode().encode())
    overlooked = sum(answer["OK"] for answer in answers)
    assert overlooked < (
        2 if part == "text" else len(changed) // 20
    )  # one more empty line behind it


def test_k2_keys_and_rotation_as_it_sees_them(sigstore: LinePeer) -> None:
    other = Ed25519Signer(SIGNER.name, private_key(b"\x05" * 32))
    head = Checkpoint(SIGNER.name, 7, sha256(b"root").digest())
    note = text(sign_note(head.encode(), [SIGNER, other]).encode())
    for keys in (KEYS, [authority(other)], [authority(other), *KEYS]):
        assert sigstore.ask(Note=note, Keys=keys)["OK"]
    stranger = Ed25519Signer(SIGNER.name, private_key(b"\x06" * 32))
    assert not sigstore.ask(Note=note, Keys=[authority(stranger)])["OK"]


def test_k6_what_a_ledger_publishes_and_proves(sigstore: LinePeer, tmp_path: Path) -> None:
    with signed_log(tmp_path, 700) as log:
        note = text(log.signer().sign().data)
        proofs = [parse_inclusion(one.encode()) for one in log.prover().inclusion(range(0, 700, 9))]
        keys = [authority(log.key)]
        root = root_at(700, Tiles(log.tree))
    for proof in proofs:
        members = {"N": proof.index, "Proof": texts(proof.hashes), "Leaf": text(proof.extra)}
        answer = sigstore.ask(Note=note, Keys=keys, **members)
        assert (answer["OK"], data(answer["Root"])) == (True, root)
