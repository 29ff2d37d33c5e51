"""What a ledger on PostgreSQL says of itself."""

from __future__ import annotations

from compaction_ledger.domain.status import Slots, StoreStatus
from compaction_ledger.infrastructure.postgres.database import Database

_STATUS = """
SELECT current_setting('server_version'),
    (SELECT max(version) FROM {schema}.schema_migrations),
    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = ANY (%s) AND c.relkind IN ('r', 'm')),
    (SELECT count(*) FROM {schema}.admission_slots WHERE renewed_at + lease > clock.moment),
    (SELECT count(*) FROM {schema}.admission_tickets WHERE last_asked + kept > clock.moment)
FROM (SELECT {schema}.store_clock() AS moment) AS clock
"""


def store_status(database: Database) -> StoreStatus:
    """Versions, the size of all tables with their indexes, and slots. Raises kinds of :class:`StoreError`."""
    address = database.address
    schemas = [address.schema, address.read_models_schema]
    [row] = database.call(database.sql(_STATUS), (schemas,))
    version, layout, size, taken, waiting = row
    return StoreStatus("postgresql", address.name, version, layout, size, Slots(taken, waiting))
