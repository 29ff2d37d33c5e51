"""Logs to be signed: on SQLite, with rows of any number, and what signs them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

from compaction_ledger.domain.proof.notes import NoteSigner
from compaction_ledger.infrastructure.proof.ed25519 import (
    Ed25519Signer,
    Ed25519Verifier,
    private_key,
)
from compaction_ledger.infrastructure.proof.folder import CheckpointFolder
from compaction_ledger.infrastructure.sqlite.database import Database, open_database
from compaction_ledger.infrastructure.tree.sqlite import SQLiteTree
from compaction_ledger.usecases.proving import Prover
from compaction_ledger.usecases.signing import LogSigner

AT_ONCE = 50_000


def envelope(index: int, mark: str = "") -> bytes:
    """What stands for an envelope."""
    return b"envelope %d%s" % (index, mark.encode())


def leaf(index: int, mark: str = "") -> bytes:
    """Its leaf hash."""
    return sha256(b"\x00" + envelope(index, mark)).digest()


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, past all of this software: triggers that guard the log are dropped."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        yield connection
        connection.commit()


def add_leaves(path: Path, count: int, mark: str = "") -> None:
    """Add so many rows whose seals nobody looks at, but whose leaves are those of their envelopes."""
    with raw(path) as connection:
        ((size,),) = connection.execute("SELECT size FROM log_head").fetchall()
        connection.executemany(
            "INSERT INTO stored_events VALUES (?, ?, ?, 'Nothing@1', ?, ?, x'')",
            (
                (index, f"{index:032x}", 1, leaf(index, mark), envelope(index, mark))
                for index in range(size, size + count)
            ),
        )
        connection.execute("UPDATE log_head SET size = ?", (size + count,))


def cut_leaves(path: Path, size: int) -> None:
    """Take away the end of the log, as an old copy of it would be."""
    with raw(path) as connection:
        connection.execute("DELETE FROM stored_events WHERE idx >= ?", (size,))
        connection.execute("UPDATE log_head SET size = ?", (size,))


class SignedLog:
    """A log in a folder, its checkpoints beside it, and one session on it."""

    def __init__(self, folder: Path, *, key: int = 7) -> None:
        self.path = folder / "log.db"
        self.database: Database = open_database(self.path)
        self.tree = SQLiteTree(self.database)
        self.origin = self.tree.head()[1]
        self.checkpoints = folder / "checkpoints"
        self.published = CheckpointFolder(self.checkpoints, lock_seconds=0.2)
        self.key = Ed25519Signer(self.origin, private_key(bytes([key]) * 32))

    def signer(self, *more: NoteSigner, holder: str = "one") -> LogSigner:
        """What signs it."""
        verifiers = [Ed25519Verifier(self.key.verifier_key)]
        verifiers += [Ed25519Verifier(one.verifier_key) for one in more]
        return LogSigner(self.tree, self.published, [self.key, *more], verifiers, holder)

    def prover(self) -> Prover:
        """What proves."""
        verifiers = [Ed25519Verifier(self.key.verifier_key)]
        return Prover(self.tree, self.published, lambda: verifiers)

    def close(self) -> None:
        """Close the session."""
        self.database.close()


@contextmanager
def signed_log(folder: Path, leaves: int = 0) -> Iterator[SignedLog]:
    """A log of so many leaves, not signed yet."""
    log = SignedLog(folder)
    try:
        add_leaves(log.path, leaves)
        yield log
    finally:
        log.close()
