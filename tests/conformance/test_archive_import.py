"""Taking over an archive, on every backend: in batches, again and again, around what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from archives import Archive as Made
from archives import write_archive
from backends import Backend

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DuplicateMessageId, MalformedRecord, NotAnUpdate
from compaction_ledger.domain.takeover import ArchivedThread, NewThread, UnreadThread
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.infrastructure.importers.archive import Archive
from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import Settings
from compaction_ledger.usecases import archiving
from compaction_ledger.usecases.archiving import ArchiveImport, ArchiveProgress, ArchiveTaker
from compaction_ledger.usecases.stopping import NeverStop
from compaction_ledger.worker import SignalStop

Items = Iterable[ArchivedThread | UnreadThread]
SCOPE = "acme"


@pytest.fixture
def taker(parts: Parts) -> ArchiveTaker:
    return ArchiveTaker(
        parts.transcripts, parts.work, parts.read_models, parts.context.policy, NeverStop()
    )


def thread(name: str, pairs: int = 40, scope: str = SCOPE, **changed: str) -> ArchivedThread:
    """A conversation; ``changed`` has other texts by message id."""
    numbers = range(pairs)
    messages = [
        NewMessage(f"{side[0]}{n}", f"r{n}", side, changed.get(f"{side[0]}{n}", f"{side} {n}"))
        for n in numbers
        for side in ("user", "assistant")
    ]
    runs = [NewRun(f"r{n}") for n in numbers]
    return ArchivedThread(scope, f"{name}:1", NewThread(name, messages, runs), 100)


def outcomes(found: ArchiveImport) -> dict[str, int]:
    return {name: count for name, count in found.outcomes.items() if count}


def waiting(parts: Parts) -> list[tuple[str, str]]:
    """What a worker would be given next."""
    return sorted((w.scope, w.conversation) for w in parts.work.take("tester", 1_000, 60))


def test_everything_is_taken_over_once(taker: ArchiveTaker, parts: Parts) -> None:
    archive = [thread("c1"), thread("c2", 12), thread("c1", scope="globex"), thread("c3", 0)]
    first = taker.take_over(archive)
    assert outcomes(first) == {
        "new": 3,
        "unchanged": 1,
    }  # of an empty one there is nothing to store
    assert (first.pairs, first.targets, first.done, first.refused) == (92, 4, 0, ())
    assert waiting(parts) == [("acme", "c1"), ("acme", "c2"), ("acme", "c3"), ("globex", "c1")]
    conversation = parts.transcripts.conversation("globex", "c1")
    assert [m.text for m in conversation.messages[:2]] == ["user 0", "assistant 0"]
    revision = parts.transcripts.revision(SCOPE, "c1")

    second = taker.take_over(archive)
    assert outcomes(second) == {"unchanged": 4}
    assert (second.pairs, second.targets) == (first.pairs, first.targets)
    assert parts.transcripts.revision(SCOPE, "c1") == revision


def test_what_has_grown_or_changed_is_brought_up_to_date(taker: ArchiveTaker, parts: Parts) -> None:
    taker.take_over([thread("c1", 30), thread("c2", 30)])
    waiting(parts)
    found = taker.take_over([thread("c1", 45, a3="Corrected."), thread("c2", 30)])
    assert outcomes(found) == {"updated": 1, "unchanged": 1}
    assert (found.pairs, found.targets) == (75, 3)
    messages = parts.transcripts.conversation(SCOPE, "c1").messages
    assert (len(messages), messages[7].text) == (90, "Corrected.")


def test_a_conversation_that_goes_on_in_the_ledger_is_left_as_it_is(
    taker: ArchiveTaker, parts: Parts
) -> None:
    taker.take_over([thread("c1", 40, a3="Corrected.")])
    parts.transcripts.append(SCOPE, "c1", [NewMessage("next", "r-next", "user", "And then?")])
    revision = parts.transcripts.revision(SCOPE, "c1")
    found = taker.take_over([thread("c0"), thread("c1", 40)])
    assert outcomes(found) == {"new": 1, "ahead": 1}
    assert found.pairs == 80
    assert parts.transcripts.revision(SCOPE, "c1") == revision


def test_what_is_refused_stands_in_nobodys_way(taker: ArchiveTaker, parts: Parts) -> None:
    taker.take_over([thread("c2", 40)])
    shuffled = thread("c2", 40)
    shuffled = replace(
        shuffled, thread=replace(shuffled.thread, messages=shuffled.thread.messages[::-1])
    )
    twice = thread("c3", 2)
    twice = replace(
        twice,
        thread=replace(twice.thread, messages=[*twice.thread.messages, twice.thread.messages[0]]),
    )
    unread = UnreadThread(SCOPE, "f:9", "c9", MalformedRecord("is no JSON", place="f:12"), 50)
    found = taker.take_over([thread("c1"), shuffled, twice, unread, thread("c4")])
    assert outcomes(found) == {"new": 2, "refused": 3}
    assert {(one.place, one.conversation, type(one.error)) for one in found.refused} == {
        ("f:9", "c9", MalformedRecord),
        ("c2:1", "c2", NotAnUpdate),
        ("c3:1", "c3", DuplicateMessageId),
    }
    assert {name for _, name in parts.transcripts.conversations()} == {"c1", "c2", "c4"}


def test_one_that_stands_twice_is_compared_with_itself(taker: ArchiveTaker) -> None:
    found = taker.take_over([thread("c1", 30), thread("c1", 40), thread("c1", 30)])
    assert outcomes(found) == {"new": 1, "updated": 1, "ahead": 1}


def test_it_ends_between_two_batches_and_goes_on_later(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "BATCH_CONVERSATIONS", 2)
    stop = SignalStop()
    taker = ArchiveTaker(
        parts.transcripts, parts.work, parts.read_models, parts.context.policy, stop
    )
    archive = [thread(f"c{n}", 3) for n in range(9)]
    seen: list[ArchiveProgress] = []

    def on_progress(progress: ArchiveProgress) -> None:
        seen.append(progress)
        stop.request()

    found = taker.take_over(archive, 900, on_progress)
    assert found.stopped
    assert 2 <= found.outcomes["new"] < 9
    assert seen == [ArchiveProgress(200, 900, 2, 6, 0)]
    rest = replace(taker, stop=NeverStop()).take_over(archive)
    assert rest.outcomes == Counter(unchanged=found.outcomes["new"], new=9 - found.outcomes["new"])


def test_workers_hear_of_what_a_killed_run_has_stored(taker: ArchiveTaker, parts: Parts) -> None:
    archive = [thread("c1"), thread("c2")]
    parts.transcripts.take_over(SCOPE, [one.thread for one in archive])  # and no more
    assert outcomes(taker.take_over(archive)) == {"unchanged": 2}
    assert waiting(parts) == [(SCOPE, "c1"), (SCOPE, "c2")]


@pytest.mark.slow_on("postgres")
def test_what_is_done_already_is_counted(backend: Backend, tmp_path: Any) -> None:
    made = write_archive(tmp_path / "archive", 150, each=50)
    found, parts = _take(backend, made)
    assert (found.pairs, found.targets, found.done) == (150, made.ranges, 0)
    Ledger(parts, Settings()).compact("acme-000000", scope="acme")
    again, _ = _take(backend, made)
    assert (again.targets, again.done) == (9, 3)


def _take(backend: Backend, made: Made) -> tuple[ArchiveImport, Parts]:
    parts = backend.open()
    archive = Archive(made.files, None, "file", "")
    taker = ArchiveTaker(
        parts.transcripts, parts.work, parts.read_models, parts.context.policy, NeverStop()
    )
    return taker.take_over(archive), parts


def test_batches_hold_so_much_and_one_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "BATCH_MESSAGES", 100)

    def batches(items: Items) -> list[Sequence[str]]:
        return [
            [one.thread.conversation for one in batch.threads]
            for batch in archiving._batches(items)
        ]

    assert batches([]) == []
    assert batches([thread("a", 30), thread("b", 30), thread("c", 30)]) == [["a", "b"], ["c"]]
    assert batches([thread("a", 3), thread("b", 3, scope="x")]) == [["a"], ["b"]]
    assert batches([thread("a", 3), thread("a", 4)]) == [["a"], ["a"]]
    monkeypatch.setattr(archiving, "BATCH_CHARACTERS", 10)
    assert batches([thread("a", 1), thread("b", 1)]) == [["a"], ["b"]]
