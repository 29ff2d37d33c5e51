"""K2: signed notes, checkpoints and proofs are read and written byte for byte."""

from __future__ import annotations

from base64 import b64encode

import naive_tree
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.errors import (
    BadSignature,
    InvalidInput,
    InvalidProof,
    MalformedProof,
    NotSigned,
)
from compaction_ledger.domain.proof.checkpoints import (
    Checkpoint,
    open_checkpoint,
    parse_checkpoint,
)
from compaction_ledger.domain.proof.cosignatures import cosigned_message, split_cosignature
from compaction_ledger.domain.proof.inclusion import (
    InclusionProof,
    WitnessRequest,
    parse_inclusion,
    parse_witness_request,
)
from compaction_ledger.domain.proof.merkle import (
    check_consistency,
    consistency_proof,
    inclusion_proof,
)
from compaction_ledger.domain.proof.notes import (
    NoteSignature,
    SignedNote,
    VerifierKey,
    open_note,
    parse_note,
    parse_signatures,
    parse_verifier_key,
    sign_note,
)
from compaction_ledger.infrastructure.proof.ed25519 import (
    Ed25519Cosigner,
    Ed25519Signer,
    Ed25519Verifier,
    private_key,
)

# From the documentation of Go's golang.org/x/mod/sumdb/note.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "— PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
).encode()

ORIGIN = "compaction-ledger/00112233445566778899aabbccddeeff"
SIGNER = Ed25519Signer(ORIGIN, private_key(bytes(32)))
VERIFIER = Ed25519Verifier(SIGNER.verifier_key)
OTHER = Ed25519Signer("other", private_key(b"\x01" * 32))
LEAVES = naive_tree.some_leaves(21)
HEAD = Checkpoint(ORIGIN, 21, naive_tree.head(LEAVES))
NOTE = sign_note(HEAD.encode(), [SIGNER]).encode()
PATH = tuple(inclusion_proof(3, 21, naive_tree.nodes_of(LEAVES)))
PROOF = InclusionProof(3, PATH, NOTE).encode()
REQUEST = WitnessRequest(
    7, tuple(consistency_proof(7, 21, naive_tree.nodes_of(LEAVES))), NOTE
).encode()


def test_k2_a_note_of_go_opens_and_is_written_the_same() -> None:
    opened = open_note(GO_NOTE, [Ed25519Verifier.parse(GO_KEY)])
    assert opened.text.endswith("problem is.\n")
    assert [s.name for s in opened.verified] == ["PeterNeumann"]
    assert parse_note(GO_NOTE).encode() == GO_NOTE
    assert str(parse_verifier_key(GO_KEY)) == GO_KEY


def test_k2_the_checkpoint_of_the_format_s_own_text_is_read_and_written() -> None:
    text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    signed = text + (
        "\n— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5"
        "/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
        "— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2"
        "oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
    )
    note = parse_note(signed.encode())
    checkpoint = parse_checkpoint(note.text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.encode() == text
    assert note.encode() == signed.encode()
    assert split_cosignature(note.signatures[1].signature)[0] == 1679315147


def test_k2_unknown_keys_are_ignored_and_a_known_one_must_hold() -> None:
    note = sign_note(HEAD.encode(), [OTHER, SIGNER])
    opened = open_checkpoint(note.encode(), [VERIFIER], ORIGIN)
    assert opened.checkpoint == HEAD
    assert [s.name for s in opened.verified] == [ORIGIN]
    assert [s.name for s in opened.unknown] == ["other"]
    assert (
        len(open_note(note.encode(), [VERIFIER, Ed25519Verifier(OTHER.verifier_key)]).verified) == 2
    )

    forged = NoteSignature(ORIGIN, SIGNER.key_id, bytes(64))
    with pytest.raises(BadSignature, match=SIGNER.key_id.hex()):
        open_note(SignedNote(note.text, (*note.signatures, forged)).encode(), [VERIFIER])
    with pytest.raises(NotSigned, match=ORIGIN):
        open_note(sign_note(HEAD.encode(), [OTHER]).encode(), [VERIFIER])
    with pytest.raises(InvalidInput, match="two keys"):
        open_note(NOTE, [VERIFIER, Ed25519Verifier(SIGNER.verifier_key)])
    with pytest.raises(InvalidProof, match="not of 'another'"):
        open_checkpoint(NOTE, [VERIFIER], "another")


def test_k2_a_key_of_the_same_name_or_id_is_another_key() -> None:
    note = parse_note(NOTE)
    (signature,) = note.signatures
    for changed in (
        NoteSignature("elsewhere", signature.key_id, signature.signature),
        NoteSignature(signature.name, b"\0\0\0\0", signature.signature),
    ):
        with pytest.raises(NotSigned):
            open_note(SignedNote(note.text, (changed,)).encode(), [VERIFIER])


def test_k2_signatures_are_added_once() -> None:
    note = parse_note(NOTE)
    more = sign_note(note.text, [SIGNER, OTHER])
    assert [s.name for s in note.and_signed(more.signatures).signatures] == [ORIGIN, "other"]


def test_k3_a_cosignature_signs_the_time_too() -> None:
    witness = Ed25519Cosigner("witness.example", private_key(b"\x02" * 32), lambda: 1679315147)
    note = sign_note(HEAD.encode(), [SIGNER, witness])
    verifier = Ed25519Verifier.parse(str(witness.verifier_key))
    opened = open_note(note.encode(), [VERIFIER, verifier])
    time, signature = split_cosignature(opened.verified[1].signature)
    assert time == 1679315147
    Ed25519Verifier(VerifierKey("plain", 1, witness.verifier_key.public_key))._public.verify(
        signature, b"cosignature/v1\ntime 1679315147\n" + HEAD.encode().encode()
    )
    line = opened.verified[1]
    later = NoteSignature(line.name, line.key_id, (time + 1).to_bytes(8, "big") + signature)
    for wrong in (later, NoteSignature(line.name, line.key_id, signature)):
        with pytest.raises(BadSignature):
            open_note(SignedNote(note.text, (wrong,)).encode(), [VERIFIER, verifier])
    with pytest.raises(InvalidInput):
        cosigned_message(-1, b"")


def lines(count: int) -> bytes:
    return b"".join(b"\xe2\x80\x94 k%d AAAAAAE=\n" % number for number in range(count))


MALFORMED_NOTES = {
    "empty": b"",
    "no signature": b"text\n\n",
    "no blank line": b"text\n" + lines(1),
    "no end": b"text\n\n" + lines(1)[:-1],
    "carriage return": b"text\r\n\n" + lines(1),
    "tab": b"te\txt\n\n" + lines(1),
    "zero": b"te\0xt\n\n" + lines(1),
    "not UTF-8": b"te\xffxt\n\n" + lines(1),
    "surrogate": b"te\xed\xa0\x80xt\n\n" + lines(1),
    "another dash": b"text\n\n- k AAAAAAE=\n",
    "no name": b"text\n\n\xe2\x80\x94  AAAAAAE=\n",
    "a plus": b"text\n\n\xe2\x80\x94 a+b AAAAAAE=\n",
    "a Unicode space": "text\n\n— a\u2003b AAAAAAE=\n".encode(),
    "no base64": b"text\n\n\xe2\x80\x94 k\n",
    "bits behind": b"text\n\n\xe2\x80\x94 k AAAAAAF=\n",
    "no padding": b"text\n\n\xe2\x80\x94 k AAAAAAE\n",
    "URL alphabet": b"text\n\n\xe2\x80\x94 k AAAA_-E=\n",
    "a space behind": b"text\n\n\xe2\x80\x94 k AAAAAAE= \n",
    "too short": b"text\n\n\xe2\x80\x94 k AAAAAA==\n",
    "too many": b"text\n\n" + lines(17),
    "too long": b"x" * 65_536 + b"\n\n" + lines(1),
}


@pytest.mark.parametrize("data", MALFORMED_NOTES.values(), ids=MALFORMED_NOTES.keys())
def test_k2_a_malformed_note_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedProof):
        parse_note(data)


def test_k2_sixteen_signatures_are_accepted_and_text_may_have_empty_lines() -> None:
    note = parse_note(b"text\n\nmore\n\n" + lines(16))
    assert (note.text, len(note.signatures)) == ("text\n\nmore\n", 16)
    with pytest.raises(MalformedProof):
        parse_signatures("")


B64 = b64encode(bytes(32)).decode()
MALFORMED_CHECKPOINTS = {
    "two lines": "o\n1\n",
    "no end": f"o\n1\n{B64}",
    "empty origin": f"\n1\n{B64}\n",
    "leading zero": f"o\n01\n{B64}\n",
    "sign": f"o\n+1\n{B64}\n",
    "space": f"o\n 1\n{B64}\n",
    "other digits": f"o\n\u0661\n{B64}\n",
    "no size": f"o\n\n{B64}\n",
    "too large": f"o\n{2**63}\n{B64}\n",
    "short hash": f"o\n1\n{b64encode(bytes(31)).decode()}\n",
    "empty extension": f"o\n1\n{B64}\n\n",
    "empty tree": f"o\n0\n{B64}\n",
    "surrogate": f"\ud800\n1\n{B64}\n",
}


@pytest.mark.parametrize("text", MALFORMED_CHECKPOINTS.values(), ids=MALFORMED_CHECKPOINTS.keys())
def test_k2_a_malformed_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(MalformedProof):
        parse_checkpoint(text)


def test_k2_checkpoints_have_extensions_and_sizes_up_to_the_end() -> None:
    full = Checkpoint("o", 2**63 - 1, bytes(32), ("one", "two"))
    assert parse_checkpoint(full.encode()) == full
    for wrong in (Checkpoint("a\nb", 1, bytes(32)), Checkpoint("o", -1, bytes(32))):
        with pytest.raises(MalformedProof):
            wrong.encode()
    with pytest.raises(MalformedProof):
        SignedNote("no newline", (NoteSignature("k", bytes(4), b"s"),)).encode()


@pytest.mark.parametrize(
    "text",
    [
        "name",
        "name+00000000+AQ==",
        GO_KEY.replace("c74f20a3", "c74f20a4"),
        GO_KEY.replace("c74f20a3", "C74F20A3"),
        GO_KEY.replace("+AR", "+Ah"),
        "a b" + GO_KEY,
        "+" + GO_KEY.partition("+")[2],
        "name+00000000+",
        GO_KEY + "\n",
    ],
)
def test_k2_a_malformed_verifier_key_is_refused(text: str) -> None:
    with pytest.raises(MalformedProof):
        parse_verifier_key(text)


def test_k2_a_proof_proves_its_leaf_alone() -> None:
    proof = parse_inclusion(PROOF)
    assert proof.check(LEAVES[3], [VERIFIER], ORIGIN).checkpoint == HEAD
    with pytest.raises(InvalidProof):
        proof.check(LEAVES[4], [VERIFIER], ORIGIN)
    assert PROOF.startswith(b"c2sp.org/tlog-proof@v1\nindex 3\n")
    more = InclusionProof(3, PATH, NOTE, extra=b"context")
    assert parse_inclusion(more.encode()) == more
    assert more.encode().split(b"\n")[1] == b"extra Y29udGV4dA=="
    alone = InclusionProof(0, (), NOTE)
    assert parse_inclusion(alone.encode()) == alone


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tlog-proof@v1", "tlog-proof@v2"),
        ("index 3", "index 03"),
        ("index 3", "Index 3"),
        ("index 3\n", ""),
        ("index 3\n", "index 3\r\n"),
        ("index 3\n", "extra \nindex 3\n"),
        ("index 3\n", "extra YQ==\nextra YQ==\nindex 3\n"),
        ("=\n", "= \n"),
        ("\n\n", "\n"),
        ("index 3\n", "index 3\n" + 63 * f"{B64}\n"),
    ],
)
def test_k2_a_malformed_proof_is_refused(old: str, new: str) -> None:
    with pytest.raises(MalformedProof):
        parse_inclusion(PROOF.decode().replace(old, new, 2 if old == "\n\n" else 1).encode())


def test_k2_the_limits_of_proofs() -> None:
    with pytest.raises(MalformedProof, match="more than"):
        parse_inclusion(PROOF + bytes(300_000))
    with pytest.raises(MalformedProof):
        InclusionProof(-1, PATH, NOTE).encode()
    with pytest.raises(MalformedProof):
        WitnessRequest(1, (b"short",), NOTE).encode()


def test_k2_the_request_to_a_witness() -> None:
    request = parse_witness_request(REQUEST)
    assert (request.old, request.checkpoint) == (7, NOTE)
    assert REQUEST.startswith(b"old 7\n")
    with pytest.raises(MalformedProof):
        parse_witness_request(REQUEST.replace(b"old 7", b"new 7"))


@given(st.sampled_from([NOTE, PROOF, REQUEST]), st.data())
def test_k2_every_changed_byte_is_noticed(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(data) - 1))
    byte = draw.draw(st.integers(0, 255).filter(lambda b: b != data[at]))
    changed = data[:at] + bytes([byte]) + data[at + 1 :]
    with pytest.raises((InvalidProof, MalformedProof)):
        check(changed, data)


def check(changed: bytes, original: bytes) -> None:
    """Check what was a note, a proof or a request."""
    if original is NOTE:
        open_checkpoint(changed, [VERIFIER], ORIGIN)
    elif original is PROOF:
        parse_inclusion(changed).check(LEAVES[3], [VERIFIER], ORIGIN)
    else:
        request = parse_witness_request(changed)
        head = open_checkpoint(request.checkpoint, [VERIFIER], ORIGIN).checkpoint
        old = naive_tree.head(LEAVES[: request.old])
        check_consistency(request.old, old, head.size, head.root, request.hashes)


@given(st.binary(max_size=300))
def test_k2_any_bytes_are_refused_or_written_back_the_same(data: bytes) -> None:
    try:
        note = parse_note(data)
    except MalformedProof:
        return
    assert note.encode() == data


@given(st.text(max_size=40))
def test_k2_any_text_as_a_checkpoint_is_refused_or_written_back(text: str) -> None:
    try:
        checkpoint = parse_checkpoint(text)
    except MalformedProof:
        return
    assert checkpoint.encode() == text


def test_s4_a_private_key_does_not_show() -> None:
    seed = bytes(range(32))
    key = Ed25519PrivateKey.from_private_bytes(seed)
    for one in (Ed25519Signer("n", key), Ed25519Cosigner("n", key, lambda: 0)):
        assert "n+" in repr(one)
        assert b64encode(seed).decode()[:20] not in repr(one)
        assert seed.hex()[:20] not in repr(one)
    with pytest.raises(InvalidInput):
        private_key(b"short")
