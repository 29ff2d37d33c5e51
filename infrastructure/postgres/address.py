"""Where a ledger is on PostgreSQL: a connection string and a schema. Passwords stay in here (S4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from compaction_ledger.domain.errors import InvalidSetting

DEFAULT_SCHEMA = "compaction_ledger"
SCHEMES = ("postgresql://", "postgres://")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")


@dataclass(frozen=True, slots=True)
class Address:
    """A connection string of libpq, the schema that holds the ledger, and a name that may be shown."""

    conninfo: str = field(repr=False)
    schema: str
    name: str

    @property
    def read_models_schema(self) -> str:
        """The schema that holds the tables of the read models."""
        return f"{self.schema}_read_models"


def parse_address(url: str) -> Address:
    """The address in a URL such as ``postgresql://user@host/database?schema=name``.

    All other parameters are libpq's (https://www.postgresql.org/docs/current/libpq-connect.html). Raises
    :class:`InvalidSetting`, without any part of the URL that could be a secret.
    """
    try:
        parts = urlsplit(url)
        plain = parts.query.replace("+", "%2B")  # to libpq it is a plus sign, never a space
        query = parse_qsl(plain, keep_blank_values=True, strict_parsing=bool(plain))
        schemas = [value for name, value in query if name == "schema"]
        rest = [(name, value) for name, value in query if name != "schema"]
        conninfo = urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote)))
        found = conninfo_to_dict(conninfo)
    except (ValueError, psycopg.Error) as error:
        raise InvalidSetting(
            f"this is no PostgreSQL URL ({type(error).__name__})", place="ledger URL"
        ) from None
    schema = schemas[-1] if schemas else DEFAULT_SCHEMA
    if not _SCHEMA.fullmatch(schema):
        raise InvalidSetting(
            f"{schema!r} must be 1 to 48 lower-case letters, digits and underscores", place="schema"
        )
    where = f"{found.get('host') or 'localhost'}:{found.get('port') or 5432}"
    return Address(conninfo, schema, f"{where}/{found.get('dbname') or ''} schema {schema}")


def is_address(text: str) -> bool:
    """Whether ``text`` is meant as the URL of a PostgreSQL database."""
    return text.startswith(SCHEMES)
