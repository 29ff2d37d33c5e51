"""PgBouncer between clients and a server: a connection to the server lasts no longer than a transaction.

Debian's package is ``pgbouncer``. Tests are skipped where there is none.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from kept_processes import (
    KeptProcess,
    Lock,
    NotStarted,
    Order,
    find_program,
    free_port,
    keep,
    open_folder,
    unprivileged,
    wait_until,
)

# The first version that keeps statements prepared by name when it hands on connections.
KNOWS_PREPARED = (1, 21)


@dataclass
class Bouncer:
    """A PgBouncer that runs; every user is let in, as the superuser."""

    folder: Path
    port: int
    user: str
    process: KeptProcess
    version: tuple[int, ...]

    def url(self, database: str = "postgres") -> str:
        """The address of a database of the server, through it."""
        return f"postgresql://{quote(self.user)}@127.0.0.1:{self.port}/{quote(database)}"

    def show(self, what: str = "POOLS") -> list[dict[str, Any]]:
        """What its console shows: POOLS, SERVERS, CLIENTS, STATS …"""
        with self._console() as console:
            cursor = console.execute(f"SHOW {what}".encode())
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def order(self, command: str) -> None:
        """Have its console do something: PAUSE, RESUME, KILL, RECONNECT …"""
        with self._console() as console:
            console.execute(command.encode())

    def _console(self) -> psycopg.Connection:
        # The console understands simple queries alone.
        return psycopg.connect(
            self.url("pgbouncer"), autocommit=True, cursor_factory=psycopg.ClientCursor
        )

    def log_text(self) -> str:
        """All that it has said so far."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")


def bouncer_program() -> Path:
    """PgBouncer's program; else the test is skipped."""
    return find_program("pgbouncer", "/usr/sbin", "/usr/local/sbin") or pytest.skip(
        "needs PgBouncer (the package pgbouncer)"
    )


def bouncer_version() -> tuple[int, ...]:
    """Which PgBouncer there is."""
    said = subprocess.run(
        [bouncer_program(), "--version"], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said)
    assert found, said
    return tuple(map(int, found.groups()))


@contextmanager
def running_bouncer(
    url: str,
    *,
    pool_size: int = 5,
    mode: str = "transaction",
    max_prepared_statements: int = 0,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Bouncer]:
    """A PgBouncer before the server of ``url``, whatever the database, with so many connections to each.

    With no ``max_prepared_statements`` it knows nothing of statements prepared by name, as all did before
    version 1.21: where a client expects one, there may be none.
    """
    version = bouncer_version()
    more = dict(settings or {})
    if version >= KNOWS_PREPARED:
        more["max_prepared_statements"] = str(max_prepared_statements)
    elif max_prepared_statements:
        pytest.skip("needs PgBouncer 1.21 or newer")
    folder = open_folder("bouncer")
    lock = Lock(folder / "lock")
    try:
        more = {"pool_mode": mode, "default_pool_size": str(pool_size)} | more
        yield _started(url, folder, lock, version, more)
    finally:
        lock.release()  # upon which its keeper ends it
        with suppress(TimeoutError):
            wait_until(lambda: not folder.exists())
        shutil.rmtree(folder, ignore_errors=True)


def _started(
    url: str, folder: Path, lock: Lock, version: tuple[int, ...], more: Mapping[str, str]
) -> Bouncer:
    parts = urlsplit(url)
    user = parts.username or "postgres"
    port = free_port()
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "any",
        "max_client_conn": "500",
        "server_login_retry": "0.1",
        **more,
    }
    target = f"* = host={parts.hostname} port={parts.port or 5432} user={user}"
    lines = [f"{name} = {value}" for name, value in settings.items()]
    file = folder / "pgbouncer.ini"
    file.write_text("\n".join(["[databases]", target, "[pgbouncer]", *lines, ""]))
    process = keep(
        Order(
            command=[bouncer_program(), file],
            lock=lock.path,
            log=folder / "log",
            user=unprivileged(),
            folder=folder,
        )
    )
    bouncer = Bouncer(folder, port, user, process, version)
    wait_until(lambda: not process.alive() or _listens(port), 30, "PgBouncer to listen")
    if not process.alive():
        raise NotStarted(bouncer.log_text())
    return bouncer


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
