"""The signer's keys in files (K1, K2, S4): those that sign, for nobody else to read, and all that signed.

::

    signer-keys      PRIVATE+KEY+<name>+<id>+<base64>, a line for each key that signs; mode 0600
    verifier-keys    <name>+<id>+<base64>, a line for each key that signs or signed
    signer-lock      held while the files are changed
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from compaction_ledger.domain.errors import InvalidInput, UnusableSignerKey
from compaction_ledger.domain.proof.notes import ED25519, VerifierKey, parse_verifier_key
from compaction_ledger.domain.proof.text import decode_base64, encode_base64
from compaction_ledger.infrastructure.proof import files
from compaction_ledger.infrastructure.proof.ed25519 import (
    Ed25519Signer,
    Ed25519Verifier,
    private_key,
)

PRIVATE = "signer-keys"
PUBLIC = "verifier-keys"
LOCK = "signer-lock"
MAX_FILE = 256 * 1024
MAX_ACTIVE = 4
_PREFIX = "PRIVATE+KEY+"


class SignerKeys:
    """The keys that sign the log ``name`` (its origin), in a folder that only its owner reads.

    Whatever is wrong with the files raises :class:`UnusableSignerKey`, which names the file and never says
    what stands in it.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name

    def signers(self) -> Sequence[Ed25519Signer]:
        """The keys that sign, the newest first. The first time one is made, by any number of processes."""
        path = self._folder / PRIVATE
        data = files.read(path, MAX_FILE)
        if data is None:
            files.make_folder(self._folder, 0o700)
            self._check_folder()
            files.create(path, self._written([Ed25519PrivateKey.generate()]), 0o600)
            data = files.read(path, MAX_FILE) or b""
        self._check_folder()
        return self._signers_in(data)

    def verifiers(self) -> Sequence[Ed25519Verifier]:
        """The keys that sign or signed, those that sign first. None is made."""
        return [Ed25519Verifier(key) for key in self.verifier_keys()]

    def verifier_keys(self) -> Sequence[VerifierKey]:
        """As :meth:`verifiers`, to be handed on."""
        return list(dict.fromkeys([*self.active_keys(), *self._public()]))

    def active_keys(self) -> Sequence[VerifierKey]:
        """The public keys of those that sign; none where none was made yet."""
        made = files.read(self._folder / PRIVATE, MAX_FILE) is not None
        return [one.verifier_key for one in self.signers()] if made else []

    def rotate(self, *, overlap: bool = False) -> VerifierKey:
        """Sign with a new key from now on; with ``overlap`` the ones before it go on signing beside it.

        What they signed can be verified for ever: their public keys stay in the list.
        """
        before = self.signers()  # made, if there is none
        with files.locked(self._folder / LOCK):
            files.forget_temporaries(self._folder)
            before = self.signers()
            new = Ed25519PrivateKey.generate()
            signer = Ed25519Signer(self._name, new)
            keep = before if overlap else ()
            if len(keep) >= MAX_ACTIVE:
                raise InvalidInput(f"{MAX_ACTIVE} keys sign already", place="keys")
            self._replace([signer, *before], [new, *(one.private for one in keep)])
            return signer.verifier_key

    def retire(self, key_id: bytes) -> VerifierKey:
        """Sign no more with the key of this id; another one must be left. What it signed stays valid."""
        before = self.signers()
        with files.locked(self._folder / LOCK):
            before = self.signers()
            retired = [one for one in before if one.key_id == key_id]
            left = [one for one in before if one.key_id != key_id]
            if not retired:
                raise InvalidInput(f"no key of the id {key_id.hex()} signs", place="keys")
            if not left:
                raise InvalidInput("it is the only key that signs: rotate instead", place="keys")
            self._replace(before, [one.private for one in left])
            return retired[0].verifier_key

    # --- files ---

    def _replace(
        self, known: Sequence[Ed25519Signer], private: Sequence[Ed25519PrivateKey]
    ) -> None:
        """Write both files. First the public keys: one that never signs does no harm there."""
        public = dict.fromkeys([*(one.verifier_key for one in known), *self._public()])
        files.replace(self._folder / PUBLIC, "".join(f"{key}\n" for key in public).encode())
        files.replace(self._folder / PRIVATE, self._written(private), 0o600)

    def _public(self) -> Sequence[VerifierKey]:
        path = self._folder / PUBLIC
        data = files.read(path, MAX_FILE)
        if data is None:
            return []
        try:
            keys = [parse_verifier_key(line) for line in data.decode().splitlines() if line]
        except (InvalidInput, UnicodeDecodeError) as error:
            raise UnusableSignerKey(f"{path}: {error}") from error
        if any(key.name != self._name for key in keys):
            raise UnusableSignerKey(f"{path}: these are keys of another log than {self._name}")
        return keys

    def _signers_in(self, data: bytes) -> Sequence[Ed25519Signer]:
        path = self._folder / PRIVATE
        try:
            lines = data.decode("ascii").splitlines()
        except UnicodeDecodeError:
            lines = []
        signers = [self._signer_in(line) for line in lines if line]
        if not 0 < len(signers) <= MAX_ACTIVE:
            raise UnusableSignerKey(f"{path}: it must hold 1 to {MAX_ACTIVE} keys")
        return signers

    def _signer_in(self, line: str) -> Ed25519Signer:
        path = self._folder / PRIVATE
        name, _, rest = line.removeprefix(_PREFIX).partition("+")
        identifier, _, encoded = rest.partition("+")
        try:
            seed = decode_base64(encoded, PRIVATE)
            signer = Ed25519Signer(name, private_key(seed[1:]))
        except InvalidInput:
            signer, seed = None, b""
        if (
            signer is None
            or not line.startswith(_PREFIX)
            or seed[0] != ED25519
            or signer.key_id.hex() != identifier
        ):
            raise UnusableSignerKey(f"{path}: a line is not a private key of a note") from None
        if name != self._name:
            raise UnusableSignerKey(f"{path}: this is the key of {name}, the log is {self._name}")
        return signer

    def _written(self, keys: Sequence[Ed25519PrivateKey]) -> bytes:
        lines: list[str] = []
        for key in keys:
            signer = Ed25519Signer(self._name, key)
            secret = encode_base64(bytes([ED25519]) + key.private_bytes_raw())
            lines.append(f"{_PREFIX}{self._name}+{signer.key_id.hex()}+{secret}\n")
        return "".join(lines).encode()

    def _check_folder(self) -> None:
        """Raise unless only the owner can read the keys, and change what is in their folder."""
        for path, forbidden in ((self._folder, 0o022), (self._folder / PRIVATE, 0o077)):
            try:
                mode = stat.S_IMODE(path.stat().st_mode)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise files.translated(error, path) from error
            if mode & forbidden:
                raise UnusableSignerKey(
                    f"{path} has mode {mode:04o}: others could read or replace the key; "
                    f"{'chmod 700' if path == self._folder else 'chmod 600'} it"
                )
