"""Time stamps by an authority (RFC 3161, K3). Needs the extra ``timestamps``.

What is stamped is the SHA-256 of a checkpoint as it was published, with its signatures. The response is kept
as it came: ``openssl ts -verify`` checks it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from cryptography.x509 import Certificate, load_pem_x509_certificates

from compaction_ledger.domain.errors import BadTimestamp, InvalidSetting, TimestampUnavailable
from compaction_ledger.infrastructure.http_places import HttpPlace, NoAnswer

MAX_ANSWER = 256 * 1024
SECONDS = 20.0
_QUERY, _REPLY = "application/timestamp-query", "application/timestamp-reply"


class Rfc3161Authority:
    """A time-stamp authority at a URL. ``roots`` are the certificates that its own must lead to."""

    def __init__(self, url: str, roots: Sequence[Certificate], seconds: float = SECONDS) -> None:
        self._client = _client()
        self._place = HttpPlace(url, "timestamps", seconds, MAX_ANSWER)
        self._roots = tuple(roots)
        if not self._roots:
            raise InvalidSetting("no certificate is trusted", place="timestamps")
        self.name = self._place.url

    @classmethod
    def parse(cls, setting: str, seconds: float = SECONDS) -> Rfc3161Authority:
        """An authority as it is set: its URL, a space, and a file of trusted certificates (PEM)."""
        url, _, file = setting.strip().partition(" ")
        return cls(url, trusted(Path(file.strip())), seconds)

    def stamp(self, note: bytes) -> bytes:
        """A time stamp of ``note``, checked: the whole response, in DER.

        Raises :class:`TimestampUnavailable` where none was given, :class:`BadTimestamp` for a wrong one.
        """
        builder = self._client.TimestampRequestBuilder()
        request = builder.data(note).hash_algorithm(self._client.HashAlgorithm.SHA256).build()
        try:
            answer = self._place.ask("POST", "", request.as_bytes(), _QUERY)
        except NoAnswer as error:
            raise self._unavailable(str(error)) from error
        if answer.status != 200 or answer.content_type != _REPLY:
            raise self._unavailable(f"it answers {answer.status}, {answer.content_type}")
        self.check(note, answer.body, nonce=request.nonce)
        return answer.body

    def check(self, note: bytes, response: bytes, *, nonce: int | None = None) -> int:
        """When ``note`` was stamped, in seconds since the epoch. Raises :class:`BadTimestamp`.

        Also :class:`TimestampUnavailable` for a response that refuses to stamp.
        """
        builder = self._client.VerifierBuilder(roots=list(self._roots), nonce=nonce)
        try:
            found = self._client.decode_timestamp_response(response)
            granted = found.status == self._client.PKIStatus.GRANTED
            refusal = "; ".join(found.status_string)
            if granted:
                builder.build().verify_message(found, note)
                return int(found.tst_info.gen_time.timestamp())
        except (ValueError, self._client.VerificationError) as error:
            raise BadTimestamp(f"a time stamp of {self.name} does not hold: {error}") from error
        raise self._unavailable(f"it does not stamp this: {refusal or f'status {found.status}'}")

    def _unavailable(self, why: str) -> TimestampUnavailable:
        return TimestampUnavailable(f"the time-stamp authority {self.name}: {why}")


def trusted(file: Path) -> Sequence[Certificate]:
    """The certificates in a PEM file. Raises :class:`InvalidSetting`."""
    try:
        return load_pem_x509_certificates(file.read_bytes())
    except OSError as error:
        raise InvalidSetting(f"{file}: {error.strerror}", place="timestamps") from error
    except ValueError as error:
        raise InvalidSetting(f"{file}: no certificates in PEM", place="timestamps") from error


def _client() -> Any:
    try:
        return import_module("rfc3161_client")
    except ImportError as error:
        raise InvalidSetting(
            f"needs: pip install 'compaction-ledger[timestamps]' ({error})", place="timestamps"
        ) from error
