"""Asking a server by HTTP, in bounded time and bytes, with no secret in the URL or in an error (S4)."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from compaction_ledger.domain.errors import InvalidSetting


class Answer(NamedTuple):
    """What a server said. ``content_type`` is without its parameters."""

    status: int
    content_type: str
    body: bytes

    def line(self) -> str:
        """The first line of the body, as far as it can be shown."""
        line = self.body[:200].decode("utf-8", "replace").strip().split("\n")[0]
        return "".join(c for c in line if c.isprintable()) or "nothing"


class NoAnswer(Exception):
    """The server cannot be reached, or what it says is not HTTP or too long. For the caller to translate."""


class HttpPlace:
    """A server at a URL. ``place`` names the setting in errors. Proxies of the environment are not used."""

    def __init__(self, url: str, place: str, seconds: float, max_bytes: int) -> None:
        self._parts = _checked(url, place)
        self._seconds = seconds
        self._max_bytes = max_bytes
        self.url = f"{self._parts.scheme}://{self._parts.netloc}{self._parts.path}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, content_type: str = "text/plain"
    ) -> Answer:
        """One request, and its answer. Redirects are not followed. Raises :class:`NoAnswer`."""
        connection = self._connection()
        headers = {} if body is None else {"Content-Type": content_type}
        try:
            connection.request(method, (self._parts.path + path) or "/", body, headers)
            response = connection.getresponse()
            content = response.read(self._max_bytes + 1)
        except (OSError, HTTPException) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error
        finally:
            connection.close()
        if len(content) > self._max_bytes:
            raise NoAnswer("its answer is too long")
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return Answer(response.status, kind, content)

    def _connection(self) -> HTTPConnection:
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=self._seconds)


def _checked(url: str, place: str) -> SplitResult:
    """The parts of a URL. It is never shown where it may hold a secret."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for what is no port
    except ValueError:
        raise InvalidSetting("not a URL", place=place) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidSetting("not an http or https URL", place=place)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidSetting("this URL has no user, password, query or fragment", place=place)
    if any(not "!" <= c <= "~" for c in url):
        raise InvalidSetting("the URL has characters that must be escaped", place=place)
    return parts._replace(path=parts.path.rstrip("/"))
