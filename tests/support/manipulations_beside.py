"""What stands beside the log: erasures, keys, checkpoints, the tree, in the database and in the folders."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from forgeries import beginning, envelope_of, put_resealed
from histories import bring_in, fill, present_job
from manipulated import (
    GONE_CLAIM,
    LATE,
    OTHER_CLAIM,
    OTHER_SUMMARY,
    REQUESTED,
    SIGNED,
    SIZE,
    SUMMARY,
)
from manipulation_rows import Table
from manipulations import Victim

from compaction_ledger import Ledger
from compaction_ledger.domain.erasure import ErasureRequested
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.streams import erasure_stream
from compaction_ledger.settings import Settings

BESIDE = Table()
row = BESIDE.row

ERASURES = "Erasures"


def keys_of(victim: Victim) -> Path:
    """The folder of keys."""
    assert victim.settings.keys_folder is not None
    return victim.settings.keys_folder


@contextmanager
def data_keys(victim: Victim) -> Iterator[sqlite3.Connection]:
    """The file of data keys and erasures, as anybody opens it who can write there."""
    with closing(sqlite3.connect(keys_of(victim) / "data-keys.db")) as connection:
        yield connection
        connection.execute("UPDATE revision SET number = number + 1")
        connection.commit()


def reference_of(victim: Victim, index: int) -> str:
    """The reference of the conversation of an event."""
    return envelope_of(victim.rows()[index]).subject


@row(
    ERASURES,
    "a request made up, and the reference marked as erased",
    ("erasure", SIZE),
    where="the request",
    requests="without it",
    note="nothing more is recorded of the conversation, and nothing of it is read",
)
def request_made_up(victim: Victim) -> None:
    like = victim.rows()[OTHER_SUMMARY]
    subject = envelope_of(like).subject
    key = envelope_of(like).key
    payload = codec.encode(ErasureRequested(subject, (key,)))
    victim.append(beginning(erasure_stream(subject).hex, like, "ErasureRequested@1", payload, SIZE))
    victim.execute(
        f"UPDATE {victim.table('subjects')} SET state = 'erased' WHERE reference = '{subject}'"
    )


@row(
    ERASURES,
    "noted in the keys, of a conversation that nobody erased",
    ("erasure", OTHER_CLAIM),
    where="the first event of the conversation",
    requests="without it",
)
def tombstone_made_up(victim: Victim) -> None:
    last = victim.rows()[OTHER_SUMMARY]
    sealed = envelope_of(last)
    with data_keys(victim) as connection:
        connection.execute(
            "INSERT INTO erasures VALUES (?, x'00', ?, 'completed')", (sealed.subject, sealed.key)
        )


@row(
    ERASURES,
    "forgotten in the keys, while the key stays destroyed",
    ("erasure", REQUESTED),
    where="the request",
)
def tombstones_deleted(victim: Victim) -> None:
    with data_keys(victim) as connection:
        connection.execute("DELETE FROM erasures")


@row(
    ERASURES,
    "the request and what follows cut out of the log, with valid hashes",
    ("erasure", GONE_CLAIM),
    ("root", SIGNED[0]),
    where="the first event of the conversation; between two checkpoints",
    requests="without it",
)
def request_cut_out(victim: Victim) -> None:
    put_resealed(victim, lambda rows: [one for one in rows if not one.topic.startswith("Erasure")])


KEYS = "Keys"


def _another(victim: Victim) -> Path:
    """The keys of another ledger."""
    folder = keys_of(victim).with_name("another")
    settings = Settings(keys_folder=folder / "keys", checkpoints_folder=folder / "checkpoints")
    folder.mkdir()
    with Ledger.open(folder / "ledger.db", settings=settings) as ledger:
        fill(ledger._parts, 40, LATE)
        bring_in(ledger._parts, present_job(ledger._parts, 0, conversation=LATE))
        ledger.checkpoint()
    return folder


@row(
    KEYS,
    "the data keys of another ledger in their place",
    ("erasure", REQUESTED),
    where="the first erasure that they do not know of",
    requests="refused",
    note="without an erasure it is `keys`",
)
def data_keys_of_another(victim: Victim) -> None:
    shutil.copy(_another(victim) / "keys" / "data-keys.db", keys_of(victim))


@row(
    KEYS, "the keyring of another ledger in its place", ("keys", None), where="", requests="refused"
)
def keyring_of_another(victim: Victim) -> None:
    shutil.copy(_another(victim) / "keys" / "keyring.json", keys_of(victim))


@row(KEYS, "the data keys deleted", ("keys", None), where="", requests="refused")
def data_keys_deleted(victim: Victim) -> None:
    (keys_of(victim) / "data-keys.db").unlink()


@row(KEYS, "the keyring deleted", ("keys", None), where="", requests="refused")
def keyring_deleted(victim: Victim) -> None:
    (keys_of(victim) / "keyring.json").unlink()


@row(KEYS, "one data key exchanged for another's", ("keys", None), where="", requests="without it")
def wrapped_keys_exchanged(victim: Victim) -> None:
    rows = victim.rows()
    one, other = (envelope_of(rows[index]).key for index in (SUMMARY, OTHER_SUMMARY))
    with data_keys(victim) as connection:
        ((wrapped,),) = connection.execute(
            "SELECT wrapped FROM data_keys WHERE id = ?", (other,)
        ).fetchall()
        connection.execute("UPDATE data_keys SET wrapped = ? WHERE id = ?", (wrapped, one))


@row(
    KEYS, "a data key emptied, without an erasure", ("keys", None), where="", requests="without it"
)
def wrapped_key_emptied(victim: Victim) -> None:
    with data_keys(victim) as connection:
        connection.execute(
            "UPDATE data_keys SET wrapped = x'' WHERE id = ?",
            (envelope_of(victim.rows()[SUMMARY]).key,),
        )


@row(KEYS, "the signer's keys deleted", ("checkpoint", None), where="")
def signer_keys_deleted(victim: Victim) -> None:
    (keys_of(victim) / "signer-keys").unlink()


@row(KEYS, "the signer's keys of another ledger in their place", ("checkpoint", None), where="")
def signer_keys_of_another(victim: Victim) -> None:
    shutil.copy(_another(victim) / "keys" / "signer-keys", keys_of(victim))


@row(KEYS, "the list of verifier keys, to one of another log", ("checkpoint", None), where="")
def verifier_keys_of_another(victim: Victim) -> None:
    folder = _another(victim)
    settings = Settings(keys_folder=folder / "keys")
    with Ledger.open(folder / "ledger.db", settings=settings) as another:
        (key,) = another.signer_keys().verifier_keys()
    (keys_of(victim) / "verifier-keys").write_text(f"{key}\n")


@row(
    KEYS,
    "a new signer's key, and new checkpoints signed by it",
    note="the log is as it was; `--key` with the published key tells it, and a witness cosigns no more",
)
def signer_replaced(victim: Victim) -> None:
    (keys_of(victim) / "signer-keys").unlink()
    victim.forget_signing()
    victim.sign()


CHECKPOINTS = "The folder of checkpoints"


@row(CHECKPOINTS, "the newest checkpoint changed", ("checkpoint", None), where="the file")
def checkpoint_changed(victim: Victim) -> None:
    path = victim.checkpoints / "checkpoint"
    path.write_bytes(path.read_bytes().replace(b"\n%d\n" % SIGNED[1], b"\n20\n"))


@row(
    CHECKPOINTS,
    "a copy of an older one in the place of the newest",
    where="",
    note="both are true of the log; the copies of both are still there",
)
def checkpoint_older(victim: Victim) -> None:
    shutil.copy(
        victim.checkpoints / "checkpoints" / str(SIGNED[0]), victim.checkpoints / "checkpoint"
    )


@row(CHECKPOINTS, "a copy under another size", ("checkpoint", None), where="the file")
def checkpoint_renamed(victim: Victim) -> None:
    copies = victim.checkpoints / "checkpoints"
    (copies / str(SIGNED[0])).rename(copies / "11")


@row(CHECKPOINTS, "a checkpoint of another log added", ("checkpoint", None), where="the file")
def checkpoint_of_another(victim: Victim) -> None:
    another = _another(victim) / "checkpoints" / "checkpoints" / "1"
    shutil.copy(another, victim.checkpoints / "checkpoints" / "1")


@row(
    CHECKPOINTS,
    "all deleted",
    where="",
    note="what was signed is not known here any more; a witness knows",
)
def checkpoints_deleted(victim: Victim) -> None:
    shutil.rmtree(victim.checkpoints)


TREE = "Hashes that are kept over the log (`tree_nodes`, `signer`)"


@row(TREE, "a hash", ("tree", 0), where="the first event of the subtree")
def tree_node(victim: Victim) -> None:
    victim.grow("c-long", 90)
    victim.sign()
    victim.change(f"UPDATE {victim.table('tree_nodes')} SET hash = ?", bytes(32))


@row(
    TREE,
    "what the signer announced",
    where="",
    note="nothing is proved by it; the next signing refuses to go on, and says both heads",
)
def announced(victim: Victim) -> None:
    victim.change(f"UPDATE {victim.table('signer')} SET root = ?", bytes(32))
