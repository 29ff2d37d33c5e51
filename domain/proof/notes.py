"""Signed notes: a text and who signed it, byte for byte as C2SP ``signed-note`` says (K2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from compaction_ledger.domain.errors import BadSignature, InvalidInput, MalformedProof, NotSigned
from compaction_ledger.domain.proof.text import (
    check_name,
    decode_base64,
    decode_text,
    encode_base64,
)

MAX_NOTE = 64 * 1024
MAX_SIGNATURES = 16
MARK = "— "

ED25519 = 0x01
COSIGNATURE = 0x04
"""Signature types: Ed25519 of the note's text, and that of C2SP ``tlog-cosignature`` with a time."""

_KEY_SIZES = {ED25519: 32, COSIGNATURE: 32}


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: the key's name, its id (4 bytes) and what it made."""

    name: str
    key_id: bytes
    signature: bytes

    def line(self) -> str:
        """The line, with its newline."""
        return f"{MARK}{self.name} {encode_base64(self.key_id + self.signature)}\n"


@dataclass(frozen=True, slots=True)
class SignedNote:
    """A text, which ends in a newline, and its signatures. That it was parsed says nothing of who signed."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def encode(self) -> bytes:
        """The note's bytes. Raises :class:`MalformedProof` for what could not be parsed again."""
        data = f"{self.text}\n{''.join(s.line() for s in self.signatures)}".encode()
        if parse_note(data) != self:
            raise MalformedProof("this text cannot be that of a note", place="note")
        return data

    def and_signed(self, signatures: Iterable[NoteSignature]) -> SignedNote:
        """The note with further signatures; one that it has already is not repeated."""
        return SignedNote(self.text, tuple(dict.fromkeys((*self.signatures, *signatures))))


class NoteSigner(Protocol):
    """A private key with a name. :attr:`verifier_key` is what others check its signatures with."""

    @property
    def name(self) -> str: ...
    @property
    def key_id(self) -> bytes: ...
    @property
    def verifier_key(self) -> VerifierKey: ...
    def sign(self, text: bytes) -> bytes:
        """The signature of a note's text, as it stands behind the key id."""
        ...


class NoteVerifier(Protocol):
    """A public key with a name."""

    @property
    def name(self) -> str: ...
    @property
    def key_id(self) -> bytes: ...
    def verify(self, text: bytes, signature: bytes) -> bool:
        """Whether this key made that signature of that text."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedNote:
    """A note that at least one known key has signed. ``verified`` are the signatures of known keys."""

    text: str
    verified: tuple[NoteSignature, ...]
    unknown: tuple[NoteSignature, ...]


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key as it is handed on: ``name+id+base64(type || key)``."""

    name: str
    signature_type: int
    public_key: bytes

    def __post_init__(self) -> None:
        check_name(self.name, "verifier key")
        if len(self.public_key) != _KEY_SIZES.get(self.signature_type):
            raise MalformedProof("the type or the length of the key is unknown", place=self.name)

    @property
    def key_id(self) -> bytes:
        """The id that its signatures carry."""
        return key_id(self.name, self.signature_type, self.public_key)

    def __str__(self) -> str:
        typed = bytes([self.signature_type]) + self.public_key
        return f"{self.name}+{self.key_id.hex()}+{encode_base64(typed)}"


def key_id(name: str, signature_type: int, public_key: bytes) -> bytes:
    """``SHA-256(name || 0x0A || type || public key)[:4]``."""
    named = name.encode() + b"\n" + bytes([signature_type])
    return sha256(named + public_key).digest()[:4]


def parse_verifier_key(text: str) -> VerifierKey:
    """The key in ``name+id+base64``. Raises :class:`MalformedProof`, also for an id that is not the key's."""
    parts = text.split("+", 2)
    if len(parts) != 3:
        raise MalformedProof("a verifier key is name+id+base64", place="verifier key")
    name, identifier, encoded = parts
    typed = decode_base64(encoded, "verifier key")
    if not typed:
        raise MalformedProof("the key is empty", place="verifier key")
    key = VerifierKey(name, typed[0], typed[1:])
    if key.key_id.hex() != identifier:
        raise MalformedProof(
            f"the id is {identifier!r}, that of the key is {key.key_id.hex()}", place="verifier key"
        )
    return key


def sign_note(text: str, signers: Sequence[NoteSigner]) -> SignedNote:
    """The note of ``text``, signed by all of ``signers``."""
    data = text.encode()
    return SignedNote(text, tuple(NoteSignature(s.name, s.key_id, s.sign(data)) for s in signers))


def parse_note(data: bytes) -> SignedNote:
    """The note in ``data``, its signatures unchecked. Raises :class:`MalformedProof`."""
    whole = decode_text(data, MAX_NOTE, "note")
    text, blank, lines = whole.rpartition("\n\n")
    if not blank or not lines:
        raise MalformedProof("there is no signature", place="note")
    return SignedNote(text + "\n", parse_signatures(lines))


def parse_signatures(lines: str) -> tuple[NoteSignature, ...]:
    """Signature lines, each ended by a newline. Raises :class:`MalformedProof`."""
    if not lines.endswith("\n") or len(lines) > MAX_NOTE:
        raise MalformedProof("this is not a list of signature lines", place="note")
    each = lines[:-1].split("\n")
    if len(each) > MAX_SIGNATURES:
        raise MalformedProof(f"more than {MAX_SIGNATURES} signatures", place="note")
    return tuple(_parse_signature(line, number) for number, line in enumerate(each, 1))


def _parse_signature(line: str, number: int) -> NoteSignature:
    place = f"signature {number}"
    name, space, encoded = line.removeprefix(MARK).partition(" ")
    if not line.startswith(MARK) or not space:
        raise MalformedProof("a signature line is a dash, a name and base64", place=place)
    check_name(name, place)
    data = decode_base64(encoded, place)
    if len(data) < 5:
        raise MalformedProof("this is too short for a signature", place=place)
    return NoteSignature(name, data[:4], data[4:])


def open_note(data: bytes, verifiers: Iterable[NoteVerifier]) -> OpenedNote:
    """The note in ``data``, if a known key has signed it (K2).

    Signatures of unknown keys are set aside. Raises :class:`BadSignature` where that of a known key does not
    hold, :class:`NotSigned` where there is none, and :class:`MalformedProof`.
    """
    return check_note(parse_note(data), verifiers)


def check_note(note: SignedNote, verifiers: Iterable[NoteVerifier]) -> OpenedNote:
    """As :func:`open_note`, of a note that is parsed."""
    known: dict[tuple[str, bytes], NoteVerifier] = {}
    for verifier in verifiers:
        if known.setdefault((verifier.name, verifier.key_id), verifier) is not verifier:
            raise InvalidInput(f"two keys of name {verifier.name!r} have one id")
    text = note.text.encode()
    verified: list[NoteSignature] = []
    unknown: list[NoteSignature] = []
    for signature in note.signatures:
        found = known.get((signature.name, signature.key_id))
        if found is None:
            unknown.append(signature)
        elif found.verify(text, signature.signature):
            verified.append(signature)
        else:
            raise BadSignature(signature.name, signature.key_id)
    if not verified:
        raise NotSigned(tuple(sorted({name for name, _ in known})))
    return OpenedNote(note.text, tuple(verified), tuple(unknown))
