"""Requests to the HTTP API of HashiCorp Vault or OpenBao, by the standard library."""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
    getproxies,
)

from compaction_ledger.domain.errors import InvalidSetting, KeysUnavailable
from compaction_ledger.infrastructure.keys.secrecy import Unpicklable, items_of, members_of, parsed

CALL_SECONDS: Final = 15.0
LARGEST_ANSWER: Final = 1_048_576
DEFAULT_ADDRESS: Final = "https://127.0.0.1:8200"
TOKEN_FILE: Final = "COMPACTION_LEDGER_VAULT_TOKEN_FILE"  # noqa: S105 - the name of a variable


class Answer(NamedTuple):
    """A status of HTTP, and the members ``data`` and ``errors`` of the body."""

    status: int
    data: Mapping[str, Any]
    errors: str


class VaultClient(Unpicklable):
    """Calls one server. Neither the token nor what is sent is ever shown (S4)."""

    __slots__ = ("_address", "_headers", "_opener", "_token")

    def __init__(
        self,
        address: str,
        token: Callable[[], str],
        *,
        namespace: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        _check_address(address)
        self._address = address.rstrip("/")
        self._token = token
        self._headers = {"X-Vault-Request": "true", "Content-Type": "application/json"}
        if namespace:
            self._headers["X-Vault-Namespace"] = _header(namespace, "VAULT_NAMESPACE")
        # A proxy is used for https only, where it sees nothing: over http it would be given the token.
        proxies = {kind: url for kind, url in getproxies().items() if kind in {"https", "no"}}
        self._opener: OpenerDirector = build_opener(
            HTTPSHandler(context=tls), ProxyHandler(proxies), _Redirects()
        )

    @classmethod
    def by_environment(cls, environment: Mapping[str, str]) -> VaultClient:
        """As Vault's own command line finds its server and token.

        ``VAULT_ADDR``, ``VAULT_NAMESPACE``, ``VAULT_CACERT``, ``VAULT_CAPATH``; the token is ``VAULT_TOKEN``,
        or in the file that ``COMPACTION_LEDGER_VAULT_TOKEN_FILE`` names, or in ``~/.vault-token``. Nothing
        is asked yet. Raises :class:`InvalidSetting`.
        """
        try:
            tls = ssl.create_default_context(
                cafile=environment.get("VAULT_CACERT") or None,
                capath=environment.get("VAULT_CAPATH") or None,
            )
        except OSError as error:
            raise InvalidSetting(
                f"the certificates cannot be read: {error.strerror}", place="VAULT_CACERT"
            ) from error
        return cls(
            environment.get("VAULT_ADDR") or DEFAULT_ADDRESS,
            _token_source(environment),
            namespace=environment.get("VAULT_NAMESPACE"),
            tls=tls,
        )

    def __repr__(self) -> str:
        return f"VaultClient({self._address!r})"

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """What the server answers, when that is 200, 204, 400 or 404.

        Raises :class:`KeysUnavailable` for all else: no answer, no right, sealed, standing by.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "X-Vault-Token": _header(self._token(), "the token")}
        request = Request(  # noqa: S310 - the scheme was checked
            f"{self._address}/v1/{path}", data=data, headers=headers, method=method
        )
        status, text = self._exchanged(request)
        if status == http.HTTPStatus.NO_CONTENT:
            return Answer(status, {}, "")
        document = members_of(parsed(text))
        if document is None:
            raise KeysUnavailable(f"Vault at {self._address} answered {status}, and not in JSON")
        errors = _errors(document.get("errors"))
        if status not in {200, 400, 404}:
            raise KeysUnavailable(f"Vault at {self._address} answered {status}: {errors}")
        return Answer(status, members_of(document.get("data")) or {}, errors)

    def _exchanged(self, request: Request) -> tuple[int, bytes]:
        try:
            try:
                with self._opener.open(request, timeout=CALL_SECONDS) as response:
                    return response.status, response.read(LARGEST_ANSWER)
            except HTTPError as answer:
                with answer:
                    return answer.code, answer.read(LARGEST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            words = getattr(error, "reason", None) or error
            raise KeysUnavailable(f"Vault at {self._address} cannot be reached: {words}") from error


class _Redirects(HTTPRedirectHandler):
    """A server that stands by sends to the active one (307): method and body stay as they are."""

    def redirect_request(
        self,
        req: Request,
        fp: IO[bytes],  # noqa: ARG002 - the library's own
        code: int,
        msg: str,  # noqa: ARG002
        headers: http.client.HTTPMessage,  # noqa: ARG002
        newurl: str,
    ) -> Request | None:
        if code not in {307, 308} or (req.type == "https" and not newurl.startswith("https:")):
            return None
        _check_address(newurl)
        return Request(  # noqa: S310 - the scheme was checked
            newurl, data=req.data, headers=dict(req.headers), method=req.get_method()
        )


def _check_address(address: str) -> None:
    """Only ``https``, or ``http`` to this machine: token and data keys go over it (S4)."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        safe = parts.scheme == "https" or (parts.scheme == "http" and _is_here(host))
        fine = safe and bool(host) and parts.username is None and parts.password is None
    except ValueError:
        fine = False
    if not fine:
        raise InvalidSetting(
            "must be an address with https, or with http on the loopback interface",
            place="VAULT_ADDR",
        )


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token_source(environment: Mapping[str, str]) -> Callable[[], str]:
    """The token itself, or its file, which is read for each request: an agent renews it."""
    token = environment.get("VAULT_TOKEN")
    if token:
        return lambda: token
    named = environment.get(TOKEN_FILE)
    path = Path(named) if named else Path.home() / ".vault-token"
    return lambda: _token_in(path)


def _token_in(path: Path) -> str:
    try:
        return path.read_bytes().decode("latin-1").strip()
    except OSError as error:
        raise KeysUnavailable(f"there is no token for Vault: {path}: {error.strerror}") from error


def _header(value: str, name: str) -> str:
    """A text for a header. The library would repeat a wrong one in its error (S4)."""
    if not value or not all("!" <= character <= "~" for character in value):
        raise InvalidSetting("is empty, or has characters that no header may have", place=name)
    return value


def _errors(listed: Any) -> str:
    """What the server says of its errors, on one line."""
    texts = [str(one) for one in items_of(listed) or ()]
    return " ".join("; ".join(texts).split())[:300] or "without a reason"
