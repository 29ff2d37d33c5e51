"""Erasure (S3), on every store: nothing is read, nothing comes back, and the log still verifies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from backends import Backend, PostgresBackend, SQLiteBackend
from erasures import RUN, TURNS, fill_everything
from histories import SCOPE, Worker, bring_in, fill, present_job
from interleaving import just_after, just_before
from key_stores import database_of_keys
from pydantic import SecretStr
from window_runs import growing, window_on

from compaction_ledger import Ledger, Pace, signing_parts
from compaction_ledger.composition import Parts, history_search
from compaction_ledger.domain.erasure import (
    ErasedFact,
    ErasureCompleted,
    ErasureRequested,
    Subject,
)
from compaction_ledger.domain.errors import (
    Erased,
    InvalidSetting,
    KeyMissing,
    UnknownConversation,
)
from compaction_ledger.domain.facts import Delivery
from compaction_ledger.domain.history import HistoryQuery
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.ports import Transcripts
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.work import Backlog, Found
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.erasing import Resumed

GONE, KEPT = "c-gone", "c-kept"
STORES = ("transcripts", "originals", "history", "work", "read_models")
KEY = WindowKey(SCOPE, GONE, RUN)

READING: dict[str, Callable[[Ledger, Parts], object]] = {
    "a conversation": lambda _, parts: parts.transcripts.conversation(SCOPE, GONE),
    "its revision": lambda _, parts: parts.transcripts.revision(SCOPE, GONE),
    "what the context reads": lambda _, parts: parts.context.transcripts.conversation(SCOPE, GONE),
    "a plan": lambda ledger, _: ledger.plan(GONE, scope=SCOPE),
    "a request": lambda ledger, _: ledger.assemble(GONE, scope=SCOPE, budget=10**6),
    "compacting": lambda ledger, _: ledger.compact(GONE, scope=SCOPE),
    "summaries": lambda ledger, _: ledger.summaries(GONE, scope=SCOPE),
    "ranges": lambda ledger, _: ledger.ranges(GONE, scope=SCOPE),
    "attempts": lambda ledger, _: ledger.attempts(GONE, scope=SCOPE),
    "deliveries": lambda ledger, _: ledger.deliveries(GONE, scope=SCOPE),
    "chunks": lambda ledger, _: ledger.window_chunks(GONE, scope=SCOPE),
    "pins": lambda ledger, _: ledger.window_pins(GONE, scope=SCOPE),
    "requests of a window": lambda ledger, _: ledger.window_deliveries(GONE, scope=SCOPE),
    "the history of a range": lambda ledger, _: ledger.history(GONE, from_pair=0, scope=SCOPE),
    "the state of a range": lambda _, parts: parts.context.log.load(RangeKey(SCOPE, GONE, 0)),
    "the state of a window": lambda _, parts: parts.context.log.load_window(KEY),
    "a search": lambda _, parts: history_search(parts, SCOPE, GONE).search(HistoryQuery("apple")),
    "originals": lambda _, parts: parts.originals.read(KEY),
    "runs": lambda _, parts: parts.originals.runs(SCOPE, GONE),
    "a result": lambda _, parts: parts.originals.result(SCOPE, GONE, "0" * 64),
}
WRITING: dict[str, Callable[[Ledger, Parts], object]] = {
    "a line": lambda _, parts: parts.transcripts.append(
        SCOPE, GONE, [NewMessage("n", "r", "user", "Are you still there?")]
    ),
    "a revision": lambda _, parts: parts.transcripts.revise(SCOPE, GONE, "u0", "No."),
    "a state": lambda _, parts: parts.transcripts.set_run(SCOPE, GONE, "r", "running"),
    "a result": lambda _, parts: parts.originals.keep_result(SCOPE, GONE, b"result"),
    "a turn": lambda _, parts: window_on(parts, place=(SCOPE, GONE, RUN)).prepare(
        next(iter(growing(1)))
    ),
}


def is_refused(act: Callable[[Ledger, Parts], object], ledger: Ledger, parts: Parts) -> bool:
    try:
        act(ledger, parts)
    except Erased:
        return True
    return False


@pytest.fixture
def filled(parts: Parts) -> Ledger:
    """Two conversations that are everywhere."""
    fill_everything(parts, KEPT, "pear")
    return fill_everything(parts, GONE, "apple")


@pytest.mark.slow
def test_after_an_erasure_nothing_is_read_or_written(
    filled: Ledger, parts: Parts, backend: Backend
) -> None:
    steps: list[str] = []
    before = filled.size()
    done = filled.erase(GONE, scope=SCOPE, on_step=steps.append)
    assert steps == ["begun", "requested", "key destroyed", "purged", "completed"]
    assert (done.requested, done.completed) == (before, before + 1)
    assert done.purged == STORES
    for session in (parts, backend.open()):
        ledger = Ledger(session, Settings())
        for what, act in (READING | WRITING).items():
            assert is_refused(act, ledger, session), what
        assert (SCOPE, GONE) not in set(ledger.conversations())
        assert {row.conversation for row in ledger.ranges()} == {KEPT}
    # Of the other conversation nothing is lost.
    assert len(filled.summaries(KEPT, scope=SCOPE)) >= 2
    assert all(filled.summary_text(row) for row in filled.summaries(KEPT, scope=SCOPE))
    assert history_search(parts, SCOPE, KEPT).search(HistoryQuery("pear")).hits
    assert parts.originals.count(WindowKey(SCOPE, KEPT, RUN)) == 1 + 4 * TURNS - 1


@pytest.mark.slow
def test_the_log_still_verifies_and_replay_says_what_was_erased(
    filled: Ledger, parts: Parts
) -> None:
    before = filled.size()
    kinds = {entry.index: entry.fact for entry in filled.events()}
    done = filled.erase(GONE, scope=SCOPE)
    assert filled.verify().findings == ()
    entries = list(filled.events())
    assert [entry.index for entry in entries] == list(range(before + 2))
    erased = [entry for entry in entries if isinstance(entry.fact, ErasedFact)]
    assert {entry.fact.subject for entry in erased if isinstance(entry.fact, ErasedFact)} == {
        done.reference
    }
    assert len(erased) > 10
    for entry in entries[:before]:
        if isinstance(entry.fact, ErasedFact):
            assert entry.fact.event == type(kinds[entry.index]).__name__
        else:
            assert entry.fact == kinds[entry.index]
    requested, completed = entries[before:]
    assert isinstance(requested.fact, ErasureRequested)
    assert isinstance(completed.fact, ErasureCompleted)
    assert requested.fact.subject == completed.fact.subject == done.reference
    assert completed.fact.purged == STORES
    # What is rebuilt from such a log is what stands in the read models.
    records = parts.read_models.records()
    filled.rebuild()
    assert parts.read_models.records() == records
    assert filled.verify().findings == ()


@pytest.mark.slow
def test_nothing_links_the_reference_to_the_conversation_any_more(
    filled: Ledger, backend: Backend
) -> None:
    done = filled.erase(GONE, scope=SCOPE)
    known = backend.recorder().subjects()
    assert known[done.reference].state == "erased"
    assert not known[done.reference].is_named
    assert {one.conversation for one in known.values()} == {KEPT, done.reference}


@pytest.mark.slow
def test_what_was_erased_cannot_be_erased_again(filled: Ledger) -> None:
    filled.erase(GONE, scope=SCOPE)
    size = filled.size()
    with pytest.raises(Erased):
        filled.erase(GONE, scope=SCOPE)
    assert filled.resume_erasures() == Resumed((), (), 0)
    assert filled.size() == size


@pytest.mark.slow
def test_what_nobody_knows_can_be_erased_and_then_stays_away(filled: Ledger) -> None:
    """It may stand in a backup, or be on its way: who asks is not asked why."""
    size = filled.size()
    with pytest.raises(UnknownConversation):
        filled.erase("c-unknown", scope=SCOPE)
    with pytest.raises(UnknownConversation):
        filled.erase(GONE, scope="another")  # a slip is no erasure
    assert filled.size() == size
    done = filled.erase("c-unknown", scope=SCOPE, unknown=True)
    assert done.completed == done.requested + 1
    with pytest.raises(Erased):
        filled.transcripts.append(SCOPE, "c-unknown", [NewMessage("n", "r", "user", "Hello")])
    assert filled.verify().findings == ()


def test_of_a_conversation_without_summaries_the_lines_go(parts: Parts) -> None:
    ledger = Ledger(parts, Settings())
    ledger.transcripts.append(SCOPE, GONE, [NewMessage("n", "r", "user", "Hello")])
    ledger.erase(GONE, scope=SCOPE)
    assert set(ledger.conversations()) == set()
    with pytest.raises(Erased):
        ledger.transcripts.conversation(SCOPE, GONE)


@pytest.mark.slow
def test_a_worker_that_was_at_it_is_refused(filled: Ledger, parts: Parts, backend: Backend) -> None:
    """It holds a claim, and has read the source: what it brings back is stored nowhere."""
    for number in range(60, 100):
        run = f"r{number}"
        lines = [
            NewMessage(f"u{number}", run, "user", "And more?"),
            NewMessage(f"a{number}", run, "assistant", "More."),
        ]
        parts.transcripts.append(SCOPE, GONE, lines, [NewRun(run, "completed")])
    other = backend.open()
    worker = Worker(other, present_job(other, 60, conversation=GONE))
    worker.claim()
    worker.start()
    filled.erase(GONE, scope=SCOPE)
    size = filled.size()
    with pytest.raises(Erased):
        worker.finish()
    assert filled.size() == size
    assert filled.verify().findings == ()


# --- beside an erasure in another process ---


@pytest.fixture
def distant(tmp_path: Path) -> Iterator[SQLiteBackend]:
    """A ledger whose data keys lie in a database: what another process erases is not seen at once there."""
    settings = Settings(data_keys=SecretStr(database_of_keys()))
    store = SQLiteBackend(tmp_path, settings=settings)
    yield store
    store.close()


def stand_still(parts: Parts) -> None:
    """In this session no time passes: it sees of others' erasures what it asks for."""
    assert parts.ring is not None
    raw: Any = parts.ring._store
    if hasattr(raw, "_look_seconds"):
        raw._clock = lambda: 0.0
        raw.look()
        raw.revision()


def two_conversations(backend: Backend) -> None:
    """With two ranges that are summarized."""
    parts = backend.open()
    for conversation in (GONE, KEPT):
        fill(parts, 40, conversation)
        bring_in(parts, present_job(parts, 0, conversation=conversation))


EVENTS: dict[str, Callable[[Ledger], object]] = {
    "events": lambda ledger: list(ledger.events()),
    "a rebuild": lambda ledger: ledger.rebuild(),
    "catching up": lambda ledger: ledger.catch_up(),
    "verification": lambda ledger: ledger.verify(),
}


@pytest.mark.parametrize("what", EVENTS)
def test_who_reads_the_log_while_a_conversation_is_erased_is_told_that_it_was(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """It looked what is erased before the erasure, and looks for the key behind it."""
    two_conversations(backend)
    parts = backend.open()
    erase_before_the_key_is_found(parts, backend.open(), monkeypatch)
    EVENTS[what](Ledger(parts, Settings()))
    ledger = Ledger(backend.open(), Settings())
    ledger.catch_up()
    assert {row.conversation for row in ledger.ranges()} == {KEPT}
    assert ledger.verify().findings == ()
    assert any(isinstance(entry.fact, ErasedFact) for entry in ledger.events())


def test_the_history_of_what_is_erased_meanwhile_is_refused(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_conversations(backend)
    parts = backend.open()
    erase_before_the_key_is_found(parts, backend.open(), monkeypatch)
    with pytest.raises(Erased):
        Ledger(parts, Settings()).history(GONE, from_pair=0, scope=SCOPE)


def test_a_state_of_what_is_erased_meanwhile_is_refused(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_conversations(backend)
    parts = backend.open()
    erase_before_the_key_is_found(parts, backend.open(), monkeypatch)
    with pytest.raises(Erased):
        parts.context.log.load(RangeKey(SCOPE, GONE, 0))


def test_what_is_erased_during_an_export_is_not_shown(
    store: PostgresBackend | SQLiteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:  # K5
    """As what was erased before it is not: unless a checkpoint stands for the request, it cannot be told."""
    two_conversations(store)
    parts = store.open()
    settings = Settings(checkpoints_folder=store.folder / "checkpoints")
    place = store.url if isinstance(store, PostgresBackend) else store.path
    with Ledger.open(place, settings=settings) as ledger:
        signing_parts.log_signer(ledger._parts).sign()
        erase_before_the_key_is_found(ledger._parts, parts, monkeypatch)
        with pytest.raises(InvalidSetting, match="erased after the checkpoint"):
            ledger.export(store.folder / "bundle.zip")
        signing_parts.log_signer(ledger._parts).sign()
        assert ledger.export(store.folder / "bundle.zip").exported.events == 4


def erase_before_the_key_is_found(
    parts: Parts, other: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one erases when the key of what it erases is looked for next."""
    raw: Any = parts.context.log
    ring: Any = parts.ring
    key = raw.named(SCOPE, GONE).key
    ring._secrets.clear()
    find = ring._store.find

    def find_late(wanted: str) -> Any:
        if wanted == key:
            monkeypatch.setattr(ring._store, "find", find)
            Ledger(other, Settings()).erase(GONE, scope=SCOPE)
        return find(wanted)

    monkeypatch.setattr(ring._store, "find", find_late)


def test_lines_written_beside_an_erasure_elsewhere_do_not_stay(
    distant: SQLiteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_conversations(distant)
    parts, other = distant.open(), Ledger(distant.open(), Settings())
    raw: Any = parts.transcripts
    stand_still(parts)
    just_before(monkeypatch, raw._store, "append", lambda: other.erase(GONE, scope=SCOPE))
    with pytest.raises(Erased):
        parts.transcripts.append(SCOPE, GONE, [NewMessage("n", "r", "user", "A late secret.")])
    assert (SCOPE, GONE) not in set(raw._store.conversations())


def test_a_claim_beside_an_erasure_elsewhere_gets_no_new_reference(
    distant: SQLiteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, other = distant.open(), Ledger(distant.open(), Settings())
    fill(parts, 40, GONE)
    worker = Worker(parts, present_job(parts, 0, conversation=GONE))
    stand_still(parts)
    just_before(monkeypatch, parts.ring, "fresh", lambda: other.erase(GONE, scope=SCOPE))
    with pytest.raises(Erased):
        worker.claim()
    assert other.size() == 2


def test_a_rebuild_beside_an_erasure_elsewhere_keeps_nothing_of_it(
    distant: SQLiteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_conversations(distant)
    parts, other = distant.open(), Ledger(distant.open(), Settings())
    ledger = Ledger(parts, Settings())
    ledger.catch_up()
    stand_still(parts)
    just_after(monkeypatch, parts.context.log, "read", lambda: other.erase(GONE, scope=SCOPE))
    ledger.rebuild()
    raw: Any = parts.read_models
    assert {row.conversation for row in raw._store.ranges()} == {KEPT}


def test_verification_beside_an_erasure_elsewhere_finds_nothing(distant: SQLiteBackend) -> None:
    two_conversations(distant)
    parts, other = distant.open(), Ledger(distant.open(), Settings())
    ledger = Ledger(parts, Settings())
    ledger.catch_up()
    stand_still(parts)
    other.erase(GONE, scope=SCOPE)
    assert ledger.verify().findings == ()
    assert any(isinstance(entry.fact, ErasedFact) for entry in ledger.events())


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize("is_begun", [False, True])
def test_a_worker_that_is_given_a_key_while_its_conversation_is_erased_is_refused(
    parts: Parts, backend: Backend, is_begun: bool
) -> None:
    """It looked who stands for the conversation before the erasure, and has its answer when all is over."""
    other = backend.open()
    assert other.ring is not None
    ring, ledger = other.ring, Ledger(parts, Settings())
    fill(other, 40, GONE)
    worker = Worker(other, present_job(other, 0, conversation=GONE))
    if is_begun:  # an erasure has seen to it that somebody stands for it, and was killed then
        parts.context.log.subject_for(SCOPE, GONE)  # type: ignore[attr-defined]
    fresh = ring.fresh

    def erase_and_give() -> str:
        ring.fresh = fresh  # type: ignore[method-assign]
        ledger.erase(GONE, scope=SCOPE)
        return fresh()

    ring.fresh = erase_and_give  # type: ignore[method-assign]
    with pytest.raises(Erased):
        worker.claim()
    assert ledger.size() == 2
    ledger.resume_erasures()
    assert ledger.verify().findings == ()
    with pytest.raises(Erased):
        Worker(backend.open(), worker.job).claim()
    raw: Any = parts.context.log
    assert [one.state for one in raw.sealed.subjects().values() if one.is_named] == []


def test_an_erasure_beside_the_first_claim_takes_its_key_for_no_damage(
    parts: Parts, backend: Backend
) -> None:
    """It knows the conversation without a key, and finds the first event, which names one."""
    fill(parts, 40, GONE)
    other = backend.open()
    worker = Worker(other, present_job(other, 0, conversation=GONE))
    log: Any = parts.context.log
    check = log.check_key

    def claim_and_check(subject: Subject) -> None:
        log.check_key = check
        worker.claim()
        check(subject)

    log.check_key = claim_and_check
    ledger = Ledger(parts, Settings())
    ledger.erase(GONE, scope=SCOPE)
    assert [type(entry.fact) for entry in ledger.events()] == [
        ErasedFact,
        ErasureRequested,
        ErasureCompleted,
    ]
    assert ledger.verify().findings == ()


@pytest.mark.slow
def test_lines_written_while_a_conversation_is_erased_do_not_stay(
    filled: Ledger, parts: Parts
) -> None:
    """A writer that looked before the erasure began, and writes when it has passed by."""
    assert parts.ring is not None
    assert parts.eraser is not None
    ring = parts.ring
    checked = ring.check

    def check_and_erase(scope: str, conversation: str) -> None:
        checked(scope, conversation)
        ring.check = checked  # type: ignore[method-assign]
        filled.erase(GONE, scope=SCOPE)

    ring.check = check_and_erase  # type: ignore[method-assign]
    with pytest.raises(Erased):
        parts.transcripts.append(SCOPE, GONE, [NewMessage("n", "r", "user", "A late secret.")])
    raw: Any = parts.eraser.stores["transcripts"]
    assert (SCOPE, GONE) not in set(raw._store.conversations())


@pytest.fixture
def lined(parts: Parts) -> Ledger:
    """Two conversations of thirty pairs."""
    fill(parts, 30, KEPT)
    fill(parts, 30, GONE)
    return Ledger(parts, Settings())


def test_a_notice_beside_an_erasure_leaves_no_name_on_the_work_list(
    lined: Ledger, parts: Parts
) -> None:
    """It looked before the erasure began, and is stored when that has passed by."""
    assert parts.eraser is not None
    raw: Any = parts.eraser.stores["work"]
    notice = raw.notice

    def erase_and_notice(places: Iterable[tuple[str, str]]) -> int:
        raw.notice = notice
        lined.erase(GONE, scope=SCOPE)
        return int(notice(places))

    raw.notice = erase_and_notice
    lined.notice([(SCOPE, GONE), (SCOPE, KEPT)])
    assert list(raw.places()) == [(SCOPE, KEPT)]
    assert lined.notice([(SCOPE, GONE), (SCOPE, KEPT)]) == 0  # from now on it is no news
    assert lined.notice([(SCOPE, GONE), (SCOPE, "c-new")]) == 1
    assert list(raw.places()) == [(SCOPE, KEPT), (SCOPE, "c-new")]


class Listed:
    """Transcripts of a host that lists its conversations, and reads them from the embedded ones."""

    def __init__(self, transcripts: Transcripts) -> None:
        self.conversation = transcripts.conversation
        self.revision = transcripts.revision

    def conversations(self) -> Iterable[tuple[str, str]]:
        return [(SCOPE, GONE), (SCOPE, KEPT)]


@pytest.mark.parametrize("which", ["embedded", "a host's"])
def test_a_discovery_beside_an_erasure_leaves_no_name_on_the_work_list(
    lined: Ledger, parts: Parts, which: str
) -> None:
    """It found the conversation before the erasure began."""
    assert parts.eraser is not None
    raw: Any = parts.eraser.stores["work"]
    notice = raw.notice_changed

    def erase_and_notice(page: Sequence[Found], view: str | None) -> int:
        raw.notice_changed = notice
        lined.erase(GONE, scope=SCOPE)
        return int(notice(page, view))

    raw.notice_changed = erase_and_notice
    transcripts = parts.transcripts if which == "embedded" else Listed(parts.transcripts)
    parts.work.discover(transcripts)
    assert list(raw.places()) == [(SCOPE, KEPT)]
    # What lists it still, or has its lines again, is no news from then on.
    assert parts.work.discover(Listed(parts.transcripts)) == 0
    held: Any = parts.transcripts
    held.unguarded.append(SCOPE, GONE, [NewMessage("n", "r", "user", "Back.")])
    assert parts.work.discover(parts.transcripts) == 0
    assert list(raw.places()) == [(SCOPE, KEPT)]


def test_what_a_late_writer_left_on_the_work_list_is_taken_away(
    lined: Ledger, parts: Parts
) -> None:
    """It was killed before it could take it back; or the list was put back from before (S3)."""
    assert parts.eraser is not None
    raw: Any = parts.eraser.stores["work"]
    lined.erase(GONE, scope=SCOPE)
    assert lined.verify().findings == ()
    raw.notice([(SCOPE, GONE)])
    assert lined.erasure_leftovers() == [(SCOPE, GONE)]
    assert ["work list" in one.message for one in lined.verify().findings] == [True]
    assert lined.resume_erasures() == Resumed((), (), 1)
    assert list(raw.places()) == []
    assert lined.verify().findings == ()


def test_a_worker_forgets_what_was_erased_since_it_was_noticed(
    lined: Ledger, parts: Parts, backend: Backend
) -> None:
    """An error of nobody: it is not counted, and not tried again."""
    assert parts.eraser is not None
    raw: Any = parts.eraser.stores["work"]
    lined.erase(GONE, scope=SCOPE)
    raw.notice([(SCOPE, GONE)])
    backend.clock.advance(1)
    served = lined.work(pace=Pace(threads=1, until_idle=True))
    assert "failures" not in served.counts
    assert lined.backlog() == Backlog()
    assert list(raw.places()) == [(SCOPE, KEPT)]


class Killed(BaseException):
    """Nothing comes behind it."""


def kill_when_begun(step: str) -> None:
    if step == "begun":
        raise Killed


def test_who_resumes_leaves_to_others_what_they_begin_meanwhile(
    lined: Ledger, parts: Parts, backend: Backend
) -> None:
    """Else an erasure would be noted as complete, and its key would be there for ever."""
    Worker(parts, present_job(parts, 0, conversation=GONE)).claim()
    other = Ledger(backend.open(), Settings())
    log: Any = parts.context.log
    unfinished = log.unfinished

    def look_and_begin(*words: object) -> object:
        log.unfinished = unfinished
        found = unfinished(*words)
        with pytest.raises(Killed):
            other.erase(GONE, scope=SCOPE, on_step=kill_when_begun)
        return found

    log.unfinished = look_and_begin
    assert lined.resume_erasures() == Resumed((), (), 1)  # its lines, which nobody reads any more
    ring: Any = parts.ring
    (tombstone,) = ring._store.tombstones()
    assert tombstone.state == "begun"
    assert ring._store.find(tombstone.key).wrapped
    (done,) = lined.resume_erasures().erasures
    assert done.reference == tombstone.reference
    assert not ring._store.find(tombstone.key).wrapped
    assert lined.verify().findings == ()


def test_what_another_erases_meanwhile_had_not_come_back(
    lined: Ledger, parts: Parts, backend: Backend
) -> None:
    """Who resumes has asked the keys what was erased, and then finds one more in the log."""
    Worker(parts, present_job(parts, 0, conversation=GONE)).claim()
    other = Ledger(backend.open(), Settings())
    ring: Any = parts.ring
    references = ring.references

    def look_and_erase() -> list[str]:
        ring.references = references
        found = list(references())
        other.erase(GONE, scope=SCOPE)
        return found

    ring.references = look_and_erase
    assert lined.resume_erasures() == Resumed((), (), 0)


def test_a_delivery_that_is_recorded_again_beside_an_erasure_is_refused(
    lined: Ledger, parts: Parts, backend: Backend
) -> None:
    """It is another only because it was erased."""
    other = Ledger(backend.open(), Settings())
    log: Any = parts.context.log
    stream, deliver = log.stream, log.deliver
    given: list[Delivery] = []

    def keep(delivery: Delivery) -> int:
        given.append(delivery)
        return int(deliver(delivery))

    def erase_and_read(name: str) -> object:
        log.stream = stream
        other.erase(GONE, scope=SCOPE)
        return stream(name)

    log.deliver = keep
    lined.record_delivery(lined.assemble(GONE, scope=SCOPE, budget=10**6))
    log.stream = erase_and_read
    with pytest.raises(Erased):
        deliver(given[0])
    with pytest.raises(Erased):
        deliver(given[0])


def test_of_two_who_erase_the_later_is_told_that_it_was_erased(
    lined: Ledger, parts: Parts, backend: Backend
) -> None:
    """It looked before the other began, and then nothing is known of the conversation."""
    other = Ledger(backend.open(), Settings())
    ring: Any = parts.ring
    was_erased = ring.was_erased

    def look_and_erase(scope: str, conversation: str) -> bool:
        found = bool(was_erased(scope, conversation))
        ring.was_erased = was_erased
        other.erase(GONE, scope=SCOPE)
        return found

    ring.was_erased = look_and_erase
    with pytest.raises(Erased):
        lined.erase(GONE, scope=SCOPE)


def test_payloads_from_before_encryption_are_removed(tmp_path: Path) -> None:
    """There is no key that could be destroyed: the bytes go, and the seals stay (S3)."""
    store = SQLiteBackend(tmp_path, settings=Settings(encryption="off"))
    fill_everything(store.open(), KEPT, "pear")
    fill_everything(store.open(), GONE, "apple")
    plain = Ledger(store.open(), Settings())
    assert {row.payload[:1] for row in store.recorder().rows(0, 1_000)} == {b"{"}
    later = replace(store, settings=Settings())
    ledger = Ledger(later.open(), Settings())
    done = ledger.erase(GONE, scope=SCOPE)
    assert done.blanked > 10
    assert ledger.verify().findings == plain.verify().findings == ()
    erased = [entry for entry in ledger.events() if isinstance(entry.fact, ErasedFact)]
    assert len(erased) == done.blanked
    rows = later.recorder().rows(0, 1_000)
    assert sum(not row.payload for row in rows) == done.blanked
    assert not any(b"apple" in row.payload for row in rows)
    later.close()
    store.close()


def test_payloads_that_are_removed_during_a_verification_are_no_damage(tmp_path: Path) -> None:
    """It looked who is erased before the erasure began, and comes to the events behind it (S3)."""
    store = SQLiteBackend(tmp_path, settings=Settings(encryption="off"))
    plain = store.open()
    for name in (GONE, KEPT):
        fill(plain, 40, name)
        Worker(plain, present_job(plain, 0, conversation=name)).complete()
    later = replace(store, settings=Settings())
    one, other = later.open(), Ledger(later.open(), Settings())
    ledger, raw = Ledger(one, Settings()), cast(Any, one.context.log).sealed
    ledger.catch_up()
    rows = raw.plain_rows

    def erase_and_read(start: int, limit: int) -> object:
        raw.plain_rows = rows
        assert other.erase(GONE, scope=SCOPE).blanked == 3
        return rows(start, limit)

    raw.plain_rows = erase_and_read
    assert ledger.verify().findings == ()
    assert not [row for row in raw.rows(0, 3) if row.payload]
    later.close()
    store.close()


def test_the_first_plain_payload_during_a_verification_is_no_damage(tmp_path: Path) -> None:
    """All were encrypted when it began (S1)."""
    store = SQLiteBackend(tmp_path)
    parts = store.open()
    for name in (GONE, KEPT):
        fill(parts, 40, name)
    Worker(parts, present_job(parts, 0, conversation=GONE)).claim()
    plain = replace(store, settings=Settings(encryption="off"))
    other = plain.open()
    worker = Worker(other, present_job(other, 0, conversation=KEPT))
    one = store.open()
    ledger, raw = Ledger(one, Settings()), cast(Any, one.context.log).sealed
    ledger.catch_up()
    rows = raw.plain_rows

    def claim_and_read(start: int, limit: int) -> object:
        raw.plain_rows = rows
        worker.claim()
        return rows(start, limit)

    raw.plain_rows = claim_and_read
    assert ledger.verify().findings == ()
    assert [row.payload[:1] == b"{" for row in raw.rows(0, 2)] == [False, True]
    plain.close()
    store.close()


def test_a_payload_that_is_gone_without_an_erasure_is_damage(tmp_path: Path) -> None:
    store = SQLiteBackend(tmp_path, settings=Settings(encryption="off"))
    ledger = fill_everything(store.open(), KEPT, "pear")
    with store.database().transaction(commit=True) as cursor:
        cursor.execute("DROP TRIGGER stored_events_no_update")
        cursor.execute("UPDATE stored_events SET state = x'' WHERE idx = 3")
    assert [finding.index for finding in ledger.verify(seal_only=True).findings] == [3]
    store.close()


@pytest.mark.slow
def test_without_its_keys_a_ledger_says_so_and_never_that_it_was_erased(
    filled: Ledger, backend: Backend
) -> None:
    if not isinstance(backend, SQLiteBackend):
        pytest.skip("the keys of a file lie beside it")
    keys = backend.path.with_name("ledger.db.keys")
    keys.rename(keys.with_name("elsewhere"))
    ledger = Ledger(backend.open(), Settings())
    with pytest.raises(KeyMissing):
        list(ledger.events())
    with pytest.raises(KeyMissing):
        ledger.history(KEPT, from_pair=0, scope=SCOPE)
    assert ledger.verify(seal_only=True).findings == ()  # the seal needs no key
    keys.with_name("elsewhere").rename(keys)
    assert len(list(Ledger(backend.open(), Settings()).events())) == filled.size()
