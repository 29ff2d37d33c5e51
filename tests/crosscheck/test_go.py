"""K6: Go's ``golang.org/x/mod/sumdb`` accepts our checkpoints and proofs, and we accept its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from go_peer import built
from line_peer import LinePeer, data, running, text, texts
from proof_cases import BIG, Leaves, mutations, some
from signed_logs import signed_log

from compaction_ledger.domain.errors import InvalidProof, MalformedProof
from compaction_ledger.domain.proof.checkpoints import Checkpoint, open_checkpoint
from compaction_ledger.domain.proof.inclusion import parse_inclusion, parse_witness_request
from compaction_ledger.domain.proof.merkle import (
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_at,
)
from compaction_ledger.domain.proof.notes import open_note, sign_note
from compaction_ledger.domain.proof.text import encode_base64
from compaction_ledger.domain.proof.tiles import Tiles
from compaction_ledger.infrastructure.proof.ed25519 import (
    Ed25519Signer,
    Ed25519Verifier,
    private_key,
)

SEED = bytes(range(32))
SIGNER = Ed25519Signer("compaction-ledger/0123456789abcdef0123456789abcdef", private_key(SEED))
KEY = str(SIGNER.verifier_key)
PRIVATE = f"PRIVATE+KEY+{SIGNER.name}+{SIGNER.key_id.hex()}+{encode_base64(bytes([1]) + SEED)}"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program."""
    return built(tmp_path_factory.mktemp("go"))


@pytest.fixture
def go(program: Path) -> Iterator[LinePeer]:
    """The program, running."""
    with running(program) as peer:
        yield peer


@pytest.fixture(scope="module")
def leaves() -> Leaves:
    """As many as the largest tree has."""
    return Leaves(max(BIG))


Check = Callable[[], None]


class Cases:
    """Questions about proofs, each with what we say of the same proof."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._tiles = Tiles(leaves)
        self._roots: dict[int, bytes] = {}
        self.proofs: list[tuple[dict[str, object], list[bytes]]] = []
        """What Go is to make by itself, and what we made."""
        self.checks: list[tuple[dict[str, object], Check]] = []
        """What Go is to check, and our check of the same."""

    def root(self, size: int) -> bytes:
        if size not in self._roots:
            self._roots[size] = root_at(size, self._tiles)
        return self._roots[size]

    def add_inclusion(self, index: int, size: int) -> None:
        proof = inclusion_proof(index, size, self._tiles)
        self.proofs.append(({"Op": "prove_record", "T": size, "N": index}, proof))
        leaf = self._leaves.leaves[index]
        self._check_inclusion(leaf, index, size, proof, self.root(size))
        for changed in mutations(proof, index):
            self._check_inclusion(leaf, index, size, changed, self.root(size))
        self._check_inclusion(leaf, (index + 1) % size, size, proof, self.root(size))
        self._check_inclusion(self.root(size), index, size, proof, self.root(size))

    def add_consistency(self, old: int, new: int) -> None:
        proof = consistency_proof(old, new, self._tiles)
        self.proofs.append(({"Op": "prove_tree", "T": new, "N": old}, proof))
        roots = self.root(old), self.root(new)
        self._check_consistency(old, roots[0], new, roots[1], proof)
        for changed in mutations(proof, old):
            self._check_consistency(old, roots[0], new, roots[1], changed)
        self._check_consistency(old, roots[1], new, roots[0], proof)
        self._check_consistency(old, sha256(roots[0]).digest(), new, roots[1], proof)

    def _check_inclusion(
        self, leaf: bytes, index: int, size: int, proof: list[bytes], root: bytes
    ) -> None:
        members = {"T": size, "TH": text(root), "N": index, "H": text(leaf)}
        question = {"Op": "check_record", "Proof": texts(proof), **members}
        self.checks.append((question, lambda: check_inclusion(leaf, index, size, proof, root)))

    def _check_consistency(
        self, old: int, old_root: bytes, new: int, new_root: bytes, proof: list[bytes]
    ) -> None:
        members = {"T": new, "TH": text(new_root), "N": old, "H": text(old_root)}
        question = {"Op": "check_tree", "Proof": texts(proof), **members}
        self.checks.append(
            (question, lambda: check_consistency(old, old_root, new, new_root, proof))
        )

    def ask(self, go: LinePeer) -> int:
        """Ask it all, and compare. How many were accepted."""
        made = go.ask_all([question for question, _ in self.proofs])
        for (question, ours), answer in zip(self.proofs, made, strict=True):
            assert answer["OK"], (question, answer["Error"])
            assert [data(one) for one in answer["Proof"] or []] == ours, question
        accepted = 0
        answers = go.ask_all([question for question, _ in self.checks])
        for (question, check), answer in zip(self.checks, answers, strict=True):
            try:
                check()
            except InvalidProof:
                assert not answer["OK"], question
            else:
                assert answer["OK"], (question, answer["Error"])
                accepted += 1
        assert accepted >= len(self.proofs)
        assert len(self.checks) - accepted >= len(self.proofs)
        return accepted


@pytest.mark.slow
def test_k6_roots_of_sizes_0_to_300(go: LinePeer, leaves: Leaves) -> None:
    tiles = Tiles(leaves)
    answers = go.ask_all([{"Op": "head", "T": size} for size in range(1, 301)])
    for size, answer in enumerate(answers, 1):
        assert data(answer["Hash"]) == root_at(size, tiles)


def test_k6_proofs_of_sizes_1_to_300(go: LinePeer, leaves: Leaves) -> None:
    source = random.Random(6962)
    cases = Cases(leaves)
    for size in range(1, 301):
        for number in some(size, source):
            cases.add_inclusion(number, size)
            cases.add_consistency(number + 1, size)
    assert cases.ask(go) > 3000


@pytest.mark.slow
def test_k6_every_proof_of_sizes_1_to_300(go: LinePeer, leaves: Leaves) -> None:
    for size in range(1, 301):
        cases = Cases(leaves)
        for number in range(size):
            cases.add_inclusion(number, size)
            cases.add_consistency(number + 1, size)
        assert cases.ask(go) >= 2 * size


@pytest.mark.slow
def test_k6_proofs_about_65536_and_beyond(go: LinePeer, leaves: Leaves) -> None:
    source = random.Random(65_536)
    cases = Cases(leaves)
    for size in [*BIG, *(source.randrange(301, max(BIG)) for _ in range(20))]:
        answer = go.ask(Op="head", T=size)
        assert data(answer["Hash"]) == cases.root(size)
        for number in some(size, source):
            cases.add_inclusion(number, size)
            cases.add_consistency(number + 1, size)
    assert cases.ask(go) > 200


def test_k6_checkpoints_are_opened_there(go: LinePeer, leaves: Leaves) -> None:
    tiles = Tiles(leaves)
    questions: list[dict[str, object]] = []
    heads: list[Checkpoint] = []
    for size in [*range(301), *BIG]:
        head = Checkpoint(SIGNER.name, size, root_at(size, tiles))
        note = sign_note(head.encode(), [SIGNER]).encode()
        heads.append(head)
        questions.append({"Op": "open", "Note": text(note), "Keys": [KEY]})
    for head, answer in zip(heads, go.ask_all(questions), strict=True):
        assert (answer["OK"], answer["Text"]) == (True, head.encode())
        assert answer["Names"] == [SIGNER.name]


def test_k6_notes_that_go_signs_are_the_same_bytes(go: LinePeer) -> None:
    head = Checkpoint(SIGNER.name, 7, sha256(b"root").digest()).encode()
    signed = go.ask(Op="sign", Text=head, Keys=[PRIVATE])
    assert signed["OK"], signed["Error"]
    assert data(signed["Note"]) == sign_note(head, [SIGNER]).encode()


@pytest.mark.parametrize("part", ["note", "text"])
def test_k6_changed_checkpoints_are_refused_on_both_sides(go: LinePeer, part: str) -> None:
    head = Checkpoint(SIGNER.name, 300, sha256(b"root").digest())
    note = sign_note(head.encode(), [SIGNER]).encode()
    end = len(note) if part == "note" else len(head.encode().encode())
    changed = [
        note[:at] + bytes([note[at] ^ bit]) + note[at + 1 :] for at in range(end) for bit in (1, 32)
    ]
    changed += [note[:at] + note[at + 1 :] for at in range(end)]
    changed += [note[:at] + note[at : at + 1] + note[at:] for at in range(end)]
    answers = go.ask_all([{"Op": "open", "Note": text(one), "Keys": [KEY]} for one in changed])
    verifier = [Ed25519Verifier(SIGNER.verifier_key)]
    for one, answer in zip(changed, answers, strict=True):
        with pytest.raises((InvalidProof, MalformedProof)):
            open_checkpoint(one, verifier)
        # A bit behind the end of a base64 text is ignored there; it is refused here.
        assert not answer["OK"] or answer["Text"] == head.encode()
    assert sum(answer["OK"] for answer in answers) <= 2


def test_k2_keys_and_rotation_as_go_sees_them(go: LinePeer) -> None:
    other = Ed25519Signer(SIGNER.name, private_key(b"\x05" * 32))
    note = sign_note("text\n", [SIGNER, other]).encode()
    for keys in ([KEY], [str(other.verifier_key)], [KEY, str(other.verifier_key)]):
        answer = go.ask(Op="open", Note=text(note), Keys=keys)
        assert (answer["OK"], len(answer["Names"])) == (True, len(keys))
        verified = open_note(note, [Ed25519Verifier.parse(key) for key in keys]).verified
        assert len(verified) == len(keys)
    stranger = Ed25519Signer("stranger", private_key(b"\x06" * 32))
    assert not go.ask(Op="open", Note=text(note), Keys=[str(stranger.verifier_key)])["OK"]


def test_k6_what_a_ledger_publishes_and_proves(go: LinePeer, tmp_path: Path) -> None:
    with signed_log(tmp_path, 700) as log:
        signed = log.signer().sign()
        proofs = [parse_inclusion(one.encode()) for one in log.prover().inclusion(range(0, 700, 9))]
        requests = [parse_witness_request(log.prover().consistency(n).encode()) for n in (1, 699)]
        roots = [root_at(request.old, Tiles(log.tree)) for request in requests]
    opened = go.ask(Op="open", Note=text(signed.data), Keys=[str(log.key.verifier_key)])
    head = signed.checkpoint
    assert opened["Text"] == head.encode()
    common = {"T": head.size, "TH": text(head.root)}
    for proof in proofs:
        leaf = text(leaf_hash(proof.extra))
        assert go.ask(
            Op="check_record", Proof=texts(proof.hashes), N=proof.index, H=leaf, **common
        )["OK"]
    for request, root in zip(requests, roots, strict=True):
        members = {"N": request.old, "H": text(root)}
        assert go.ask(Op="check_tree", Proof=texts(request.hashes), **members, **common)["OK"]
