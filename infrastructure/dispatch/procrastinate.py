"""Dispatch by Procrastinate: jobs that say "look at this conversation". Needs the extra ``procrastinate``.

A job carries a scope and an id, and nothing that could be out of date. What is due is planned when it runs,
and the claim alone decides who does it (A1, A8): a job that comes twice, too late, or never costs a look, or
leaves one to others, and does no harm.

Of each conversation at most two jobs wait: one to be run at once and one for a later time. All of them
have one lock, so that one worker at a time looks at it. A look that is to be repeated is deferred anew and
not retried in Procrastinate's own way: that cannot put a job back where another waits under its name.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import psycopg
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException, UniqueViolation
from procrastinate.jobs import JobDeferrer, Status
from procrastinate.schema import SchemaManager
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from compaction_ledger.domain.errors import InvalidSetting, StoreError
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.infrastructure.postgres.address import is_address, parse_address
from compaction_ledger.infrastructure.postgres.errors import translated

logger = logging.getLogger(__name__)

QUEUE = "compaction_ledger"
LOOK = "compaction_ledger.look"
RESCUE = "compaction_ledger.rescue"
NAME = "the queue of Procrastinate"

EVERY_MINUTE = "* * * * *"
STALLED_SECONDS = 30.0
"""After so long without a heartbeat a worker counts as dead, as it does for Procrastinate itself."""

STORE_SECONDS = 30.0
"""When a look that the store could not bear is repeated."""

LATER = -1
"""The priority of a job for later. Of two with one lock the first would hold up the second, but for this."""

Look = Callable[[str, str, Callable[[], bool]], float | None]
"""Looks at a conversation, by scope and id, and returns in how many seconds to look again.

The third argument says whether it is to stop.
"""

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]


class Dispatcher:
    """Defers looks at conversations. ``with`` opens and closes the app, where nobody else does."""

    def __init__(self, app: App, queue: str = QUEUE) -> None:
        self.app = app
        self.queue = queue

    def defer(
        self,
        scope: str,
        conversation: str,
        *,
        in_seconds: float = 0.0,
        connection: Connection | None = None,
    ) -> bool:
        """Have a conversation looked at; false where that waits to be done already.

        With ``connection`` the job is part of its transaction, and comes to be with its commit. Raises
        :class:`InvalidId`, and kinds of :class:`StoreError` where the queue cannot be written.
        """
        job = self._job(scope, conversation, in_seconds, connection)
        with _translated():
            try:
                if connection is None:
                    job.defer(scope=scope, conversation=conversation)
                else:
                    if _begins_now(connection):
                        connection.execute("SELECT 1")
                    # A savepoint: "already" must not spoil the rest of the transaction.
                    with connection.transaction():
                        job.defer(scope=scope, conversation=conversation)
            except AlreadyEnqueued:
                return False
        return True

    async def defer_async(
        self,
        scope: str,
        conversation: str,
        *,
        in_seconds: float = 0.0,
        connection: AsyncConnection | None = None,
    ) -> bool:
        """As :meth:`defer`, for an app that was opened in asyncio."""
        job = self._job(scope, conversation, in_seconds, connection)
        with _translated():
            try:
                if connection is None:
                    await job.defer_async(scope=scope, conversation=conversation)
                else:
                    if _begins_now(connection):
                        await connection.execute("SELECT 1")
                    async with connection.transaction():
                        await job.defer_async(scope=scope, conversation=conversation)
            except AlreadyEnqueued:
                return False
        return True

    def _job(
        self, scope: str, conversation: str, in_seconds: float, connection: object
    ) -> JobDeferrer:
        check_id(scope, "scope")
        check_id(conversation, "conversation")
        name = lock_of(scope, conversation)
        options: dict[str, Any] = {"queue": self.queue, "lock": name, "queueing_lock": name}
        if in_seconds > 0:
            options |= {
                "queueing_lock": f"{name}/later",
                "priority": LATER,
                "schedule_in": {"seconds": in_seconds},
            }
        if connection is not None:
            options["connection"] = connection
        return self.app.configure_task(LOOK, **options)

    def __enter__(self) -> Self:
        with _translated():
            self.app.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.app.close()


def dispatcher(app: App | str, *, schema: str | None = None, queue: str = QUEUE) -> Dispatcher:
    """A dispatcher on an app of Procrastinate, or on the database that a connection string or URL names.

    ``schema`` is where Procrastinate's tables are, if the role's search path does not say so.
    """
    return Dispatcher(app_on(app, schema) if isinstance(app, str) else app, queue)


def app_on(conninfo: str, schema: str | None = None) -> App:
    """An app of Procrastinate on a database; the URL of a ledger will do. Raises :class:`InvalidSetting`."""
    given = {} if schema is None else {"options": f"-c search_path={_name(schema)}"}
    kwargs = {"application_name": "compaction-ledger procrastinate", **given}
    return App(connector=PsycopgConnector(conninfo=_conninfo(conninfo), min_size=1, kwargs=kwargs))


def install(conninfo: str, *, schema: str | None = None) -> bool:
    """Make Procrastinate's tables where there are none; whether they were made.

    Where a newer version of Procrastinate wants its tables migrated, that is done in its own way. Raises
    :class:`InvalidSetting`, and kinds of :class:`StoreError`.
    """
    try:
        with psycopg.connect(_conninfo(conninfo)) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (RESCUE,))
            if schema is not None:
                name = sql.Identifier(_name(schema))
                connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
                connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(name))
            found = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
            if found != (None,):
                return False
            connection.execute(SchemaManager.get_schema())
    except psycopg.Error as error:
        raise translated(error, NAME) from error
    return True


def add_tasks(app: App, look: Look, queue: str = QUEUE) -> None:
    """Let the workers of an app look at conversations, and free what dead workers held."""
    dispatching = Dispatcher(app, queue)

    @app.task(name=LOOK, queue=queue, pass_context=True)
    def look_at(context: JobContext, scope: str, conversation: str) -> None:
        try:
            again_in = look(scope, conversation, context.should_abort)
        except StoreError as error:
            logger.warning("the store cannot do it, and is asked again later: %s", error)
            again_in = STORE_SECONDS
        if again_in is not None:
            dispatching.defer(scope, conversation, in_seconds=again_in)

    @app.periodic(cron=EVERY_MINUTE)
    @app.task(name=RESCUE, queue=queue, queueing_lock=RESCUE, pass_context=True)
    async def rescue(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - it is given to us
        await free_stalled(context.app, queue)


async def free_stalled(app: App, queue: str = QUEUE, seconds: float = STALLED_SECONDS) -> int:
    """Have the looks of dead workers done by others; how many there were.

    Until then nobody else looks at their conversations, of which they have the locks.
    """
    manager, freed = app.job_manager, 0
    for job in await manager.get_stalled_jobs(queue=queue, seconds_since_heartbeat=seconds):
        try:
            if job.task_name == LOOK:
                await manager.retry_job(job)
            else:
                await manager.finish_job(job, Status.FAILED, delete_job=True)
        except UniqueViolation:  # another one waits already, and is as good
            await manager.finish_job(job, Status.FAILED, delete_job=True)
        except ConnectorException as error:  # somebody else has freed it meanwhile
            logger.debug("job %s: %s", job.id, error.__cause__)
            continue
        freed += 1
    return freed


def lock_of(scope: str, conversation: str) -> str:
    """The name of the lock of a conversation: short, whatever the ids are, for the sake of the index."""
    digest = hashlib.sha256(f"{scope}\0{conversation}".encode()).hexdigest()
    return f"{QUEUE}/{digest}"


def _begins_now(connection: Connection | AsyncConnection) -> bool:
    """Whether the next statement begins a transaction that is the caller's to end."""
    is_idle = connection.info.transaction_status is TransactionStatus.IDLE
    return is_idle and not connection.autocommit


def _conninfo(given: str) -> str:
    """What libpq takes. Raises :class:`InvalidSetting`, without what stands there (S4)."""
    if is_address(given):
        return parse_address(given).conninfo
    try:
        conninfo_to_dict(given)
    except psycopg.ProgrammingError as error:
        raise InvalidSetting(
            f"this is no connection string ({type(error).__name__})", place="conninfo"
        ) from None
    return given


def _name(schema: str) -> str:
    """The name of a schema. Raises :class:`InvalidSetting`."""
    if not (schema.isascii() and schema.isidentifier() and schema.islower()):
        raise InvalidSetting(f"{schema!a} must be lower-case letters, digits and _", place="schema")
    return schema


@contextmanager
def _translated() -> Generator[None]:
    """What Procrastinate says of its database, as an error of our tree."""
    try:
        yield
    except (ConnectorException, psycopg.Error) as error:
        cause = error if isinstance(error, psycopg.Error) else error.__cause__
        raise translated(cause if isinstance(cause, Exception) else error, NAME) from error
