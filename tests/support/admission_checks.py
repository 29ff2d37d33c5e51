"""What the database itself says of the shared admission, whoever uses it."""

from __future__ import annotations

from compaction_ledger.infrastructure.postgres.database import Database

_FUNCTION = """
CREATE FUNCTION {schema}.forbid_more_slots() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM {schema}.admission_slots) > %d THEN
        RAISE EXCEPTION 'more slots than the bound';
    END IF;
    RETURN NULL;
END $$
"""
_TRIGGER = """
CREATE TRIGGER forbid_more_slots AFTER INSERT OR UPDATE ON {schema}.admission_slots
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.forbid_more_slots()
"""
_GRANTS = (
    "CREATE TABLE {schema}.test_grants (holder text)",
    """
CREATE FUNCTION {schema}.keep_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.test_grants VALUES (NEW.holder);
    RETURN NULL;
END $$
""",
    """
CREATE TRIGGER keep_grant AFTER INSERT ON {schema}.admission_slots
    FOR EACH ROW EXECUTE FUNCTION {schema}.keep_grant()
""",
)
_CLOCK = """
CREATE OR REPLACE FUNCTION {schema}.store_clock() RETURNS bigint LANGUAGE sql VOLATILE AS
'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint'
"""


def forbid_more_slots_than(database: Database, bound: int) -> None:
    """From now on the statement that would make more slots than ``bound`` fails (D1)."""
    for statement in (_FUNCTION % bound, _TRIGGER):
        database.call(database.sql(statement))


def keep_grants(database: Database) -> None:
    """From now on it is kept who was given a slot."""
    for statement in _GRANTS:
        database.call(database.sql(statement))


def holders(database: Database) -> set[str]:
    """Who was given a slot, at least once."""
    return {name for (name,) in database.call(database.sql("TABLE {schema}.test_grants"))}


def original_clock(database: Database) -> None:
    """Have the server's clock again where a test has put its own."""
    database.call(database.sql(_CLOCK))
