"""The sealed recorder on PostgreSQL: one statement an append, in the order of the head row (L1, L2).

Neither the library's table lock nor a sequence decides the order: the lock of the head row does. The
statement is a function of the database (see ``migrations``), which gives the index out, reads the clock,
and completes the seal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast

from eventsourcing.persistence import ApplicationRecorder, IntegrityError, StoredEvent, Subscription
from eventsourcing.postgres import PostgresApplicationRecorder

from compaction_ledger.domain.erasure import Subject
from compaction_ledger.domain.errors import (
    DamagedLog,
    InvalidSetting,
    StoreError,
    StoreUnavailable,
    TimeHasPassed,
)
from compaction_ledger.infrastructure.event_store.polling import PolledSubscription
from compaction_ledger.infrastructure.event_store.rows import PlainRow, Row
from compaction_ledger.infrastructure.event_store.sealed_rows import SealedRows
from compaction_ledger.infrastructure.event_store.sealing import (
    change_by,
    envelope_of,
    keys_named,
    stream_hex,
)
from compaction_ledger.infrastructure.postgres.connections import Question
from compaction_ledger.infrastructure.postgres.database import Cursor, Database, Lost

FROM_EVENTS = (
    "SELECT idx, originator_id, originator_version, topic, state, envelope, leaf "
    "FROM {schema}.stored_events "
)
_APPEND_ONE = "SELECT idx, recorded FROM {schema}.append_event($1, $2, $3, $4, $5, $6, $7, $8)"
_APPEND_MANY = "SELECT idx, recorded FROM {schema}.append_events(%t, %t, %t, %t, %t, %b, %t, %t)"
LATEST = (1 << 63) - 1
ALWAYS = (0, LATEST)
CLOCK_SECONDS = 1.0
"""For how long a reading of the database's clock is carried on by our own monotonic one."""


Places = list[tuple[int, int]]
"""An index and a time for each event that was appended."""


class _Reading(NamedTuple):
    """The database's clock, in microseconds, and ours at the same moment, in nanoseconds."""

    theirs: int
    ours: int


class SealedPostgresRecorder(SealedRows, PostgresApplicationRecorder):
    """Stores events with their leaves. Notification ids are the index plus one.

    The tables are made when the ledger is opened; :meth:`create_table` does nothing.
    """

    datastore: Database

    def __init__(self, datastore: Database, *, clock_seconds: float = CLOCK_SECONDS) -> None:
        if datastore.enable_db_functions:
            raise InvalidSetting(
                "the library's own functions do not lock: readers would pass over events",
                place="POSTGRES_ENABLE_DB_FUNCTIONS",
            )
        super().__init__(datastore)
        self.sql_create_statements = []
        self._clock_nanoseconds = int(clock_seconds * 1e9)
        self._reading: _Reading | None = None
        self._origin = ""
        sql = datastore.sql
        # By a name of this ledger's own: a pooler that is not noticed may hand us a connection where another
        # ledger has prepared its own statement.
        name = f"append to {datastore.schema}".encode()
        self._append_one = Question(name, sql(_APPEND_ONE), (0, 0, 0, 0, 0, 1, 0, 0))
        self._append_many = sql(_APPEND_MANY)
        self._from_events = sql(FROM_EVENTS)
        self._from_head = sql("SELECT size, origin FROM {schema}.log_head WHERE id = 0")
        self._from_subjects = sql(
            "SELECT reference, key, state, scope, conversation FROM {schema}.subjects"
        )
        self._name_of = sql("{schema}.conversation_name(%s, %s)")
        self._clock = sql("SELECT {schema}.store_clock()")

    # --- writing ---

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Store and seal ``stored_events`` in one statement; ``subject`` is the conversation's reference.

        Raises ``IntegrityError`` where a version of a stream is taken (A8), and :class:`TimeHasPassed` where
        the database's clock is not ``within`` the given times. Where the answer is lost, the same is sent
        again: whichever comes first is stored, and the other is refused by the unique key, so that in the
        end it is known whether our events are there (A9).
        """
        if not stored_events:
            return []
        change = change_by(stored_events)
        if change is not None:
            return self._insert_erasure(stored_events, kwargs.get("subject", ""), change)
        send = self._sending(
            stored_events, kwargs.get("subject", ""), kwargs.get("within") or ALWAYS
        )
        sent = [False]

        def append() -> list[int]:
            try:
                rows = send()
            except Lost:
                sent[0] = True
                raise
            except (IntegrityError, TimeHasPassed):
                found = self._found(stored_events) if sent[0] else None
                if found is None:
                    self._reading = None
                    raise
                return found
            self._reading = _Reading(rows[-1][1], time.monotonic_ns())
            return [idx + 1 for idx, _ in rows]

        try:
            return self.datastore.until_it_works(append)
        except TimeHasPassed:
            raise
        except StoreError as error:
            if sent[0]:  # that is said of the last copy, and of the first one nothing
                raise StoreUnavailable(
                    f"it is not known whether it was stored: an answer was lost, and then: {error}"
                ) from error
            raise

    def _insert_erasure(
        self,
        events: Sequence[StoredEvent],
        subject: str,
        change: Literal["requested", "completed"],
    ) -> list[int]:
        """Record what tells of an erasure, and make of the subject what it says, in one transaction (S3)."""
        function = "mark_erased" if change == "requested" else "forget_name"
        statement = self.datastore.sql(f"SELECT {{schema}}.{function}(%s)")
        (event,) = events
        envelope = envelope_of(event, self._origin or self._read_origin(), subject)
        given = (*ALWAYS, envelope.stream, envelope.version, event.topic, event.state)
        append = self.datastore.sql(
            "SELECT idx FROM {schema}.append_event(%s, %s, %s, %s, %s, %b, %s, %s)"
        )

        def record(cursor: Cursor) -> list[int]:
            cursor.execute(append, (*given, *envelope.pieces()))
            ((index,),) = cursor.fetchall()
            cursor.execute(statement, (subject,))
            return [index + 1]

        return self.datastore.run(record, commit=True)

    def _sending(
        self, events: Sequence[StoredEvent], subject: str, within: tuple[int, int]
    ) -> Callable[[], Places]:
        """What sends the statement for these events and returns their indices and times."""
        origin = self._origin or self._read_origin()
        # Numbers go as text: by size they would be of several types, each with a statement of its own.
        times = (str(within[0]), str(min(within[1], LATEST)))
        rows: list[tuple[str, str, str, bytes, str, str]] = []
        for event in events:
            envelope = envelope_of(event, origin, subject)
            rows.append(
                (
                    envelope.stream,
                    str(envelope.version),
                    event.topic,
                    event.state,
                    *envelope.pieces(),
                )
            )
        if len(rows) == 1:
            stream, version, topic, state, before, after = rows[0]
            texts = [text.encode() for text in (*times, stream, version, topic, before, after)]
            texts.insert(5, state)
            return lambda: [
                (int(idx or 0), int(recorded or 0))
                for idx, recorded in self.datastore.try_ask(self._append_one, texts)
            ]
        columns = [list(column) for column in zip(*rows, strict=True)]
        return lambda: [
            (idx, recorded)
            for idx, recorded in self.datastore.try_call(self._append_many, (*times, *columns))
        ]

    def _found(self, events: Sequence[StoredEvent]) -> list[int] | None:
        """The places at which exactly these events are stored, if all of them are (A9)."""
        found: list[int] = []
        for event in events:
            rows = self._select(
                "WHERE originator_id = ? AND originator_version = ?",
                [stream_hex(event.originator_id), event.originator_version],
            )
            if [(row.topic, row.payload) for row in rows] != [(event.topic, event.state)]:
                return None
            found.append(rows[0].idx + 1)
        return found

    # --- reading ---

    def _select_plain(
        self, clause: str, parameters: Sequence[str | int] = ()
    ) -> Sequence[PlainRow]:
        statement = self._from_events + clause.replace("?", "%s").encode()
        return cast(Sequence[PlainRow], self.datastore.call(statement, parameters))

    def rows_at(self, indices: Sequence[int]) -> list[Row]:
        """The rows at these indices, unchecked, in any order; those that are missing are left out."""
        statement = self._from_events + b"WHERE idx = ANY(%s::bigint[])"
        return list(map(Row._make, self.datastore.call(statement, (list(indices),))))

    def max_notification_id(self) -> int | None:
        """The id of the last event; ``None`` where there is none."""
        ((last,),) = self.datastore.call(
            self.datastore.sql("SELECT max(idx) + 1 FROM {schema}.stored_events")
        )
        return None if last is None else int(last)

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Follow the log by polling its index (L2)."""
        return PolledSubscription(self, gt, topics)

    def head(self) -> tuple[int, str]:
        """The log's size and origin. Raises :class:`DamagedLog`."""
        return _head(self.datastore.call(self._from_head))

    def totals(self) -> tuple[int, str, int]:
        """The log's size and origin, and how many events are stored, in one snapshot."""
        rows = self.datastore.call(
            self.datastore.sql(
                "SELECT (SELECT count(*) FROM {schema}.stored_events), size, origin "
                "FROM (SELECT) AS one LEFT JOIN {schema}.log_head ON id = 0"
            )
        )
        events, size, origin = rows[0]
        return size or 0, origin or "", events

    def clock(self) -> int:
        """The database's clock, in microseconds (A5); within a second after an answer, as ours carries it on.

        That only saves asking: what depends on the time is judged again by the database when it is stored.
        """
        reading, now = self._reading, time.monotonic_ns()
        if reading is None or now - reading.ours >= self._clock_nanoseconds:
            ((theirs,),) = self.datastore.call(self._clock)
            now = time.monotonic_ns()  # taken before, it would run ahead by an answer's time
            self._reading = reading = _Reading(theirs, now)
        return reading.theirs + (now - reading.ours) // 1_000

    # --- who stands for whom ---

    def subject(
        self, scope: str, conversation: str, new_reference: str, new_key: str = ""
    ) -> Subject:
        """The subject of a conversation; what it has not yet of these two is stored."""
        rows = self.datastore.call(
            self.datastore.sql(
                "SELECT reference, key, state, scope, conversation "
                "FROM {schema}.subject_with_key(%s, %s, %s, %s)"
            ),
            (scope, conversation, new_reference, new_key),
        )
        return Subject._make(rows[0])

    def find_subject(self, scope: str, conversation: str) -> Subject | None:
        """The subject of a conversation, if it has one."""
        statement = self._from_subjects + b" WHERE name = " + self._name_of
        rows = self.datastore.call(statement, (scope, conversation))
        return Subject._make(rows[0]) if rows else None

    def subject_of(self, reference: str) -> Subject | None:
        """What a reference stands for."""
        rows = self.datastore.call(self._from_subjects + b" WHERE reference = %s", (reference,))
        return Subject._make(rows[0]) if rows else None

    def erased_references(self) -> frozenset[str]:
        """The references of what is erased."""
        rows = self.datastore.call(
            self.datastore.sql("SELECT reference FROM {schema}.subjects WHERE state = 'erased'")
        )
        return frozenset(str(reference) for (reference,) in rows)

    def subjects(self) -> dict[str, Subject]:
        """Every reference, and what it stands for."""
        found = map(Subject._make, self.datastore.call(self._from_subjects))
        return {subject.reference: subject for subject in found}

    def keys_of(self, reference: str) -> set[str]:
        """The ids of the data keys that a subject's events name: the whole log is looked through."""
        rows = self.datastore.call(
            self.datastore.sql(
                "SELECT envelope FROM {schema}.stored_events"
                " WHERE position(convert_to(%s, 'UTF8') IN envelope) > 0"
            ),
            (f'"subject":"{reference}"',),
        )
        return keys_named((envelope for (envelope,) in rows), reference)

    def blank(self, reference: str) -> int:
        """Remove the payloads of an erased subject that are not encrypted; how many."""
        ((count,),) = self.datastore.call(
            self.datastore.sql("SELECT {schema}.blank_payloads(%s)"), (reference,)
        )
        return int(count)

    def _read_origin(self) -> str:
        self._origin = self.head()[1]
        return self._origin


def _head(rows: Sequence[tuple[Any, ...]]) -> tuple[int, str]:
    if len(rows) != 1:
        raise DamagedLog("the log has no head")
    return rows[0][0], rows[0][1]
