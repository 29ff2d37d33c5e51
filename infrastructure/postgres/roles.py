"""What the roles that work with a ledger may do, as statements for whoever owns its tables."""

from __future__ import annotations

import re

from psycopg import sql

from compaction_ledger.domain.errors import InvalidSetting, LedgerReadOnly
from compaction_ledger.infrastructure.postgres.address import Address
from compaction_ledger.infrastructure.postgres.database import Database, script

LONGEST_NAME = 63
"""Bytes. The server would cut what is longer, and mean another role."""

_NAME = re.compile(r"\{(schema|read_models|writer|reader)\}")
# To the server these are no names of roles, quoted or not.
_RESERVED = frozenset({"public", "none"})


def role_statements(address: Address, writer: str, reader: str) -> str:
    """The script that lets one role write to the ledger and another read it, and nobody else do anything.

    It is one transaction, to be run as the owner of the tables after each migration, and harmless to run
    again. Both roles must exist. Raises :class:`InvalidSetting` for a name that no role can have.
    """
    if writer == reader:
        raise InvalidSetting(f"writer and reader are both {writer!r}", place="roles")
    names = {
        "schema": address.schema,
        "read_models": address.read_models_schema,
        "writer": _checked(writer, "writer"),
        "reader": _checked(reader, "reader"),
    }
    quoted = {key: sql.Identifier(name).as_string(None) for key, name in names.items()}
    return _NAME.sub(lambda found: quoted[found[1]], script("", "roles.sql"))


def check_may_erase(database: Database) -> None:
    """Raise :class:`LedgerReadOnly` unless whoever is connected may do all that an erasure does (S3)."""
    function = database.sql("{schema}.mark_erased(text)").decode()
    ((allowed,),) = database.call(
        "SELECT has_function_privilege(to_regprocedure(%s), 'EXECUTE')", (function,)
    )
    if not allowed:
        raise LedgerReadOnly("to erase, connect as the owner of the tables; nothing was erased")


def _checked(name: str, place: str) -> str:
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        length = 0
    if not 0 < length <= LONGEST_NAME or "\x00" in name:
        raise InvalidSetting(f"must be 1 to {LONGEST_NAME} bytes of text", place=place)
    if name in _RESERVED or name.startswith("pg_"):
        raise InvalidSetting(f"{name!r} is no role's name", place=place)
    return name
