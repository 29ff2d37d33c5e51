"""Wrapped data keys in a PostgreSQL database of their own: for workers on many machines.

It should not be the ledger's database: a backup of that would hold what an erasure destroys (S3).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from compaction_ledger.domain.errors import KeyMissing, NotALedger
from compaction_ledger.infrastructure.keys.wrapped_keys import Tombstone, WrappedKey
from compaction_ledger.infrastructure.postgres.database import Cursor, Database

FORMAT = 1
LOOK_SECONDS = 1.0
"""For how long what is known of erasures is not asked for again, in a process that did not make them."""

T = TypeVar("T")
_TABLES = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.data_keys (
    id      text COLLATE "C" PRIMARY KEY,
    epoch   text COLLATE "C" NOT NULL,
    wrapped bytea NOT NULL
);
CREATE INDEX IF NOT EXISTS data_keys_by_epoch ON {schema}.data_keys (epoch) WHERE wrapped <> '';
CREATE TABLE IF NOT EXISTS {schema}.key_erasures (
    reference text COLLATE "C" PRIMARY KEY,
    name      bytea NOT NULL,
    key       text COLLATE "C" NOT NULL,
    state     text COLLATE "C" NOT NULL CHECK (state IN ('begun', 'destroyed', 'completed'))
);
CREATE TABLE IF NOT EXISTS {schema}.key_revision (
    id     integer PRIMARY KEY CHECK (id = 0),
    number bigint NOT NULL,
    format integer NOT NULL
);
INSERT INTO {schema}.key_revision VALUES (0, 0, 1) ON CONFLICT (id) DO NOTHING;
"""


class PostgresWrappedKeys:
    """Tables in a schema, made when something is kept first."""

    def __init__(
        self,
        database: Database,
        *,
        look_seconds: float = LOOK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._look_seconds = look_seconds
        self._clock = clock
        self._made = False
        self._look_at = object()  # another one with each look
        self._seen: tuple[float, int, object] = (-math.inf, 0, None)

    # --- keys ---

    def add(self, keys: Sequence[WrappedKey]) -> None:
        """Keep these. Raises :class:`StoreError` kinds; an id that is taken stays as it is."""
        columns = [list(column) for column in zip(*keys, strict=True)] or [[], [], []]
        self._write(
            lambda cursor: cursor.execute(
                self._sql(
                    "INSERT INTO {schema}.data_keys SELECT * FROM unnest(%t::text[], %t::text[], "
                    "%b::bytea[]) ON CONFLICT (id) DO NOTHING"
                ),
                columns,
            )
        )

    def find(self, key: str) -> WrappedKey | None:
        """The key of this id, destroyed or not."""
        rows = self._read("SELECT id, epoch, wrapped FROM {schema}.data_keys WHERE id = %t", key)
        return WrappedKey(*rows[0]) if rows else None

    def older_than(self, epoch: str, limit: int) -> Sequence[WrappedKey]:
        """At most so many keys that are wrapped under another epoch and are not destroyed."""
        rows = self._read(
            "SELECT id, epoch, wrapped FROM {schema}.data_keys "
            "WHERE epoch <> %t AND wrapped <> '' ORDER BY id LIMIT %b",
            epoch,
            limit,
        )
        return [WrappedKey(*row) for row in rows]

    def replace(self, keys: Iterable[tuple[WrappedKey, WrappedKey]]) -> int:
        """Put the second in place of the first wherever that is still there; for how many it was."""
        pairs = sorted(keys)
        statement = self._sql(
            "UPDATE {schema}.data_keys SET epoch = %t, wrapped = %b "
            "WHERE id = %t AND epoch = %t AND wrapped = %b"
        )

        def work(cursor: Cursor) -> int:
            count = 0
            for old, new in pairs:
                cursor.execute(statement, (new.epoch, new.wrapped, *old))
                count += cursor.rowcount
            return count

        return self._write(work)

    def count(self) -> dict[str, int]:
        """How many keys are wrapped under each epoch, without those that are destroyed."""
        return dict(
            self._read(
                "SELECT epoch, count(*) FROM {schema}.data_keys WHERE wrapped <> '' GROUP BY epoch"
            )
        )

    # --- erasures ---

    def revision(self) -> int:
        """How many changes there were to the erasures; what others did is seen within a second."""
        since, number, looked_at = self._seen
        now, look_at = self._clock(), self._look_at
        if looked_at is not look_at or now - since >= self._look_seconds:
            rows = self._read("SELECT number FROM {schema}.key_revision WHERE id = 0")
            number = rows[0][0] if rows else 0
            # Which counts for nothing if somebody looked meanwhile.
            self._seen = (now, number, look_at)
        return number

    def look(self) -> None:
        """What was seen before counts for nothing."""
        self._look_at = object()

    def tombstones(self) -> Sequence[Tombstone]:
        """Every erasure."""
        rows = self._read(
            "SELECT reference, name, key, state FROM {schema}.key_erasures ORDER BY reference"
        )
        return [Tombstone(*row) for row in rows]

    def bury(self, tombstone: Tombstone) -> None:
        """Keep this erasure; one that is known keeps its state, and its key, if it has one."""
        self._change(
            "INSERT INTO {schema}.key_erasures AS e VALUES (%t, %b, %t, %t)"
            " ON CONFLICT (reference) DO UPDATE SET key = excluded.key WHERE e.key = ''",
            *tombstone,
        )

    def destroy(self, reference: str) -> None:
        """Empty the wrapped key of a subject that was buried."""
        self._change(
            "UPDATE {schema}.data_keys SET wrapped = '' WHERE id = "
            "(SELECT key FROM {schema}.key_erasures WHERE reference = %t)",
            reference,
        )
        self._change(
            "UPDATE {schema}.key_erasures SET state = 'destroyed' "
            "WHERE reference = %t AND state = 'begun'",
            reference,
        )

    def complete(self, reference: str) -> None:
        """Note that an erasure is complete."""
        self._change(
            "UPDATE {schema}.key_erasures SET state = 'completed' WHERE reference = %t", reference
        )

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    # --- inside ---

    def _sql(self, statement: str) -> bytes:
        return self._database.sql(statement)

    def _change(self, statement: str, *parameters: Any) -> None:
        def work(cursor: Cursor) -> None:
            cursor.execute(self._sql(statement), parameters)
            cursor.execute(self._sql("UPDATE {schema}.key_revision SET number = number + 1"))

        self._write(work)
        self.look()

    def _write(self, work: Callable[[Cursor], T]) -> T:
        self._make()
        # What is written may be written twice: the second time it changes nothing.
        return self._database.run(work, commit=True, repeatable=True)

    def _read(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        try:
            self._check_format()
            return self._database.call(self._sql(statement), parameters)
        except NotALedger:  # there are no tables yet
            return []

    def _make(self) -> None:
        if self._made:
            return

        def work(cursor: Cursor) -> None:
            lock = f"compaction-ledger/keys/{self._database.address.schema}"
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
            cursor.connection.execute(self._sql(_TABLES), prepare=False)

        self._database.run(work, commit=True, repeatable=True)
        self._check_format()

    def _check_format(self) -> None:
        if self._made:
            return
        statement = self._sql("SELECT format FROM {schema}.key_revision WHERE id = 0")
        rows = self._database.call(statement)
        if rows != [(FORMAT,)]:
            raise KeyMissing(f"{self._database.address.name} does not hold data keys that we know")
        self._made = True
