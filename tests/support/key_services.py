"""Every key provider over a keyring or key of its own. What is opened twice is as in two processes."""

from __future__ import annotations

import base64
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from aws_servers import client, fresh_name
from google_kms_server import RING, CryptoKey, GoogleServer, google_client
from vault_server import TOKEN, TransitKey, VaultServer

from compaction_ledger.domain.keys import KeyProvider
from compaction_ledger.infrastructure.keys.aws_kms import AwsKms
from compaction_ledger.infrastructure.keys.file_keyring import FileKeyring
from compaction_ledger.infrastructure.keys.google_kms import GoogleKms
from compaction_ledger.infrastructure.keys.keyring_format import decode
from compaction_ledger.infrastructure.keys.vault import Vault
from compaction_ledger.infrastructure.keys.vault_http import VaultClient

NOBODY = "http://127.0.0.1:9"  # the port of `discard`, where nobody listens


class KeyService(Protocol):
    """A keyring or a key, and another one of the same kind."""

    name: str

    def open(self) -> KeyProvider:
        """The provider, as in another process."""
        ...

    def other(self) -> KeyProvider:
        """A provider of the same kind that has other keys."""
        ...

    def cut_off(self) -> KeyProvider:
        """A provider that was opened and whose service is away."""
        ...

    def secrets(self) -> list[bytes]:
        """What must never be seen: tokens, and key-encryption keys where they are here."""
        ...

    def close(self) -> None: ...


class FileService:
    """A folder."""

    name = "file"

    def __init__(self, folder: Path) -> None:
        self.folder, self._folders = folder, [folder]
        FileKeyring.open(folder, create=True)

    def open(self) -> FileKeyring:
        return FileKeyring.open(self.folder, create=False)

    def other(self) -> FileKeyring:
        self._folders.append(self.folder.with_name(f"other-{len(self._folders)}"))
        return FileKeyring.open(self._folders[-1], create=True)

    def cut_off(self) -> FileKeyring:
        opened = self.other()
        file = self._folders.pop() / "keyring.json"
        file.write_bytes(file.read_bytes() + b" ")
        file.chmod(0o640)
        return opened

    def secrets(self) -> list[bytes]:
        files = [folder / "keyring.json" for folder in self._folders]
        return [one.key for file in files for one in decode(file.read_bytes(), "it")]

    def close(self) -> None:
        """Nothing is open."""


class AwsService:
    """A symmetric key of moto's KMS."""

    name = "aws-kms"

    def __init__(self, url: str) -> None:
        self._stack = ExitStack()
        self.url, self.client = url, self.new_client(url)
        self.key = self.new_key()

    def new_client(self, url: str, **settings: Any) -> Any:
        made = client("kms", url, **settings)
        self._stack.callback(made.close)
        return made

    def new_key(self, **settings: Any) -> str:
        """The ARN of another key."""
        return str(self.client.create_key(**settings)["KeyMetadata"]["Arn"])

    def new_alias(self, key: str) -> str:
        name = f"alias/{fresh_name()}"
        self.client.create_alias(AliasName=name, TargetKeyId=key)
        return name

    def open(self) -> AwsKms:
        return AwsKms(self.client, self.key)

    def other(self) -> AwsKms:
        return AwsKms(self.client, self.new_key())

    def cut_off(self) -> AwsKms:
        return AwsKms(self.new_client(NOBODY, tries=1), self.key)

    def secrets(self) -> list[bytes]:
        return []

    def close(self) -> None:
        self._stack.close()


class GoogleService:
    """A key of the loopback server for Google's API."""

    name = "google-kms"

    def __init__(self, server: GoogleServer) -> None:
        self.server = server
        self.key = self.new_key()

    def new_key(self) -> str:
        name = f"{RING}/cryptoKeys/{fresh_name()}"
        self.server.keys[name] = CryptoKey()
        return name

    def open(self) -> GoogleKms:
        return GoogleKms(google_client(self.server.url), self.key)

    def other(self) -> GoogleKms:
        return GoogleKms(google_client(self.server.url), self.new_key())

    def cut_off(self) -> GoogleKms:
        return GoogleKms(google_client(NOBODY), self.key)

    def secrets(self) -> list[bytes]:
        return []

    def close(self) -> None:
        """The clients close with their sessions."""


class VaultService:
    """A key of the loopback server for Vault's API."""

    name = "vault"

    def __init__(self, server: VaultServer) -> None:
        self.server = server
        self.key = self.new_key()

    def new_key(self) -> str:
        name = f"transit/{fresh_name()}"
        self.server.keys[name] = TransitKey()
        return name

    def open(self) -> Vault:
        return Vault(self._client(self.server.url), self.key)

    def other(self) -> Vault:
        return Vault(self._client(self.server.url), self.new_key())

    def cut_off(self) -> Vault:
        return Vault(self._client(NOBODY), self.key)

    def secrets(self) -> list[bytes]:
        return [TOKEN.encode()]

    def close(self) -> None:
        """Each request has a connection of its own."""

    @staticmethod
    def _client(url: str) -> VaultClient:
        return VaultClient(url, lambda: TOKEN)


@contextmanager
def black_hole() -> Iterator[str]:
    """The address of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def spellings(secret: bytes) -> Iterator[str]:
    """The ways in which a secret is likely to be written down."""
    yield from (secret.hex(), base64.b64encode(secret).decode(), str(secret)[2:-1])
    yield from (base64.b64encode(before + secret).decode()[4:-4] for before in (b"x", b"xx"))


def everything_of(error: BaseException) -> str:
    """An error in words, with all that hangs on it: causes, contexts, and what they hold."""
    seen: list[str] = []
    open_ends: list[Any] = [error]
    known: set[int] = set()
    while open_ends:
        one = open_ends.pop()
        if id(one) in known or len(known) > 5_000:
            continue
        known.add(id(one))
        seen += [repr(one), str(one)]
        if isinstance(one, BaseException):
            open_ends += [one.__cause__, one.__context__, *one.args]
        if isinstance(one, dict):
            open_ends += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set):
            open_ends += [*one]
        elif not isinstance(one, type | str | bytes | int) and not callable(one):
            open_ends += [*getattr(one, "__dict__", {}).values()]
    return "\n".join(seen)


def fresh_secret() -> bytes:
    return secrets.token_bytes(32)


Opener = Callable[[], KeyProvider]
