"""K2, K3: the signatures of a bundle's checkpoints, of the log's keys and of witnesses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from bundles import Keeper, Members, check, zipped
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from compaction_ledger.bundle_verifier import LOG_KEY, WITNESS_KEY, BundleError, parse_key
from compaction_ledger.domain.proof.checkpoints import Checkpoint
from compaction_ledger.domain.proof.notes import (
    MAX_SIGNATURES,
    NoteSignature,
    SignedNote,
    parse_note,
    sign_note,
)
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Cosigner, Ed25519Signer


def signer(name: str) -> Ed25519Signer:
    return Ed25519Signer(name, Ed25519PrivateKey.generate())


def refused(members: Members, keys: list[str], witnesses: list[str] | None = None) -> BundleError:
    with pytest.raises(BundleError) as caught:
        check(zipped(members), keys, witnesses or [])
    return caught.value


def with_note(members: Members, note: SignedNote) -> Members:
    return {**members, "checkpoint": f"{note.text}\n{_lines(note)}".encode()}


def _lines(note: SignedNote) -> str:
    return "".join(signature.line() for signature in note.signatures)


def test_another_key_did_not_sign(keeper: Keeper, whole: Members) -> None:
    error = refused(whole, [str(signer(keeper.origin).verifier_key)])
    assert (error.place, error.message) == (
        "checkpoint",
        f"not signed by any given key of {keeper.origin}",
    )


def test_a_key_of_another_name_does_not_count(keeper: Keeper, whole: Members) -> None:
    other = signer("somebody.example")
    text = keeper.published[-1].checkpoint.encode()
    signed = with_note(whole, sign_note(text, [other]))
    assert refused(signed, [str(other.verifier_key)]).place == "checkpoint"


def test_older_checkpoints_must_be_signed_as_well(keeper: Keeper, whole: Members) -> None:
    other = signer(keeper.origin)
    note = sign_note(keeper.published[0].checkpoint.encode(), [other]).encode()
    changed = {**whole, "checkpoints/11": note}
    assert refused(changed, [keeper.key]).place == "checkpoints/11"
    both = check(zipped(changed), [keeper.key, str(other.verifier_key)])  # the log's former key
    assert both.manifest.checkpoints == [11, 34]


def test_a_rewritten_log_is_not_a_continuation(keeper: Keeper, whole: Members) -> None:
    """Whoever has the log's key can sign anything, but not make an older head its beginning (K1)."""
    wrong = Checkpoint(keeper.origin, 11, bytes(32))
    changed = {**whole, "checkpoints/11": sign_note(wrong.encode(), [keeper.signer]).encode()}
    error = refused(changed, [keeper.key])
    assert error.place == "consistency.jsonl, line 1"
    assert "not a prefix" in error.message


def test_another_root_is_refused(keeper: Keeper, whole: Members, one: Members) -> None:
    wrong = replace(keeper.published[-1].checkpoint, root=bytes(32))
    note = sign_note(wrong.encode(), [keeper.signer]).encode()
    for members in (whole, one):
        changed = {**members, "checkpoint": note}
        assert refused(changed, [keeper.key]).place.startswith("consistency.jsonl")


def test_a_witness_must_have_signed_if_it_is_named(keeper: Keeper, whole: Members) -> None:
    witness = str(keeper.witness.verifier_key)
    other = str(Ed25519Cosigner("w2.example", Ed25519PrivateKey.generate(), lambda: 1).verifier_key)
    assert len(check(zipped(whole), [keeper.key], [witness]).checkpoint.witnesses) == 1  # K3
    assert (
        "not cosigned by the witness w2" in refused(whole, [keeper.key], [witness, other]).message
    )


def test_the_time_is_signed_as_well(keeper: Keeper, whole: Members) -> None:
    note = parse_note(whole["checkpoint"])
    own, cosigned = note.signatures
    later = replace(cosigned, signature=b"\0" * 7 + b"\1" + cosigned.signature[8:])
    changed = with_note(whole, SignedNote(note.text, (own, later)))
    witness = str(keeper.witness.verifier_key)
    assert "does not hold" in refused(changed, [keeper.key], [witness]).message


def test_a_wrong_signature_of_a_known_key_is_refused_beside_a_good_one(
    keeper: Keeper, whole: Members
) -> None:
    newer = signer(keeper.origin)
    note = parse_note(whole["checkpoint"])
    wrong = NoteSignature(newer.name, newer.key_id, bytes(64))
    changed = with_note(whole, SignedNote(note.text, (*note.signatures, wrong)))
    keys = [keeper.key, str(newer.verifier_key)]
    assert "does not hold" in refused(changed, keys).message
    check(zipped(changed), [keeper.key])  # of an unknown key it is passed over (K2)


def test_at_most_sixteen_signatures(keeper: Keeper, whole: Members) -> None:
    text = keeper.published[-1].checkpoint.encode()
    many = [keeper.signer, *(signer("x.example") for _ in range(MAX_SIGNATURES))]
    check(zipped(with_note(whole, sign_note(text, many[:-1]))), [keeper.key])
    error = refused(with_note(whole, sign_note(text, many)), [keeper.key])
    assert error.message == "17 signatures, at most 16 are allowed"


def test_two_signatures_of_one_key(keeper: Keeper, whole: Members) -> None:
    text = keeper.published[-1].checkpoint.encode()
    changed = with_note(whole, sign_note(text, [keeper.signer, keeper.signer]))
    assert "two signatures" in refused(changed, [keeper.key]).message


def cut(note: str) -> str:
    return note[:-1]


MALFORMED: dict[str, Callable[[str], str]] = {
    "no signature": lambda note: note.partition("\n\n")[0] + "\n\n",
    "no blank line": lambda note: note.replace("\n\n", "\n"),
    "cut": cut,
    "an extension": lambda note: note.replace("\n\n", "\nmore\n\n"),
    "two blank lines": lambda note: note.replace("\n\n", "\n\n\n"),
    "a size with a zero": lambda note: note.replace("\n44\n", "\n044\n"),
    "a size in other digits": lambda note: note.replace("\n44\n", "\n٤٤\n"),
    "a root in another form": lambda note: note.replace("=\n\n", "\n\n"),
    "a return": lambda note: note.replace("\n\n", "\r\n\n"),
    "a control character": lambda note: note.replace("\n44", "\x07\n44"),
    "a wrong dash": lambda note: note.replace("— ", "- "),
    "a line separator": lambda note: note.replace("\n44", "\u2028\n44"),
    "a short signature": lambda note: note + "— x AAAA\n",
    "a signature in another form": lambda note: note + "— x AAAAAAB=\n",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_checkpoints_are_refused(keeper: Keeper, whole: Members, case: str) -> None:
    note = whole["checkpoint"].decode()
    changed = MALFORMED[case](note)
    assert changed != note
    assert refused({**whole, "checkpoint": changed.encode()}, [keeper.key]).place == "checkpoint"


def test_a_checkpoint_that_is_no_text(keeper: Keeper, whole: Members) -> None:
    assert refused({**whole, "checkpoint": b"\xff" * 100}, [keeper.key]).place == "checkpoint"
    assert refused({**whole, "checkpoint": b"x" * 2**21}, [keeper.key]).place == "checkpoint"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        "name+12345678+AAAA",
        "+12345678+AAAA",
        "na me+12345678+AAAA",
        "name+12345678",
        "name+12345678+????",
        "\ud800+12345678+AAAA",
    ],
)
def test_malformed_keys_are_refused(text: str) -> None:
    with pytest.raises(BundleError, match="verifier key"):
        parse_key(text, LOG_KEY)


def test_a_key_is_of_its_type(keeper: Keeper) -> None:
    assert parse_key(keeper.key, LOG_KEY).name == keeper.origin
    with pytest.raises(BundleError, match="a key of type 1, where one of type 4 is needed"):
        parse_key(keeper.key, WITNESS_KEY)
    changed = keeper.key.replace("+", "+0", 1)
    with pytest.raises(BundleError, match="its id is not the hash"):
        parse_key(changed, LOG_KEY)
