"""A time-stamp authority for tests: `openssl ts -reply` behind a server on the loopback interface."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest

_CONFIG = """
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[stamper]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[tsa]
default_tsa = tsa_config
[tsa_config]
serial = {folder}/serial
crypto_device = builtin
signer_cert = {folder}/stamper.pem
signer_key = {folder}/stamper.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
"""


@dataclass
class TimestampAuthority:
    """An authority with a throwaway root. ``answer`` replaces what it says, when it is set."""

    folder: Path
    url: str = ""
    answer: tuple[int, str, bytes] | None = None
    asked: int = 0
    lock: Lock = field(default_factory=Lock)

    @property
    def root(self) -> Path:
        """The certificate to trust."""
        return self.folder / "root.pem"

    @property
    def setting(self) -> str:
        """How it is named in the settings."""
        return f"{self.url} {self.root}"

    def reply(self, query: bytes) -> bytes:
        """A time stamp for a query."""
        with self.lock:
            self.asked += 1
            (self.folder / "query.tsq").write_bytes(query)
            openssl(
                *("ts", "-reply", "-config", self.folder / "openssl.cnf", "-section", "tsa_config"),
                *("-queryfile", self.folder / "query.tsq", "-out", self.folder / "reply.tsr"),
            )
            return (self.folder / "reply.tsr").read_bytes()

    def accepts(self, note: Path, response: Path) -> bool:
        """What `openssl ts -verify` says of a response."""
        words: list[str | Path] = [
            "ts",
            "-verify",
            "-data",
            note,
            "-in",
            response,
            "-CAfile",
            self.root,
        ]
        done = subprocess.run(["openssl", *words], capture_output=True, check=False)
        return done.returncode == 0


def openssl(*words: str | Path) -> None:
    """Run it."""
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def make_authority(folder: Path) -> TimestampAuthority:
    """Keys and certificates in ``folder``."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    config = folder / "openssl.cnf"
    config.write_text(_CONFIG.format(folder=folder))
    (folder / "serial").write_text("01\n")
    for name in ("root", "stamper"):
        openssl(
            "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", folder / f"{name}.key"
        )
    _certificate(folder, "root", ["-x509"])
    _certificate(
        folder, "stamper", ["-x509", "-CA", folder / "root.pem", "-CAkey", folder / "root.key"]
    )
    return TimestampAuthority(folder)


def _certificate(folder: Path, name: str, how: Sequence[str | Path]) -> None:
    openssl(
        *(
            "req",
            "-new",
            *how,
            "-key",
            folder / f"{name}.key",
            "-subj",
            f"/CN={name}",
            "-days",
            "30",
        ),
        *("-config", folder / "openssl.cnf", "-extensions", name, "-out", folder / f"{name}.pem"),
    )


@contextmanager
def running_authority() -> Iterator[TimestampAuthority]:
    """An authority that answers until the context ends."""
    with tempfile.TemporaryDirectory() as name:
        authority = make_authority(Path(name))

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                query = self.rfile.read(int(self.headers["Content-Length"]))
                status, kind, body = authority.answer or (
                    200,
                    "application/timestamp-reply",
                    authority.reply(query),
                )
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Nothing on stderr."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        authority.url = f"http://127.0.0.1:{server.server_address[1]}/tsa"
        try:
            yield authority
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
