"""What an owner who puts the trigger out of the way does to a log on PostgreSQL, and how it is found (K4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from histories import CONVERSATION, SCOPE, bring_in, every_kind, fill, made_up_job
from pg_ledgers import PgLedger, Session, ledger_on

from compaction_ledger.domain.errors import DamagedLog, LedgerError
from compaction_ledger.usecases.verifying import Verification

# Where things stand in the history of ``every_kind``, behind which the fixture records a delivery.
SUMMARY, IMPORTED, LAST = 2, 3, 20
# The next event of the same stream, which shows it, too, where one is gone from there.
BEHIND = {0: 1, SUMMARY: 4, LAST: LAST}
TABLES = ("stored_events", "log_head", "subjects")
Found = list[tuple[str, int | None]]


@dataclass
class Tampered:
    """A ledger with every kind of fact, what can be done to it, and copies to put it right again."""

    ledger: PgLedger
    session: Session

    def __call__(self, *changes: str) -> Verification:
        """What verification says after these changes."""
        for change in changes:
            self.ledger.execute(change)
        return self.session.ledger.verify()

    def found(self, *changes: str) -> Found:
        """Where it says something, and by which code."""
        return [(finding.code, finding.index) for finding in self(*changes).findings]

    def restore(self) -> None:
        """Put the tables right again."""
        for table in TABLES:
            self.ledger.execute(
                f"TRUNCATE {{schema}}.{table};"
                f"INSERT INTO {{schema}}.{table} SELECT * FROM {{schema}}.saved_{table}"
            )


@pytest.fixture(scope="module")
def original(pg_server: str) -> Iterator[Tampered]:
    """The ledger, projected."""
    with ledger_on(pg_server) as ledger:
        session = ledger.open()
        fill(session.parts, 80)
        every_kind(session.parts)
        session.ledger.catch_up()
        assembly = session.ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)
        assert [used.index for used in assembly.manifest.summaries] == [SUMMARY, IMPORTED]
        session.ledger.record_delivery(assembly)
        session.ledger.catch_up()
        assert session.ledger.size() == LAST + 1
        ledger.execute("ALTER TABLE {schema}.stored_events DISABLE TRIGGER USER")
        for table in TABLES:
            ledger.execute(f"CREATE TABLE {{schema}}.saved_{table} AS TABLE {{schema}}.{table}")
        yield Tampered(ledger, session)


@pytest.fixture
def tampered(original: Tampered) -> Iterator[Tampered]:
    """The ledger, as it was to begin with."""
    yield original
    original.restore()
    assert original.session.ledger.verify().ok


def test_the_trigger_stops_an_owner_who_does_not_mean_it(pg_server: str) -> None:
    with ledger_on(pg_server) as ledger:
        bring_in(ledger.open().parts, made_up_job())
        for change in (
            "UPDATE {schema}.stored_events SET topic = topic",
            "DELETE FROM {schema}.stored_events",
            "TRUNCATE {schema}.stored_events",
        ):
            with pytest.raises(psycopg.DatabaseError, match="stored_events is append-only"):
                ledger.execute(change)
        ledger.check()


# --- single columns -----------------------------------------------------------------------------

EVENT = {
    "originator_id": ["repeat('0', 32)", "upper(originator_id)", "''", "'x'"],
    "originator_version": ["9", "0", "-1"],
    "topic": ["'RangeClaimed@1'", "'RangeCompleted@2'", "'RangeCompleted'", "''"],
    "state": [
        "set_byte(state, 70, (get_byte(state, 70) + 1) % 256)",
        "state || ' '::bytea",
        "''::bytea",
        r"'\xff00'::bytea",
    ],
    "envelope": [
        "envelope || ' '::bytea",
        "''::bytea",
        r"'\x00'::bytea",
        "convert_to(replace(convert_from(envelope, 'UTF8'), '\"recorded\":1', '\"recorded\":2'), 'UTF8')",
    ],
    "leaf": [r"decode(repeat('00', 32), 'hex')", "''::bytea", "substr(leaf, 1, 31)"],
}
COLUMNS = [(column, value) for column, values in EVENT.items() for value in values]


@pytest.mark.slow
@pytest.mark.parametrize(("column", "value"), COLUMNS)
def test_a_changed_column_is_found_at_its_index(
    tampered: Tampered, column: str, value: str
) -> None:
    """By verification and by whoever reads it."""
    for place, behind in BEHIND.items():
        changed = tampered.ledger.execute(
            f"UPDATE {{schema}}.stored_events SET {column} = {value}"
            f" WHERE idx = {place} AND {column} IS DISTINCT FROM {value} RETURNING idx"
        )
        if not changed:  # it is what stands there anyway
            continue
        indices = {finding.index for finding in tampered().findings}
        assert place in indices
        assert indices <= {place, behind}
        with pytest.raises(DamagedLog) as damage:
            list(tampered.session.ledger.events())
        assert damage.value.index == place
        tampered.restore()


# --- the head -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["size - 1", "size + 1", "0", "size + 1000000"])
def test_a_changed_head_is_found(tampered: Tampered, value: str) -> None:
    found = tampered.found(f"UPDATE {{schema}}.log_head SET size = {value}")
    assert found[0] == ("head", None)


@pytest.mark.parametrize("kept", [0, 5, LAST])
def test_a_head_set_back_refuses_appends_as_damage(tampered: Tampered, kept: int) -> None:
    tampered(f"UPDATE {{schema}}.log_head SET size = {kept}")
    with pytest.raises(DamagedLog) as damage:
        bring_in(tampered.session.parts, made_up_job(70))
    assert damage.value.index == kept


def test_without_a_head_nothing_is_stored_or_read(tampered: Tampered) -> None:
    assert ("head", None) in tampered.found("DELETE FROM {schema}.log_head")
    ledger = tampered.session.ledger
    with pytest.raises(DamagedLog):
        bring_in(tampered.session.parts, made_up_job(70))
    for ask in (ledger.size, lambda: list(ledger.events()), ledger.rebuild):
        with pytest.raises(LedgerError):
            ask()
    ((count,),) = tampered.ledger.execute("SELECT count(*) FROM {schema}.stored_events")
    assert count == LAST + 1


@pytest.mark.parametrize("origin", ["compaction-ledger/other", ""])
def test_a_changed_origin_is_found_everywhere(tampered: Tampered, origin: str) -> None:
    found = tampered.found(f"UPDATE {{schema}}.log_head SET origin = '{origin}'")
    assert {("origin", index) for index in range(LAST + 1)} <= set(found)


# --- rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [0, 7, LAST], ids=["first", "middle", "last"])
def test_a_deleted_event_is_found_and_stops_whoever_reads_on(
    tampered: Tampered, index: int
) -> None:
    found = tampered.found(f"DELETE FROM {{schema}}.stored_events WHERE idx = {index}")
    assert found[0] == ("head", None)
    assert ("hole", index) in found
    ledger = tampered.session.ledger
    for ask in (lambda: list(ledger.events()), ledger.rebuild, lambda: ledger.at(index=LAST)):
        with pytest.raises(DamagedLog) as damage:
            ask()
        assert damage.value.index == index


@pytest.mark.parametrize("kept", [0, 1, 10])
def test_a_deleted_tail_is_found(tampered: Tampered, kept: int) -> None:
    found = tampered.found(f"DELETE FROM {{schema}}.stored_events WHERE idx >= {kept}")
    assert ("hole", kept) in found


def test_a_tail_deleted_with_its_head_shows_in_the_read_models(tampered: Tampered) -> None:
    """The log alone is consistent then: only a checkpoint could tell. The rows know better."""
    found = tampered.found(
        "DELETE FROM {schema}.stored_events WHERE idx >= 10",
        "UPDATE {schema}.log_head SET size = 10",
    )
    assert found == [("read_models", None)]


@pytest.mark.parametrize(("one", "other"), [(SUMMARY, IMPORTED), (0, 5)])
def test_swapped_payloads_are_found_at_both(tampered: Tampered, one: int, other: int) -> None:
    found = tampered.found(
        "UPDATE {schema}.stored_events AS e SET state = s.state FROM {schema}.saved_stored_events AS s"
        f" WHERE (e.idx, s.idx) IN (({one}, {other}), ({other}, {one}))"
    )
    assert found == [("seal", one), ("seal", other)]


@pytest.mark.parametrize(("one", "other"), [(0, 1), (2, 3), (0, 12), (7, 8)])
def test_events_swapped_with_their_leaves_are_found(
    tampered: Tampered, one: int, other: int
) -> None:
    assert not tampered(
        f"UPDATE {{schema}}.stored_events SET idx = -1 WHERE idx = {one}",
        f"UPDATE {{schema}}.stored_events SET idx = {one} WHERE idx = {other}",
        f"UPDATE {{schema}}.stored_events SET idx = {other} WHERE idx = -1",
    ).ok


def test_a_stream_without_its_last_event_takes_no_other_in_its_place(tampered: Tampered) -> None:
    """What is appended seals the hash of what it found before it."""
    tampered.found("DELETE FROM {schema}.stored_events WHERE idx = 1")
    bring_in(tampered.session.parts, made_up_job(70), name="later")
    found = tampered.found()
    assert ("hole", 1) in found


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {schema}.subjects SET reference = repeat('7', 32)",
        "UPDATE {schema}.subjects SET conversation = 'another'",
        "UPDATE {schema}.subjects SET scope = 'another'",
        "DELETE FROM {schema}.subjects",
    ],
)
def test_another_conversations_reference_is_found(tampered: Tampered, change: str) -> None:
    assert "subject" in [code for code, _ in tampered.found(change)]


TEXT = [value for column, value in COLUMNS if column == "state"]


@pytest.mark.parametrize("value", TEXT)
def test_a_tampered_summary_never_reaches_a_request(tampered: Tampered, value: str) -> None:
    tampered(f"UPDATE {{schema}}.stored_events SET state = {value} WHERE idx = {SUMMARY}")
    ledger = tampered.session.ledger
    assembly = ledger.assemble(CONVERSATION, scope=SCOPE, budget=10**6)
    assert [used.index for used in assembly.manifest.summaries] == [IMPORTED]
    assert (0, "damaged") in [(r.from_pair, r.reason) for r in assembly.manifest.rejected]
