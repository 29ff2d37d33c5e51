"""The port ``Log`` on every backend: appends, reading, the seal, and what an envelope may hold."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, cast
from uuid import UUID

import pytest
import rfc8785
from at_once import all_at_once
from backends import SECOND, START, Backend, SQLiteBackend
from eventsourcing.persistence import StoredEvent
from facts import delivery
from histories import CONVERSATION, LEASE, SCOPE, Worker, bring_in, key_of, made_up_job
from scenarios import GOOD, claimed, completed, failed, released, started

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    ConcurrentAppend,
    DamagedLog,
    DifferentResult,
    LeaseExpired,
    LedgerReadOnly,
    MalformedEvent,
    NotTheHolder,
    TimeHasPassed,
    UnknownEvent,
)
from compaction_ledger.domain.log import RangeKey, Recorded
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.range_stream import EMPTY, RangeState, fold
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.codec import STORED_NAMES, encode
from compaction_ledger.infrastructure.event_store.envelope import parse
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder
from compaction_ledger.infrastructure.event_store.streams import range_stream
from compaction_ledger.infrastructure.sqlite.database import open_database
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.range_session import RangeSession

JOB = made_up_job()
KEY = key_of(JOB)


# --- append, load, read -------------------------------------------------------------------------


def test_an_empty_log(parts: Parts) -> None:
    log = parts.context.log
    assert log.size() == 0
    assert log.load(KEY) == EMPTY
    assert list(log.read(0, 10)) == []
    assert log.at([0, 1]) == {}
    assert list(log.verify()) == []
    assert log.now() == START


def test_facts_come_back_as_they_were_appended(parts: Parts, backend: Backend) -> None:
    log = parts.context.log
    first = (claimed(), started())
    assert log.append(KEY, EMPTY, first) == [0, 1]
    backend.clock.advance(5)
    rest = (failed(), released())
    assert log.append(KEY, fold(first), rest) == [2, 3]
    assert log.size() == 4
    entries = log.read(0, 10)
    assert [entry.fact for entry in entries] == [*first, *rest]
    assert [entry.index for entry in entries] == [0, 1, 2, 3]
    assert [entry.version for entry in entries] == [1, 2, 3, 4]
    assert [entry.recorded_at - START for entry in entries] == [0, 0, 5_000_000, 5_000_000]
    assert len({entry.stream for entry in entries}) == 1
    assert log.load(KEY) == fold((*first, *rest))


@pytest.mark.slow_on("postgres")
def test_another_session_loads_the_same(backend: Backend) -> None:
    Worker(backend.open(), JOB).complete()
    other = backend.open()
    assert other.context.log.load(KEY).completions.keys() == {JOB.identity}
    assert other.context.log.load(RangeKey(SCOPE, CONVERSATION, 10)) == EMPTY
    assert other.context.log.load(RangeKey(SCOPE, "c-2", 0)) == EMPTY
    assert other.context.log.load(RangeKey("tenant-2", CONVERSATION, 0)) == EMPTY


def test_loading_makes_nothing(backend: Backend) -> None:
    backend.open().context.log.load(KEY)
    assert backend.recorder().find_subject(SCOPE, CONVERSATION) is None


def test_reading_in_parts(parts: Parts) -> None:
    log = parts.context.log
    for from_pair in (0, 10, 20):
        Worker(parts, made_up_job(from_pair)).complete()
    everything = list(log.read(0, 100))
    assert [entry.index for entry in everything] == list(range(9))
    assert list(log.read(2, 3)) == everything[2:5]
    assert list(log.read(2, 100, 4)) == everything[2:4]
    assert list(log.read(7, 100)) == everything[7:]
    assert list(log.read(9, 100)) == []
    assert list(log.read(0, 100, 1_000)) == everything
    assert log.at([8, 0, 5, 99]) == {index: everything[index] for index in (8, 0, 5)}
    assert log.at([]) == {}


@pytest.mark.slow
def test_many_indices_at_once(parts: Parts) -> None:
    for from_pair in range(0, 6_000, 10):
        parts.context.log.append(
            RangeKey(SCOPE, CONVERSATION, from_pair), EMPTY, [claimed(job=made_up_job(from_pair))]
        )
    found = parts.context.log.at(list(range(600)))
    assert sorted(found) == list(range(600))


def test_facts_of_a_plain_log_are_looked_up_at_once(tmp_path: Path) -> None:
    """Whether what stands before each is encrypted is asked for all of them together (S1)."""
    store = SQLiteBackend(tmp_path, settings=Settings(encryption="off"))
    parts = store.open()
    for from_pair in range(0, 50, 10):
        Worker(parts, made_up_job(from_pair), f"w{from_pair}").complete()
    log: Any = parts.context.log
    asked: list[int] = []
    rows_before = log.sealed.rows_before

    def count(events: Sequence[tuple[str, int]]) -> Any:
        asked.append(len(events))
        return rows_before(events)

    log.sealed.rows_before = count
    assert sorted(log.at(range(15))) == list(range(15))
    assert asked == [10]  # the first event of a stream has none before it
    store.close()


def test_deliveries_have_a_stream_each(parts: Parts) -> None:
    log = parts.context.log
    assert [log.deliver(delivery("d-1")), log.deliver(delivery("d-2"))] == [0, 1]
    first, second = log.read(0, 10)
    assert (first.fact, second.fact) == (delivery("d-1"), delivery("d-2"))
    assert first.stream != second.stream
    assert (first.version, second.version) == (1, 1)
    assert log.deliver(delivery("d-1")) == 0  # once more: its acknowledgement was lost
    with pytest.raises(DifferentResult):
        log.deliver(replace(delivery("d-1"), bytes_used=901))
    assert log.size() == 2


def test_text_in_any_script_comes_back(parts: Parts) -> None:
    text = '基金 A 每年收 0.3 %。 😀 e\u0301 é \u200b\u202e \ufeff \u2028 \U0010ffff "\\\x7f\x01'
    log = parts.context.log
    log.append(KEY, EMPTY, [claimed(), started(), completed(text=text)])
    entry = log.read(2, 1)[0]
    assert getattr(entry.fact, "text", None) == text
    assert list(log.verify()) == []


# --- who came first (A8) ------------------------------------------------------------------------


@pytest.mark.slow_on("postgres")
def test_an_old_state_cannot_be_appended_to(backend: Backend) -> None:
    log = backend.open().context.log
    other = backend.open().context.log
    log.append(KEY, EMPTY, [claimed()])
    with pytest.raises(ConcurrentAppend):
        other.append(KEY, EMPTY, [claimed("c2")])
    assert other.size() == 1
    assert other.append(KEY, other.load(KEY), [released()]) == [1]
    assert list(log.verify()) == []


def test_an_append_is_all_or_nothing(parts: Parts) -> None:
    log = parts.context.log
    log.append(KEY, EMPTY, [claimed(), started()])
    behind = fold([claimed()])
    with pytest.raises(ConcurrentAppend):
        log.append(KEY, behind, [failed(), released()])
    assert log.size() == 2


def test_two_sessions_claim_and_one_wins(backend: Backend) -> None:
    first, second = Worker(backend.open(), JOB, "first"), Worker(backend.open(), JOB, "second")
    assert (first.session.state, second.session.state) == (
        EMPTY,
        EMPTY,
    )  # both snapshots are old now
    first.claim()
    with pytest.raises(AlreadyClaimed) as refusal:
        second.claim()
    assert refusal.value.holder == "first"
    assert refusal.value.expires_at == START + LEASE


def test_an_old_snapshot_does_not_refuse_what_is_free_by_now(backend: Backend) -> None:
    first, second = Worker(backend.open(), JOB, "first"), Worker(backend.open(), JOB, "second")
    first.claim()
    assert second.session.state.open.keys() == {"first-claim"}  # and this is what it remembers
    first.release()
    assert second.claim().indices == [2]


def test_an_old_snapshot_does_not_say_that_a_claim_stands_which_is_over(backend: Backend) -> None:
    first, second = Worker(backend.open(), JOB, "first"), Worker(backend.open(), JOB, "second")
    first.claim()
    assert first.claim().already
    backend.clock.now += LEASE
    second.claim()
    with pytest.raises(NotTheHolder):
        first.claim()


def test_threads_claim_at_once_and_exactly_one_wins_each_range(backend: Backend) -> None:
    sessions = [backend.open() for _ in range(4)]
    jobs = [made_up_job(from_pair) for from_pair in range(0, 50, 10)]

    def claim_all(number: int, wait: Callable[[], object]) -> list[str]:
        won: list[str] = []
        for job in jobs:
            wait()
            try:
                Worker(sessions[number], job, f"w{number}").claim()
            except AlreadyClaimed:
                continue
            won.append(job.identity)
        return won

    won = [identity for names in all_at_once(len(sessions), claim_all) for identity in names]
    assert sorted(won) == sorted(job.identity for job in jobs)
    log = sessions[0].context.log
    assert log.size() == len(jobs)
    assert list(log.verify()) == []


# --- a decision holds for a time (A5) -----------------------------------------------------------


@pytest.mark.parametrize("within", [(START + 1, START + 9), (START - 9, START), (START, START)])
def test_an_append_outside_its_time_stores_nothing(parts: Parts, within: tuple[int, int]) -> None:
    log = parts.context.log
    with pytest.raises(TimeHasPassed):
        log.append(KEY, EMPTY, [claimed()], within)
    assert log.size() == 0
    assert log.load(KEY) == EMPTY
    assert list(log.verify()) == []
    assert log.append(KEY, EMPTY, [claimed()], (START, START + 1)) == [0]


class Waiting:
    """A log that is waited for: something happens between each decision and its append."""

    def __init__(self, log: Log, meanwhile: Callable[[], None]) -> None:
        self._log = log
        self._meanwhile = meanwhile
        self.loaded = 0

    def load(self, key: RangeKey) -> RangeState:
        self.loaded += 1
        return self._log.load(key)

    def append(self, *arguments: Any) -> Sequence[int]:
        self._meanwhile()
        return self._log.append(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def waiting(worker: Worker, meanwhile: Callable[[], None]) -> Waiting:
    """Let something happen before each append of ``worker``, which has seen the range already."""
    log = Waiting(worker.parts.context.log, meanwhile)
    worker.session = RangeSession(cast(Log, log), key_of(JOB))
    assert worker.session.state.version > 0
    return log


def once(happens: Callable[[], None]) -> Callable[[], None]:
    """What happens the first time, and no more."""
    left = [happens]
    return lambda: left.pop()() if left else None


def kinds(log: Log) -> list[str]:
    return [
        getattr(entry.fact, "reason", None)
        or getattr(entry.fact, "failure", None)
        or type(entry.fact).__name__
        for entry in log.read(0, 100)
    ]


BEGUN = ["RangeClaimed", "AttemptStarted"]


@pytest.mark.parametrize(
    ("act", "begun", "recorded"),
    [
        (Worker.start, False, ["expired"]),
        (Worker.release, False, ["expired"]),
        (Worker.finish, True, ["lease_expired", "expired"]),
    ],
)
def test_a_lease_that_ends_before_the_append_is_recorded_rather_than_the_act(
    backend: Backend, act: Callable[[Worker], object], begun: bool, recorded: list[str]
) -> None:
    worker = Worker(backend.open(), JOB)
    worker.claim()
    if begun:
        worker.start()
    log = waiting(worker, once(lambda: backend.clock.advance(LEASE / SECOND)))
    with pytest.raises(LeaseExpired):
        act(worker)
    assert kinds(worker.parts.context.log) == [*BEGUN[: 1 + begun], *recorded]
    assert log.loaded == 1  # the range is as it was, only the time is another
    assert list(worker.parts.context.log.verify()) == []


def test_a_lease_holds_until_its_last_instant_at_the_append(backend: Backend) -> None:
    worker = Worker(backend.open(), JOB)
    worker.claim()
    worker.start()
    waiting(worker, once(lambda: backend.clock.advance((LEASE - 1) / SECOND)))
    worker.finish()
    assert kinds(worker.parts.context.log) == [*BEGUN, "RangeCompleted"]


def test_nobody_takes_over_by_a_clock_that_went_back_before_the_append(backend: Backend) -> None:
    Worker(backend.open(), JOB, "first").claim()
    taker = Worker(backend.open(), JOB, "taker")
    backend.clock.advance(LEASE / SECOND)
    waiting(taker, once(lambda: backend.clock.advance(-1)))
    with pytest.raises(AlreadyClaimed):
        taker.claim()
    assert kinds(taker.parts.context.log) == ["RangeClaimed"]


def test_the_clock_is_read_after_the_lock(sqlite_store: SQLiteBackend) -> None:
    worker = Worker(sqlite_store.open(), JOB)
    worker.claim()
    worker.start()
    decided = Event()
    waiting(worker, decided.set)
    with ThreadPoolExecutor(1) as pool:
        with sqlite_store.database().transaction(commit=True):  # somebody writes for a long time
            finished = pool.submit(worker.finish)
            assert decided.wait(60)
            time.sleep(0.1)  # it stands at the lock
            sqlite_store.clock.advance(LEASE / SECOND)
        with pytest.raises(LeaseExpired):
            finished.result(60)
    log = worker.parts.context.log
    assert kinds(log) == [*BEGUN, "lease_expired", "expired"]
    assert {entry.recorded_at for entry in log.read(2, 2)} == {START + LEASE}


# --- the envelope (L3, L4) ----------------------------------------------------------------------


def sealed_history(backend: Backend) -> list[tuple[Recorded, bytes, bytes]]:
    """Two ranges and a delivery: what was recorded, its envelope, its payload."""
    parts = backend.open()
    Worker(parts, JOB).complete()
    Worker(parts, made_up_job(10)).complete()
    parts.context.log.deliver(delivery())
    rows = backend.recorder().rows(0, 100)
    entries = parts.context.log.read(0, 100)
    return [(entry, row[5], row[4]) for entry, row in zip(entries, rows, strict=True)]


def test_an_envelope_is_canonical_json_of_strings_and_integers(backend: Backend) -> None:
    for entry, envelope, payload in sealed_history(backend):
        fields = json.loads(envelope)
        assert rfc8785.dumps(fields) == envelope
        assert sorted(fields) == [
            "event",
            "format",
            "key",
            "origin",
            "payload",
            "previous",
            "recorded",
            "schema",
            "stream",
            "subject",
            "version",
        ]
        assert {type(value) for value in fields.values()} == {str, int}
        assert fields["payload"] == hashlib.sha256(payload).hexdigest()
        assert (fields["event"], fields["schema"]) == STORED_NAMES[type(entry.fact)]
        assert (fields["stream"], fields["version"]) == (entry.stream, entry.version)
        assert fields["recorded"] == entry.recorded_at
        assert re.fullmatch(r"[0-9a-f]{32}", fields["subject"])
        assert fields["format"] == 1
        again = parse(envelope)
        assert again is not None
        assert again.encode() == envelope


def test_each_envelope_holds_the_hash_of_the_one_before_it_in_its_stream(backend: Backend) -> None:
    last: dict[str, str] = {}
    for entry, envelope, _ in sealed_history(backend):
        assert json.loads(envelope)["previous"] == last.get(entry.stream, "")
        last[entry.stream] = hashlib.sha256(b"\x00" + envelope).hexdigest()
    assert len(last) == 3


def test_an_envelope_says_nothing_of_what_it_seals(backend: Backend) -> None:
    """No payload, no hash of plain text, no id that can be guessed (L3)."""
    quoted = [f'"{word}"' for word in (*JOB.messages, "w", "d-1", CONVERSATION)]
    words = [SCOPE, GOOD, *quoted, "run-", "w-claim", "openai"]
    guessable = [
        hashlib.new(kind, word.encode()).hexdigest()
        for word in (SCOPE, CONVERSATION, GOOD, *JOB.messages)
        for kind in ("sha256", "sha1", "md5")
    ]
    known_digests = [JOB.identity, JOB.source_hash, made_up_job(10).identity]
    for _, envelope, _ in sealed_history(backend):
        text = envelope.decode("ascii")
        assert not [word for word in (*words, *guessable, *known_digests) if word in text]


def test_streams_of_one_conversation_share_only_their_random_subject(tmp_path: Path) -> None:
    def histories(folder: Path) -> tuple[list[str], str]:
        folder.mkdir()
        store = SQLiteBackend(folder)
        streams = [entry.stream for entry, _, _ in sealed_history(store)]
        subject = store.recorder().find_subject(SCOPE, CONVERSATION)
        store.close()
        assert subject is not None
        return streams, subject.reference

    first, first_subject = histories(tmp_path / "1")
    second, second_subject = histories(tmp_path / "2")
    # The same conversation in two ledgers: no id agrees, so none was derived from it.
    assert first_subject != second_subject
    assert set(first).isdisjoint(second)
    assert first[0] == range_stream(first_subject, KEY).hex
    assert range_stream(first_subject, KEY) == range_stream(
        first_subject, RangeKey("anyone", "anything", 0)
    )


def test_two_ledgers_have_two_origins(tmp_path: Path) -> None:
    origins = set()
    for name in "ab":
        (tmp_path / name).mkdir()
        store = SQLiteBackend(tmp_path / name)
        origins.add(store.recorder().head()[1])
        store.close()
    assert len(origins) == 2


# --- what is stored is read by our table alone (A10, L5) ----------------------------------------


def put_raw(backend: Backend, topic: str, payload: bytes, key: RangeKey = KEY) -> None:
    """An event as another version of the software would have stored it."""
    recorder = backend.recorder()
    subject = recorder.subject(key.scope, key.conversation, "5" * 32).reference
    stream = range_stream(subject, key)
    recorder.insert_events([StoredEvent(stream, 1, topic, payload)], subject=subject)


@pytest.mark.parametrize(
    "topic", ["RangeForgotten@1", "RangeClaimed@2", "RangeClaimed@0", "os.system@1"]
)
def test_an_unknown_name_or_schema_is_refused_loudly(backend: Backend, topic: str) -> None:
    put_raw(backend, topic, encode(claimed(job=JOB)))
    log = backend.open().context.log
    with pytest.raises(UnknownEvent, match="index 0") as refusal:
        log.read(0, 10)
    assert refusal.value.index == 0
    with pytest.raises(UnknownEvent):
        log.load(KEY)
    assert log.at([0]) == {}
    with pytest.raises(UnknownEvent):
        Worker(backend.open(), JOB).claim()


GOOD_PAYLOAD = json.loads(encode(claimed(job=JOB)))


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        encode(started()),
        json.dumps({**GOOD_PAYLOAD, "more": 1}).encode(),
        json.dumps({**GOOD_PAYLOAD, "expires_at": "1"}).encode(),
        json.dumps({**GOOD_PAYLOAD, "expires_at": 1.5}).encode(),
        json.dumps({**GOOD_PAYLOAD, "holder": None}).encode(),
        json.dumps({name: GOOD_PAYLOAD[name] for name in GOOD_PAYLOAD if name != "job"}).encode(),
    ],
    ids=["nothing", "empty", "list", "bytes", "other", "more", "text", "float", "null", "fewer"],
)
def test_a_payload_of_another_shape_is_refused_loudly(backend: Backend, payload: bytes) -> None:
    put_raw(backend, "RangeClaimed@1", payload)
    log = backend.open().context.log
    with pytest.raises(MalformedEvent, match="index 0"):
        log.read(0, 10)
    with pytest.raises(MalformedEvent):
        log.load(KEY)


IMPORTS_NOTHING = """
import sys
from pathlib import Path
from compaction_ledger import composition
from compaction_ledger.domain.errors import UnknownEvent
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.settings import Settings

parts = composition.open_sqlite(
    Path(sys.argv[1]), policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings()
)
for question in (lambda: parts.context.log.read(0, 10), lambda: parts.context.log.load(
    RangeKey("tenant-1", "c-1", 0))):
    try:
        question()
    except UnknownEvent:
        continue
    sys.exit("was read")
sys.exit("was imported" if "booby_trap" in sys.modules else 0)
"""


@pytest.mark.slow
def test_nothing_from_the_database_is_imported_by_name(
    sqlite_store: SQLiteBackend, tmp_path: Path
) -> None:
    trap = tmp_path / "sprung"
    (tmp_path / "booby_trap.py").write_text(f"open({str(trap)!r}, 'w')\nclass Event: pass\n")
    put_raw(sqlite_store, "booby_trap.Event@1", b"{}")
    sqlite_store.close()
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS_NOTHING, str(sqlite_store.path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not trap.exists()


# --- the host's own environment (a host may use ``eventsourcing`` for itself) -------------------

HOSTILE = {
    "PERSISTENCE_MODULE": "eventsourcing.postgres",
    "CIPHER_TOPIC": "eventsourcing.cipher:AESCipher",
    "CIPHER_KEY": "not-even-base64",
    "COMPRESSOR_TOPIC": "zlib",
    "TRANSCODER_TOPIC": "nowhere:Transcoder",
    "MAPPER_TOPIC": "nowhere:Mapper",
    "IS_SNAPSHOTTING_ENABLED": "y",
    "AGGREGATE_CACHE_MAXSIZE": "1",
    "AGGREGATE_CACHE_FASTFORWARD": "n",
    "DEEPCOPY_FROM_AGGREGATE_CACHE": "n",
    "SQLITE_DBNAME": "elsewhere.db",
    "SQLITE_LOCK_TIMEOUT": "0",
    "POSTGRES_DBNAME": "elsewhere",
    "APPLICATION_RECORDER_TOPIC": "nowhere:Recorder",
    "CREATE_TABLE": "n",
}


def test_the_hosts_environment_changes_nothing(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(f"COMPACTION-LEDGER_{name}", value)
        monkeypatch.setenv(f"COMPACTION_LEDGER_{name}", value)
    monkeypatch.chdir(tmp_path)
    parts = backend.open()
    Worker(parts, JOB).complete()
    assert [type(entry.fact).__name__ for entry in parts.context.log.read(0, 10)] == [
        "RangeClaimed",
        "AttemptStarted",
        "RangeCompleted",
    ]
    (row,) = backend.recorder().rows(0, 1)
    assert row.payload.startswith(b"\x01")
    assert list(parts.context.log.verify()) == []
    assert not (tmp_path / "elsewhere.db").exists()


# --- damage (the faults suite has the rest) -----------------------------------------------------


def test_the_database_refuses_to_change_the_log(sqlite_store: SQLiteBackend) -> None:
    Worker(sqlite_store.open(), JOB).complete()
    database = sqlite_store.database()
    changes = [f"UPDATE stored_events SET {column} = x'00'" for column in ("state", "envelope")]
    for statement in (*changes, "DELETE FROM stored_events"):
        with (
            pytest.raises(Exception, match="the log is append-only"),
            database.transaction(commit=True) as cursor,
        ):
            cursor.execute(statement)
    assert list(sqlite_store.open().context.log.verify()) == []


def test_a_read_only_session_reads_and_does_not_write(sqlite_store: SQLiteBackend) -> None:
    parts = sqlite_store.open()
    Worker(parts, JOB).claim()
    database = open_database(sqlite_store.path, read_only=True)
    assert parts.ring is not None
    log = LedgerLog(SealedSQLiteRecorder(database, sqlite_store.clock), parts.ring)
    assert log.size() == 1
    assert log.load(KEY).open.keys() == {"w-claim"}
    assert list(log.verify()) == []
    with pytest.raises(LedgerReadOnly):
        log.append(KEY, log.load(KEY), [released("w-claim", job=JOB)])
    with pytest.raises(LedgerReadOnly):
        log.append(RangeKey(SCOPE, "another", 0), EMPTY, [claimed(job=JOB)])
    database.close()


def test_a_stream_with_a_hole_is_damage(backend: Backend) -> None:
    recorder = backend.recorder()
    subject = recorder.subject(SCOPE, CONVERSATION, "5" * 32).reference
    stream: UUID = range_stream(subject, KEY)
    recorder.insert_events(
        [
            StoredEvent(stream, version, "RangeClaimed@1", encode(claimed(job=JOB)))
            for version in (1, 3)
        ],
        subject=subject,
    )
    log = backend.open().context.log
    with pytest.raises(DamagedLog):
        log.load(KEY)
    assert [(f.code, f.index) for f in log.verify()] == [("stream", 1)]


def test_import_and_claims_share_the_stream(parts: Parts) -> None:
    bring_in(parts, JOB)
    assert parts.context.log.load(KEY).completions.keys() == {JOB.identity}
