"""The same on PostgreSQL as a stock ``eventsourcing`` application and its stock projection do it."""

from __future__ import annotations

from functools import singledispatchmethod
from typing import Any
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.persistence import Tracking
from eventsourcing.postgres import PostgresTrackingRecorder
from eventsourcing.projection import Projection
from psycopg.conninfo import conninfo_to_dict
from stock import StockRange


class StockRanges(Application[UUID]):
    """The aggregates of :class:`stock.StockRange`."""


def environment(url: str, schema: str) -> dict[str, str]:
    """The library's settings for a schema of the database at ``url``."""
    found = conninfo_to_dict(url)
    return {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_DBNAME": str(found["dbname"]),
        "POSTGRES_HOST": str(found["host"]),
        "POSTGRES_PORT": str(found.get("port", "5432")),
        "POSTGRES_USER": str(found["user"]),
        "POSTGRES_PASSWORD": "",
        "POSTGRES_SCHEMA": schema,
        "POSTGRES_POOL_SIZE": "2",
        "POSTGRES_CONN_MAX_AGE": "3600",
    }


_SUMMARY = (
    "INSERT INTO {schema}.summaries VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (identity) "
    "DO UPDATE SET status = EXCLUDED.status, text = EXCLUDED.text, idx = EXCLUDED.idx, "
    "expires_at = coalesce(EXCLUDED.expires_at, summaries.expires_at)"
)
_RANGE = (
    "INSERT INTO {schema}.ranges VALUES (%s, %s, %s, %s) ON CONFLICT (identity) "
    "DO UPDATE SET status = EXCLUDED.status, updated_index = EXCLUDED.updated_index"
)
_ATTEMPT = (
    "INSERT INTO {schema}.attempts VALUES (%s, %s, %s, %s, %s) ON CONFLICT (identity, number) "
    "DO UPDATE SET outcome = EXCLUDED.outcome, ended_index = EXCLUDED.ended_index"
)
_TABLES = """
CREATE TABLE {schema}.summaries (
    identity text PRIMARY KEY, holder text, claim_id text, source_hash text, messages text, status text,
    expires_at bigint, text text, idx bigint
);
CREATE TABLE {schema}.ranges (
    identity text PRIMARY KEY, source_hash text, status text, updated_index bigint
);
CREATE TABLE {schema}.attempts (
    identity text, number int, attempt_id text, outcome text, ended_index bigint,
    PRIMARY KEY (identity, number)
);
"""


class StockView(PostgresTrackingRecorder):
    """Three tables of rows, each change in one transaction with its position."""

    def create_table(self) -> None:
        """Make the tables too."""
        super().create_table()
        with self.datastore.transaction(commit=True) as cursor:
            cursor.execute(self._sql(_TABLES), prepare=False)

    def change(self, tracking: Tracking, *changes: tuple[str, tuple[Any, ...]]) -> None:
        """Carry out changes of rows, and note the position."""
        with self.datastore.transaction(commit=True) as cursor:
            for statement, values in changes:
                cursor.execute(self._sql(statement), values, prepare=True)
            self._insert_tracking(cursor, tracking)

    def _sql(self, statement: str) -> bytes:
        return statement.replace("{schema}", self.datastore.schema).encode()


class StockProjection(Projection[StockView]):
    """Summaries, ranges and attempts of the three events of a lifecycle."""

    @singledispatchmethod
    def process_event(  # pyright: ignore[reportIncompatibleVariableOverride] - as its docs have it
        self, domain_event: Any, tracking: Tracking
    ) -> None:
        """Any other event."""
        raise TypeError(type(domain_event))

    @process_event.register
    def _(self, event: StockRange.Created, tracking: Tracking) -> None:
        key, given, at = event.originator_id.hex, vars(event), tracking.notification_id
        summary = (
            key,
            given["holder"],
            given["claim_id"],
            given["source_hash"],
            " ".join(given["messages"]),
            "claimed",
            given["expires_at"],
            None,
            at,
        )
        self.view.change(
            tracking, (_SUMMARY, summary), (_RANGE, (key, given["source_hash"], "running", at))
        )

    @process_event.register
    def _(self, event: StockRange.Started, tracking: Tracking) -> None:  # type: ignore[name-defined]
        key, given, at = event.originator_id.hex, vars(event), tracking.notification_id
        summary = (key, None, None, None, None, "started", given["expires_at"], None, at)
        self.view.change(
            tracking,
            (_SUMMARY, summary),
            (_RANGE, (key, None, "running", at)),
            (_ATTEMPT, (key, given["number"], given["attempt_id"], "open", None)),
        )

    @process_event.register
    def _(self, event: StockRange.Completed, tracking: Tracking) -> None:  # type: ignore[name-defined]
        key, given, at = event.originator_id.hex, vars(event), tracking.notification_id
        summary = (key, None, None, None, None, "completed", None, given["text"], at)
        self.view.change(
            tracking,
            (_SUMMARY, summary),
            (_RANGE, (key, None, "completed", at)),
            (_ATTEMPT, (key, 1, given["attempt_id"], "completed", at)),
        )
