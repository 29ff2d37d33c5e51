"""What verification finds (L1, L3, K4): every column changed, rows swapped, deleted, put back, made up."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from backends import SQLiteBackend
from histories import (
    CONVERSATION,
    SCOPE,
    Worker,
    bring_in,
    every_kind,
    fill,
    made_up_job,
    present_job,
)

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import DamagedLog, LedgerError
from compaction_ledger.infrastructure.event_store.envelope import leaf_hash, parse
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.verifying import Verification

# Where things stand in the history of ``every_kind``, behind which the fixture records a delivery.
SUMMARY, IMPORTED, LAST = 2, 3, -1
Change = Callable[[sqlite3.Connection], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with every kind of fact, projected and closed; its payloads can be read by everybody.

    What is done to encrypted ones stands in ``test_manipulations.py``.
    """
    store = SQLiteBackend(tmp_path_factory.mktemp("original"), settings=Settings(encryption="off"))
    parts = store.open()
    fill(parts, 80)
    every_kind(parts)
    ledger = Ledger(parts, Settings())
    ledger.catch_up()
    assembly = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)
    assert [used.index for used in assembly.manifest.summaries] == [SUMMARY, IMPORTED]
    ledger.record_delivery(assembly)
    assert ledger.verify().ok
    store.close()
    return store.path


@pytest.fixture(scope="module")
def size(original: Path) -> int:
    """How many events it has."""
    with Ledger.open(original, read_only=True) as ledger:
        return ledger.size()


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copy(original, tmp_path / "ledger.db"))


@contextmanager
def intruder(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody who writes to the file past all of our software, and past its triggers."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for (name,) in names:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        yield connection
        connection.commit()


def tampered(path: Path, change: str | Change) -> Verification:
    """What verification says after ``change``."""
    with intruder(path) as connection:
        if isinstance(change, str):
            connection.executescript(change)
        else:
            change(connection)
    with Ledger.open(path, read_only=True) as ledger:
        return ledger.verify()


def found(verification: Verification) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.index) for finding in verification.findings]


# --- single columns ---

EVENT = {
    "originator_id": ["'" + "0" * 32 + "'", "upper(originator_id)", "''", "x'00'", "7"],
    "originator_version": ["9", "0", "-1", "'x'", "1.5", "originator_version || ''", "x'00'"],
    "topic": ["'RangeClaimed@1'", "'RangeCompleted@2'", "'RangeCompleted'", "x'00'", "7", "''"],
    "state": [
        "CAST(replace(CAST(state AS TEXT), 'Fund', 'Bond') AS BLOB)",
        "state || ' '",
        "x''",
        "'text'",
        "7",
        "CAST(state AS TEXT)",
    ],
}
LEAF = {
    "envelope": [
        "envelope || ' '",
        "x''",
        "x'00'",
        "'text'",
        "7",
        "CAST(envelope AS TEXT)",
        "CAST(replace(CAST(envelope AS TEXT), '\"recorded\":1', '\"recorded\":2') AS BLOB)",
    ],
    "leaf": ["zeroblob(32)", "x''", "'text'", "7", "hex(leaf)", "substr(leaf, 1, 31)"],
}
COLUMNS = [(column, value) for column, values in {**EVENT, **LEAF}.items() for value in values]


@pytest.mark.slow
@pytest.mark.parametrize(("column", "value"), COLUMNS)
@pytest.mark.parametrize("place", [0, SUMMARY, LAST])
def test_a_changed_column_is_found_at_its_index(
    copy: Path, size: int, column: str, value: str, place: int
) -> None:
    index = place % size
    before = _everything(copy)
    verification = tampered(
        copy, f"UPDATE stored_events SET {column} = {value} WHERE idx = {index}"
    )
    if _everything(copy) == before:  # the value is what stands there anyway
        assert verification.ok
        return
    assert index in [finding.index for finding in verification.findings]
    # Where the event is gone from its stream, the next of that stream shows it too.
    behind = {0: 1, SUMMARY: 4, LAST: index}[place]
    assert {finding.index for finding in verification.findings} <= {index, behind}


def _everything(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT *, typeof(idx) FROM stored_events").fetchall()


@pytest.mark.parametrize("place", [1, LAST])
def test_a_changed_index_is_found(copy: Path, size: int, place: int) -> None:
    index = place % size
    verification = tampered(copy, f"UPDATE stored_events SET idx = 500 WHERE idx = {index}")
    assert index in [finding.index for finding in verification.findings]


@pytest.mark.parametrize("value", ["size - 1", "size + 1", "0", "'x'", "1.5", "-1", "x'00'"])
def test_a_changed_head_is_found(copy: Path, value: str) -> None:
    verification = tampered(copy, f"UPDATE log_head SET size = {value}")
    assert "head" in [finding.code for finding in verification.findings]


def test_a_changed_origin_is_found_everywhere(copy: Path, size: int) -> None:
    verification = tampered(copy, "UPDATE log_head SET origin = 'compaction-ledger/other'")
    assert found(verification) == [("origin", index) for index in range(size)]


@pytest.mark.parametrize("origin", ["''", "x'00'", "7"])
def test_an_origin_that_is_none_is_found(copy: Path, origin: str) -> None:
    verification = tampered(copy, f"UPDATE log_head SET origin = {origin}")
    assert found(verification)[0][0] in ("head", "origin")


def test_a_deleted_head_is_found(copy: Path) -> None:
    verification = tampered(copy, "DELETE FROM log_head")
    assert "head" in [finding.code for finding in verification.findings]


# --- rows ---


def test_swapped_payloads_are_found_at_both(copy: Path) -> None:
    verification = tampered(copy, _swap("stored_events", "state", SUMMARY, IMPORTED))
    assert found(verification) == [("seal", SUMMARY), ("seal", IMPORTED)]


def test_swapped_ciphertexts_of_one_kind_are_found_at_both(copy: Path) -> None:
    """The two claims' payloads: each would read well in the other's place."""
    verification = tampered(copy, _swap("stored_events", "state", 0, 5))
    assert found(verification) == [("seal", 0), ("seal", 5)]


def test_swapped_leaves_are_found_at_both(copy: Path) -> None:
    def swap(connection: sqlite3.Connection) -> None:
        for column in ("envelope", "leaf"):
            connection.executescript(_swap("stored_events", column, SUMMARY, IMPORTED))

    verification = tampered(copy, swap)
    assert {index for _, index in found(verification)} >= {SUMMARY, IMPORTED}


@pytest.mark.parametrize(("one", "other"), [(0, 1), (2, 3), (0, 12), (7, 8)])
def test_events_swapped_with_their_leaves_are_found(copy: Path, one: int, other: int) -> None:
    """Within one stream the chain shows it; between two, only what the rows say of places (K3)."""

    def swap(connection: sqlite3.Connection) -> None:
        connection.executescript(
            f"UPDATE stored_events SET idx = -1 WHERE idx = {one};"
            f"UPDATE stored_events SET idx = {one} WHERE idx = {other};"
            f"UPDATE stored_events SET idx = {other} WHERE idx = -1;"
        )

    assert not tampered(copy, swap).ok


def _swap(table: str, column: str, one: int, other: int) -> str:
    return (
        f"CREATE TEMP TABLE kept AS SELECT {column} AS v FROM {table} WHERE idx = {one};"
        f"UPDATE {table} SET {column} = (SELECT {column} FROM {table} WHERE idx = {other})"
        f" WHERE idx = {one};"
        f"UPDATE {table} SET {column} = (SELECT v FROM kept) WHERE idx = {other};"
        "DROP TABLE kept;"
    )


@pytest.mark.parametrize("place", [0, 7, LAST], ids=["first", "middle", "last"])
def test_a_deleted_row_is_found(copy: Path, size: int, place: int) -> None:
    index = place % size
    codes = found(tampered(copy, f"DELETE FROM stored_events WHERE idx = {index}"))
    assert codes[0] == ("head", None)
    assert ("hole", index) in codes


@pytest.mark.parametrize("kept", [0, 1, 10])
def test_a_deleted_tail_is_found(copy: Path, kept: int) -> None:
    deletion = f"DELETE FROM stored_events WHERE idx >= {kept}"
    assert ("hole", kept) in found(tampered(copy, deletion))


def test_a_tail_deleted_with_its_head_shows_in_the_read_models(copy: Path) -> None:
    """The log alone is consistent then: only a checkpoint could tell. The rows know better."""
    deletion = "DELETE FROM stored_events WHERE idx >= 10;"
    verification = tampered(copy, f"{deletion} UPDATE log_head SET size = 10;")
    assert found(verification) == [("read_models", None)]


def test_a_deleted_row_put_back_elsewhere_is_found(copy: Path, size: int) -> None:
    def move(connection: sqlite3.Connection) -> None:
        connection.execute(f"UPDATE stored_events SET idx = {size} WHERE idx = 0")
        connection.execute("UPDATE stored_events SET idx = idx - 100")
        connection.execute("UPDATE stored_events SET idx = idx + 99")

    codes = found(tampered(copy, move))
    assert {("stream", 0), ("stream", size - 1)} <= set(codes)


def test_a_deleted_row_put_back_as_it_was_is_no_change(copy: Path) -> None:
    def put_back(connection: sqlite3.Connection) -> None:
        row = connection.execute("SELECT * FROM stored_events WHERE idx = 7").fetchone()
        connection.execute("DELETE FROM stored_events WHERE idx = 7")
        connection.execute("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    assert tampered(copy, put_back).ok


def test_an_event_slipped_in_is_found(copy: Path, size: int) -> None:
    def slip_in(connection: sqlite3.Connection) -> None:
        stream, version, topic, state = connection.execute(
            "SELECT originator_id, originator_version, topic, state FROM stored_events WHERE idx = 2"
        ).fetchone()
        connection.execute(
            "INSERT INTO stored_events VALUES (?, ?, ?, ?, x'', x'', ?)",
            (size, stream, version + 50, topic, state),
        )

    codes = found(tampered(copy, slip_in))
    assert codes[0] == ("head", None)
    assert ("leaf", size) in codes


# --- an intruder who knows the format ---


def reseal(connection: sqlite3.Connection, index: int, **changes: object) -> bytes:
    """Write the leaf of ``index`` anew, consistent in itself, with ``changes`` to its envelope."""
    (envelope,) = connection.execute(
        "SELECT envelope FROM stored_events WHERE idx = ?", (index,)
    ).fetchone()
    fields = {**json.loads(envelope), **changes}
    written = json.dumps(fields, separators=(",", ":"), sort_keys=True).encode()
    assert parse(written) is not None
    connection.execute(
        "UPDATE stored_events SET envelope = ?, leaf = ? WHERE idx = ?",
        (written, leaf_hash(written), index),
    )
    return leaf_hash(written)


@pytest.mark.parametrize(
    "changes",
    [{"recorded": 1}, {"key": "k1"}, {"subject": "7" * 32}, {"origin": "another/log"}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_leaf_written_anew_breaks_the_chain_behind_it(
    copy: Path, changes: dict[str, object]
) -> None:
    codes = found(tampered(copy, lambda connection: reseal(connection, 1, **changes)))
    assert ("chain", 2) in codes


def test_a_payload_resealed_breaks_the_chain_behind_it(copy: Path) -> None:
    def rewrite(connection: sqlite3.Connection) -> None:
        (state,) = connection.execute("SELECT state FROM stored_events WHERE idx = 16").fetchone()
        other = state.replace(b'"number":2', b'"number":1')
        assert other != state
        connection.execute("UPDATE stored_events SET state = ? WHERE idx = 16", (other,))
        reseal(connection, 16, payload=hashlib.sha256(other).hexdigest())

    assert ("chain", 17) in found(tampered(copy, rewrite))


def test_the_last_event_of_a_stream_resealed_shows_in_the_read_models_at_best(copy: Path) -> None:
    """Nothing follows it in its stream, so only a checkpoint sees a change of what no row holds (K3).

    What the rows hold is compared: here, the number of the attempt.
    """

    def rewrite(connection: sqlite3.Connection) -> None:
        (state,) = connection.execute("SELECT state FROM stored_events WHERE idx = 12").fetchone()
        other = state.replace(b'"number":1', b'"number":2')
        assert other != state
        connection.execute("UPDATE stored_events SET state = ? WHERE idx = 12", (other,))
        reseal(connection, 12, payload=hashlib.sha256(other).hexdigest())

    codes = found(tampered(copy, rewrite))
    assert [code for code, _ in codes] == ["read_model"] * 4  # summary, attempt: wanted, there


def chained(connection: sqlite3.Connection, **changes: object) -> None:
    """Change the envelopes of event 2 and of the next of its stream, with all hashes as they must be."""
    leaf = reseal(connection, SUMMARY, **changes)
    reseal(connection, 4, previous=leaf.hex(), **changes)


def test_another_key_than_the_payload_names_is_found(copy: Path) -> None:
    """An event that is not encrypted names no key (S1)."""
    codes = found(tampered(copy, lambda connection: chained(connection, key="epoch-1/7")))
    assert codes[0] == ("seal", SUMMARY)


def test_a_payload_that_names_another_key_is_found_however_it_is_sealed(tmp_path: Path) -> None:
    """The last event of its stream, with every hash made anew: only the payload disagrees (S1, K4)."""
    store = SQLiteBackend(tmp_path)
    parts = store.open()
    fill(parts, 80)
    Worker(parts, present_job(parts, 0)).complete()
    store.close()
    with intruder(store.path) as connection:
        ((payload,),) = connection.execute("SELECT state FROM stored_events WHERE idx = 2")
        changed = payload[:1] + b"\xab" * 16 + payload[17:]
        connection.execute("UPDATE stored_events SET state = ? WHERE idx = 2", (changed,))
        reseal(connection, 2, payload=hashlib.sha256(changed).hexdigest())
    with Ledger.open(store.path, read_only=True) as ledger:
        (finding,) = ledger.verify(seal_only=True).findings
    assert (finding.code, finding.index) == ("seal", 2)
    assert "names the key" in finding.message


def test_encryption_may_be_turned_on_within_a_stream(original: Path, tmp_path: Path) -> None:
    """Each envelope names its own key, and its leaf covers that (S1)."""
    store = SQLiteBackend(tmp_path)
    shutil.copy(original, store.path)
    parts = store.open()
    before = parts.context.log.size()
    Worker(parts, present_job(parts, 20), "again").claim()
    Worker(parts, present_job(parts, 60)).claim()
    envelopes = [parse(row.envelope) for row in store.recorder().rows(0, 100)]
    assert [len(envelope.key) for envelope in envelopes if envelope] == [0] * before + [32] * 2
    assert Ledger(parts, Settings()).verify().ok
    store.close()


def test_another_subject_within_a_stream_is_found(copy: Path) -> None:
    change = "7" * 32
    codes = found(tampered(copy, lambda connection: chained(connection, subject=change)))
    assert codes == [("stream", SUMMARY)]


@pytest.mark.parametrize("named", ["", ", scope = 'gone', conversation = 'gone'"])
def test_the_reference_of_an_erased_conversation_stands_for_none(copy: Path, named: str) -> None:
    """S3: only the log says what was erased: a row that says so by itself hides a conversation."""
    verification = tampered(copy, f"UPDATE subjects SET state = 'erased'{named}")
    assert found(verification) == [("erasure", 0)]


def test_another_conversations_reference_is_found(copy: Path) -> None:
    """Who changes the table of references makes the ledger forget, or mix up, whole conversations."""
    for change in (
        "UPDATE subjects SET reference = '" + "7" * 32 + "'",
        "UPDATE subjects SET conversation = 'another'",
        "UPDATE subjects SET scope = 'another'",
        "DELETE FROM subjects",
    ):
        shutil.copy(copy, copy.with_suffix(".changed"))
        verification = tampered(copy.with_suffix(".changed"), change)
        assert "subject" in [finding.code for finding in verification.findings], change


# --- read models ---

ROWS = [
    "UPDATE summaries_{g} SET status = 'completed' WHERE status = 'exhausted'",
    "UPDATE summaries_{g} SET idx = 3 WHERE idx = 2",
    "UPDATE summaries_{g} SET validity = 'projectable'",
    "UPDATE summaries_{g} SET source_hash = '0'",
    "UPDATE summaries_{g} SET settings = 'no json'",
    "UPDATE summaries_{g} SET attempts = x'00'",
    "UPDATE summaries_{g} SET prompt_version = 3",
    "DELETE FROM summaries_{g} WHERE status = 'exhausted'",
    "UPDATE ranges_{g} SET status = 'done'",
    "UPDATE ranges_{g} SET from_pair = x'00' WHERE from_pair = 0",
    "DELETE FROM ranges_{g}",
    "UPDATE attempts_{g} SET outcome = 'completed'",
    "UPDATE attempts_{g} SET number = 7 WHERE number = 2",
    "DELETE FROM attempts_{g} WHERE number = 2",
    "UPDATE deliveries_{g} SET bytes_used = 1",
    "DELETE FROM deliveries_{g}",
    "UPDATE deliveries_{g} SET delivery_id = 'another'",
    "UPDATE read_model_generations SET position = position - 1",
    "UPDATE read_model_generations SET position = position + 1",
    "UPDATE read_model_generations SET verdicts = '{{}}'",
    "UPDATE read_model_generations SET verdicts = 'another'",
    "UPDATE read_model_generations SET active = 0",
    "DROP TABLE summaries_{g}",
    "ALTER TABLE ranges_{g} ADD COLUMN more",
]


@pytest.mark.parametrize("change", ROWS)
def test_edited_rows_are_found_and_a_rebuild_mends_them(copy: Path, change: str) -> None:
    assert not tampered(copy, change.format(g=1)).ok
    with Ledger.open(copy) as ledger:
        ledger.rebuild()
        assert ledger.verify().ok


@pytest.mark.parametrize("change", ROWS)
def test_edited_rows_never_bring_a_wrong_summary_into_a_request(
    original: Path, copy: Path, change: str
) -> None:
    """A damaged read model degrades to originals (H9), and never to something else."""
    with intruder(copy) as connection:
        connection.executescript(change.format(g=1))
    with Ledger.open(original, read_only=True) as ledger:
        honest = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6).manifest
    with Ledger.open(copy, read_only=True) as ledger:
        manifest = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6).manifest
    assert set(manifest.summaries) <= set(honest.summaries)


TEXT = [
    "UPDATE stored_events SET state = replace(state, 'Fund', 'Bond') WHERE idx = 2",
    "UPDATE stored_events SET state = CAST(replace(state, 'Fund', 'Bond') AS BLOB) WHERE idx = 2",
    "UPDATE stored_events SET state = (SELECT state FROM stored_events WHERE idx = 3) WHERE idx = 2",
    "UPDATE stored_events SET state = 'text' WHERE idx = 2",
    "UPDATE stored_events SET topic = x'00' WHERE idx = 2",
    "UPDATE stored_events SET originator_id = x'00' WHERE idx = 2",
    "UPDATE stored_events SET originator_version = 'x' WHERE idx = 2",
    "UPDATE stored_events SET envelope = 'text' WHERE idx = 2",
    "UPDATE stored_events SET leaf = 7 WHERE idx = 2",
    "DELETE FROM stored_events WHERE idx = 2",
]


@pytest.mark.parametrize("change", TEXT)
def test_a_tampered_summary_never_reaches_a_request(copy: Path, change: str) -> None:
    with intruder(copy) as connection:
        connection.executescript(change)
    with Ledger.open(copy, read_only=True) as ledger:
        assembly = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)
        assert [used.index for used in assembly.manifest.summaries] == [IMPORTED]
        assert [(r.from_pair, r.reason) for r in assembly.manifest.rejected if r.from_pair == 0][
            0:1
        ] == [(0, "damaged")]
        assert "Bond" not in repr(assembly)
        with pytest.raises(DamagedLog):
            list(ledger.events())
        row = next(r for r in ledger.summaries(CONVERSATION, scope=SCOPE) if r.index == 2)
        assert ledger.summary_text(row) is None


@pytest.mark.parametrize(
    "change", [*TEXT, "DELETE FROM log_head", "UPDATE log_head SET size = 'x'"]
)
def test_a_damaged_log_stops_what_would_build_on_it(copy: Path, change: str) -> None:
    """Followers, rebuilds and workers fail with an error of ours; none hangs, none goes on past it."""
    with intruder(copy) as connection:
        connection.executescript(change)
    with Ledger.open(copy) as ledger:
        with pytest.raises(LedgerError):
            ledger.rebuild()
        with pytest.raises(LedgerError):
            ledger.import_summary(present_job(ledger._parts, 0), "text", origin="x")


@pytest.mark.parametrize("kept", [0, 5, 13])
def test_a_head_set_back_refuses_appends_as_damage(copy: Path, kept: int) -> None:
    with intruder(copy) as connection:
        connection.execute("UPDATE log_head SET size = ?", (kept,))
    with Ledger.open(copy) as ledger, pytest.raises(DamagedLog):
        bring_in(ledger._parts, made_up_job(70))


def test_tail_deleted_stops_followers_instead_of_turning_for_ever(copy: Path) -> None:
    with intruder(copy) as connection:
        connection.executescript("DELETE FROM stored_events WHERE idx > 12;")
    with Ledger.open(copy) as ledger:
        for ask in (ledger.rebuild, lambda: list(ledger.events()), lambda: ledger.at(index=14)):
            with pytest.raises(DamagedLog) as damage:
                ask()
            assert damage.value.index == 13
