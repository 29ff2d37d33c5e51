"""Settings, checked at the edge. The environment is read in one place only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.keys import provider_names

LEDGER_VARIABLE = "COMPACTION_LEDGER"
KEY_PROVIDER_VARIABLE = "COMPACTION_LEDGER_KEY_PROVIDER"
DEFAULT_PATH = Path("compaction-ledger.db")
DEFAULT_SCOPE = "default"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Settings(BaseModel):
    """How a ledger is opened and its worker behaves. Raises :class:`InvalidSetting` for a wrong value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lease_seconds: float = Field(default=300.0, gt=0, le=86_400)
    """How long a claim holds; it begins anew when an attempt starts, and while one runs (A5)."""

    longest_attempt_seconds: float = Field(default=3_600.0, ge=0, le=604_800)
    """For how long the lease of a running attempt is renewed; then it runs out (A5)."""

    attempts_at_once: int = Field(default=4, ge=1, le=10_000)
    """The bound on attempts at once in this process (D1)."""

    shared_attempts_at_once: int | None = Field(default=None, ge=1, le=10_000)
    """The bound among all processes on one PostgreSQL database (D1); ``None``: only each for itself."""

    slot_lease_seconds: float = Field(default=60.0, ge=1, le=3_600)
    """For how long the shared bound counts an attempt whose process has died (D1)."""

    outage_after: int = Field(default=3, ge=1, le=1_000)
    """After so many unavailable answers in a row no new claim is made until a probe succeeds (D3)."""

    grounding: Literal["off", "report", "strict"] = "report"
    """What becomes of figures, dates, names and quotations of a summary that its source has not (T13).

    ``report``: listed where the summary is looked at. ``strict``: a failed attempt, too (``ungrounded``).
    """

    record_deliveries: Literal["off", "on"] = "off"
    """Whether every request is recorded as given when it is made, without being told to (section 0, H8).

    ``on``: by ``assemble`` and ``Window.prepare`` themselves; made again with the same content, it is the
    same delivery.
    """

    database_connections: int = Field(default=10, ge=1, le=1_000)
    """How many connections to PostgreSQL this process may hold at once."""

    database_patience_seconds: float = Field(default=15.0, ge=0, le=3_600)
    """For how long PostgreSQL is asked again while it cannot be reached, or another is in the way (A9)."""

    encryption: Literal["on", "off"] = "on"
    """Whether what is stored from now on is encrypted, with a key for each conversation (S1).

    What was stored before is read either way.
    """

    key_provider: str = "file"
    """Who holds the key-encryption keys (S1): ``file``, ``aws-kms:…``, ``google-kms:…`` or ``vault:…``.

    Not given, it is what ``COMPACTION_LEDGER_KEY_PROVIDER`` names. After commas: who held them before (S2).
    """

    keys_folder: Path | None = None
    """Where the keyring is, and the signer's key; ``None``: beside the ledger (:mod:`places`)."""

    data_keys: SecretStr | None = None
    """The URL of a PostgreSQL database for wrapped data keys; ``None``: a file in the keys folder (S1, S3).

    For workers on many machines. It should not be the ledger's own database.
    """

    checkpoints_folder: Path | None = None
    """Where the last signed head is, and published checkpoints; ``None``: beside the ledger (K1)."""

    witnesses: tuple[str, ...] = ()
    """Who cosigns what is published, and is asked when the log is verified: URL, space, verifier key (K3)."""

    checkpoint_copies: tuple[str, ...] = ()
    """Where what is published is kept, too, and never replaced: folders, or ``s3://bucket/prefix`` (K3)."""

    timestamps: str | None = None
    """Who stamps what is published with the time (RFC 3161): URL, space, a PEM file of trusted roots (K3)."""

    @field_validator("key_provider")
    @classmethod
    def _named(cls, text: str) -> str:
        provider_names(text)
        return text

    if not TYPE_CHECKING:  # type checkers read the parameters off the fields, as pydantic means it

        def __init__(self, **values: object) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                raise InvalidSetting(
                    first["msg"], place=".".join(map(str, first["loc"]))
                ) from error


def ledger_place(
    given: str | Path | None, environment: Mapping[str, str] = os.environ
) -> str | Path:
    """Where the ledger is: as given, else from ``COMPACTION_LEDGER``, else ``compaction-ledger.db`` here.

    Text that begins like a URL is left as it is, all else is a path.
    """
    named = given or environment.get(LEDGER_VARIABLE, "") or DEFAULT_PATH
    return named if is_database_url(named) else Path(named)


def is_database_url(place: str | Path) -> bool:
    """Whether ``place`` is meant as the URL of a database.

    A wrong scheme is found when it is parsed: taken for a path, it would be shown with its password (S4).
    """
    return isinstance(place, str) and _URL.match(place) is not None
