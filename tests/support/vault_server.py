"""A server that follows the documented HTTP API of Vault's transit engine, on the loopback interface.

It is not Vault: neither Vault nor OpenBao can be installed from the registries that these tests use. It
encrypts in earnest, and is talked to in the tests by ``hvac``, too, which knows nothing of this project.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from aws_servers import serving
from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat
from cryptography.x509.oid import NameOID

TOKEN = "hvs.a-token-of-the-tests"
Answer = tuple[int, Any]


@dataclass
class TransitKey:
    """A key with its versions, the first at 0."""

    kind: str = "aes256-gcm96"
    versions: list[bytes] = field(default_factory=lambda: [secrets.token_bytes(32)])
    least: int = 1

    def shown(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "type": self.kind,
            "derived": False,
            "keys": {
                str(at): 1_700_000_000 + at for at in range(self.least, len(self.versions) + 1)
            },
            "latest_version": len(self.versions),
            "min_decryption_version": self.least,
            "min_encryption_version": 0,
            "supports_encryption": True,
        }


@dataclass
class VaultServer:
    """The keys by mount and name; ``sealed``, ``old`` and ``active`` change what it does."""

    keys: dict[str, TransitKey] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    namespace: str | None = None
    sealed: bool = False
    knows_associated_data: bool = True
    active: str | None = None
    """The address of the active server, for one that stands by."""
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def __call__(self, environ: Mapping[str, Any], start_response: Any) -> list[bytes]:
        path = str(environ["PATH_INFO"])
        self.asked.append(f"{environ['REQUEST_METHOD']} {path}")
        if self.active:
            start_response("307 Temporary Redirect", [("Location", self.active + path)])
            return []
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        status, document = self._answered(environ, path, json.loads(body or b"{}"))
        if status == 204:
            start_response("204 No Content", [])
            return []
        start_response(f"{status} said", [("Content-Type", "application/json")])
        return [json.dumps(document).encode()]

    def _answered(self, environ: Mapping[str, Any], path: str, body: Any) -> Answer:
        if self.sealed:
            return 503, {"errors": ["Vault is sealed"]}
        if environ.get("HTTP_X_VAULT_TOKEN") not in self.tokens:
            return 403, {"errors": ["permission denied"]}
        if environ.get("HTTP_X_VAULT_NAMESPACE") != self.namespace:
            return 404, {"errors": ["no handler for route"]}
        found = re.fullmatch(r"/v1/(.+)/(keys|encrypt|decrypt)/([^/]+)(?:/(rotate|config))?", path)
        if found is None:
            return 404, {"errors": [f"no handler for route {path}"]}
        mount, what, name, then = found.groups()
        return self._done(
            environ["REQUEST_METHOD"], f"{mount}/{name}", f"{what} {then or ''}".strip(), body
        )

    def _done(self, method: str, place: str, what: str, body: Any) -> Answer:
        key = self.keys.get(place)
        if what == "keys" and method in {"POST", "PUT"}:
            self.keys.setdefault(place, TransitKey(body.get("type", "aes256-gcm96")))
            return 204, None
        if key is None and what == "encrypt":  # the documented upsert
            key = self.keys[place] = TransitKey()
        if key is None:
            return (
                (400, {"errors": ["encryption key not found"]})
                if what == "decrypt"
                else (
                    404,
                    {"errors": []},
                )
            )
        if what == "keys rotate":
            key.versions.append(secrets.token_bytes(32))
        if what == "keys config":
            key.least = body["min_decryption_version"]
        if what.startswith("keys"):
            return 200, {"data": key.shown(place.rpartition("/")[2])}
        return self._encrypted(key, body) if what == "encrypt" else self._decrypted(key, body)

    def _data(self, body: Any) -> bytes:
        text = body.get("associated_data") if self.knows_associated_data else None
        return base64.b64decode(text or "")

    def _encrypted(self, key: TransitKey, body: Any) -> Answer:
        version = body.get("key_version") or len(key.versions)
        if not 1 <= version <= len(key.versions):
            return 400, {"errors": ["requested version for encryption is too new"]}
        nonce = secrets.token_bytes(12)
        plain = base64.b64decode(body["plaintext"])
        sealed = nonce + AESGCM(key.versions[version - 1]).encrypt(nonce, plain, self._data(body))
        text = f"vault:v{version}:{base64.b64encode(sealed).decode()}"
        return 200, {"data": {"ciphertext": text, "key_version": version}}

    def _decrypted(self, key: TransitKey, body: Any) -> Answer:
        found = re.fullmatch(r"vault:v(\d+):(.+)", body["ciphertext"])
        if found is None:
            return 400, {"errors": ["invalid ciphertext: no prefix"]}
        version = int(found[1])
        if version > len(key.versions):
            return 400, {"errors": ["invalid ciphertext: version is too new"]}
        if version < key.least:
            return 400, {
                "errors": ["ciphertext or signature version is disallowed by policy (too old)"]
            }
        try:
            sealed = base64.b64decode(found[2])
            plain = AESGCM(key.versions[version - 1]).decrypt(
                sealed[:12], sealed[12:], self._data(body)
            )
        except (InvalidTag, ValueError):
            return 400, {"errors": ["cipher: message authentication failed"]}
        return 200, {"data": {"plaintext": base64.b64encode(plain).decode()}}


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for the loopback address, which signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@contextmanager
def running_vault() -> Iterator[VaultServer]:
    """A server that is ended with the context."""
    server = VaultServer()
    with serving(server) as server.url:
        yield server
