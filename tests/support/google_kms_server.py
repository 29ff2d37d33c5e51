"""A server that follows the documented REST API of Google Cloud KMS, on the loopback interface.

It is not Google's: there is no emulator of theirs. Google's own client talks to it; it encrypts in earnest.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import google_crc32c
from aws_servers import serving
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.auth.credentials import AnonymousCredentials
from google.cloud import kms_v1
from google.cloud.kms_v1.services.key_management_service.transports import (
    KeyManagementServiceRestTransport,
)

RING = "projects/p-1/locations/europe-west1/keyRings/ring"
Answer = tuple[int, Any]

# The numbers of google.cloud.kms.v1.CryptoKeyVersion.CryptoKeyVersionState.
ENABLED, DISABLED, DESTROYED, DESTROY_SCHEDULED, PENDING_GENERATION = 1, 2, 3, 4, 5


@dataclass
class Version:
    """A version of a key. ``pending`` times it is shown as not yet made."""

    state: int = ENABLED
    pending: int = 0
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))


@dataclass
class CryptoKey:
    """A key with its versions, the first at 0."""

    versions: list[Version] = field(default_factory=lambda: [Version()])
    primary: int = 1
    purpose: int = 1  # ENCRYPT_DECRYPT


@dataclass
class GoogleServer:
    """The keys by their names. ``garble`` damages what it answers; ``denies`` refuses all."""

    keys: dict[str, CryptoKey] = field(default_factory=dict)
    garble: str | None = None
    denies: int | None = None
    pending: int = 0
    url: str = ""

    def __call__(self, environ: Mapping[str, Any], start_response: Any) -> list[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        status, document = self._answered(
            environ["REQUEST_METHOD"], environ["PATH_INFO"], json.loads(body or b"{}")
        )
        start_response(f"{status} said", [("Content-Type", "application/json")])
        return [json.dumps(document).encode()]

    def _answered(self, method: str, path: str, body: Any) -> Answer:
        if self.denies:
            return _error(self.denies, "PERMISSION_DENIED", "Permission denied on resource.")
        found = re.fullmatch(
            r"/v1/(projects/.+?/cryptoKeys/[^/:]+)(?:/cryptoKeyVersions(?:/(\d+))?)?(?::(\w+))?",
            path,
        )
        key = self.keys.get(found[1]) if found else None
        if found is None or key is None:
            return _error(404, "NOT_FOUND", f"{path} not found.")
        number = int(found[2]) if found[2] else None
        if number is not None and not 1 <= number <= len(key.versions):
            return _error(404, "NOT_FOUND", f"{path} not found.")
        return self._done(found[1], key, number, found[3] or f"{method} {path}", body)

    def _done(self, name: str, key: CryptoKey, number: int | None, what: str, body: Any) -> Answer:
        if what == "encrypt":
            return self._encrypted(name, key, number or key.primary, body)
        if what == "decrypt":
            return self._decrypted(key, body)
        if what == "updatePrimaryVersion":
            key.primary = int(body["cryptoKeyVersionId"])
        elif what.startswith("POST"):
            key.versions.append(Version(pending=self.pending))
            return 200, _shown(name, key, len(key.versions))
        elif number is not None:
            return 200, _shown(name, key, number)
        elif what.endswith("/cryptoKeyVersions"):
            versions = [
                _shown(name, key, at)
                for at, version in enumerate(key.versions, 1)
                if version.state == ENABLED
            ]
            return 200, {"cryptoKeyVersions": versions[::-1]}
        primary = _shown(name, key, key.primary) if key.primary else {}
        return 200, {"name": name, "purpose": key.purpose, "primary": primary}

    def _encrypted(self, name: str, key: CryptoKey, number: int, body: Any) -> Answer:
        version = key.versions[number - 1]
        if version.state != ENABLED:
            return _error(400, "FAILED_PRECONDITION", f"{name} is not enabled.")
        nonce, plain, data = secrets.token_bytes(12), _bytes(body["plaintext"]), _additional(body)
        sealed = (
            number.to_bytes(4, "big") + nonce + AESGCM(version.secret).encrypt(nonce, plain, data)
        )
        fine = self.garble != "encrypt request"
        return 200, {
            "name": f"{name}/cryptoKeyVersions/{number}",
            "ciphertext": _text(sealed),
            "ciphertextCrc32c": str(_crc(sealed) ^ (self.garble == "encrypt answer")),
            "verifiedPlaintextCrc32c": fine and int(body["plaintextCrc32c"]) == _crc(plain),
            "verifiedAdditionalAuthenticatedDataCrc32c": fine
            and int(body["additionalAuthenticatedDataCrc32c"]) == _crc(data),
        }

    def _decrypted(self, key: CryptoKey, body: Any) -> Answer:
        sealed, data = _bytes(body["ciphertext"]), _additional(body)
        assert int(body["ciphertextCrc32c"]) == _crc(sealed)
        number = int.from_bytes(sealed[:4], "big")
        if not 1 <= number <= len(key.versions):
            return _error(400, "INVALID_ARGUMENT", "Decryption failed: the ciphertext is invalid.")
        version = key.versions[number - 1]
        if version.state != ENABLED:
            return _error(400, "FAILED_PRECONDITION", f"version {number} is not enabled.")
        try:
            plain = AESGCM(version.secret).decrypt(sealed[4:16], sealed[16:], data)
        except (InvalidTag, ValueError):
            return _error(400, "INVALID_ARGUMENT", "Decryption failed: the ciphertext is invalid.")
        return 200, {
            "plaintext": _text(plain),
            "plaintextCrc32c": str(_crc(plain) ^ (self.garble == "decrypt answer")),
            "usedPrimary": number == key.primary,
        }


def _shown(name: str, key: CryptoKey, number: int) -> dict[str, Any]:
    version = key.versions[number - 1]
    state = version.state
    if version.pending:
        version.pending -= 1
        state = PENDING_GENERATION
    return {"name": f"{name}/cryptoKeyVersions/{number}", "state": state}


def _error(code: int, status: str, message: str) -> Answer:
    return code, {"error": {"code": code, "message": message, "status": status}}


def _additional(body: Any) -> bytes:
    return _bytes(body.get("additionalAuthenticatedData", ""))


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/"))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _crc(data: bytes) -> int:
    value: int = google_crc32c.value(data)
    return value


def google_client(url: str) -> Any:
    """Google's own client of the server at ``url``."""
    credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]
    transport = KeyManagementServiceRestTransport(
        host=url.removeprefix("http://"), url_scheme="http", credentials=credentials
    )
    return kms_v1.KeyManagementServiceClient(transport=transport)


@contextmanager
def running_google() -> Iterator[GoogleServer]:
    """A server that is ended with the context."""
    server = GoogleServer()
    with serving(server) as server.url:
        yield server
