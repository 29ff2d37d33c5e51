"""The work list: what is due, whose turn it is, and what becomes of what was taken. A hint alone (W3, A8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from backends import SECOND, Backend
from histories import CONVERSATION, SCOPE, fill, lines

from compaction_ledger.composition import Parts
from compaction_ledger.domain.conversation import Conversation
from compaction_ledger.domain.errors import InvalidId, UnknownConversation
from compaction_ledger.domain.ports import WorkList
from compaction_ledger.domain.work import Backlog, WorkItem

LEASE = 300.0
PLACE = (SCOPE, CONVERSATION)


@pytest.fixture
def work(parts: Parts) -> WorkList:
    return parts.work


def places(items: Iterable[WorkItem]) -> list[tuple[str, str]]:
    return [(item.scope, item.conversation) for item in items]


def take(work: WorkList, limit: int = 100, holder: str = "w") -> Sequence[WorkItem]:
    return work.take(holder, limit, LEASE)


def take_one(work: WorkList) -> WorkItem:
    [item] = take(work)
    return item


def revision(parts: Parts, item: WorkItem) -> str | None:
    return parts.transcripts.revision(item.scope, item.conversation)


# --- notice, take, look ---------------------------------------------------------------------------


def test_at_first_there_is_nothing_to_do(work: WorkList) -> None:
    assert take(work) == []
    assert work.backlog() == Backlog()


def test_what_is_noticed_is_taken_once(backend: Backend) -> None:
    assert backend.open().work.notice([("s", "a"), ("s", "b"), ("s", "a")]) == 2
    assert places(take(backend.open().work)) == [("s", "a"), ("s", "b")]
    assert take(backend.open().work) == []


def test_no_more_are_taken_than_were_asked_for(work: WorkList) -> None:
    work.notice([("s", str(n)) for n in range(5)])
    assert [len(take(work, 2)) for _ in range(4)] == [2, 2, 1, 0]


def test_to_notice_again_is_no_news(work: WorkList, backend: Backend) -> None:
    work.notice([("s", "a")])
    backend.clock.advance(10)
    assert work.notice([("s", "a")]) == 0
    assert work.backlog() == Backlog(due=1, oldest_due=10 * SECOND)
    assert len(take(work)) == 1
    assert take(work) == []


def test_nothing_of_a_notice_with_a_wrong_id_is_kept(work: WorkList) -> None:
    with pytest.raises(InvalidId):
        work.notice([("s", "a"), ("s", "")])
    assert take(work) == []


def test_ids_in_any_script_and_of_any_length(work: WorkList) -> None:
    longest = "".join(chr(0x1F300 + n % 500) for n in range(512))
    names = ["消息", "ü", "u\u0308", "😀", "a b", "'", '"', "%", longest, longest[::-1]]
    given = [(scope, name) for scope in names for name in names]
    assert work.notice(given) == len(given)
    assert sorted(places(take(work))) == sorted(given)


def test_what_was_looked_at_waits_until_it_is_noticed(work: WorkList, backend: Backend) -> None:
    work.notice([PLACE])
    work.looked(take_one(work), None, "7")
    backend.clock.advance(1e6)
    assert take(work) == []
    assert work.backlog() == Backlog()
    assert work.notice([PLACE]) == 1
    assert places(take(work)) == [PLACE]


def test_or_until_the_time_that_was_said(work: WorkList, backend: Backend) -> None:
    work.notice([PLACE])
    work.looked(take_one(work), backend.clock.now + 60 * SECOND, "7")
    assert work.backlog() == Backlog(waiting=1)
    backend.clock.advance(59)
    assert take(work) == []
    backend.clock.advance(1)
    assert work.backlog() == Backlog(due=1, oldest_due=0)
    assert places(take(work)) == [PLACE]


def test_to_notice_does_not_wait_for_that_time(work: WorkList, backend: Backend) -> None:
    work.notice([PLACE])
    work.looked(take_one(work), backend.clock.now + 60 * SECOND, "7")
    assert work.notice([PLACE]) == 1
    assert places(take(work)) == [PLACE]
    backend.clock.advance(61)
    assert take(work) == []  # that time does not come any more


def test_a_notice_while_it_is_looked_at_is_not_lost(work: WorkList) -> None:
    work.notice([PLACE])
    item = take_one(work)
    assert work.notice([PLACE]) == 1
    assert work.notice([PLACE]) == 0
    assert take(work) == []
    work.looked(item, None, "7")
    again = take_one(work)
    work.looked(again, None, "7")
    assert take(work) == []


def test_failures_are_handed_on(work: WorkList, backend: Backend) -> None:
    work.notice([PLACE])
    work.looked(take_one(work), backend.clock.now, None, failures=3)
    item = take_one(work)
    assert item.failures == 3
    work.looked(item, backend.clock.now, None)
    assert take_one(work).failures == 0


# --- leases ---------------------------------------------------------------------------------------


def test_a_lease_that_is_over_makes_it_due_again(work: WorkList, backend: Backend) -> None:
    work.notice([PLACE])
    take_one(work)
    assert work.backlog() == Backlog(leased=1)
    backend.clock.advance(LEASE - 1)
    assert take(work) == []
    backend.clock.advance(1)
    assert work.backlog() == Backlog(due=1, oldest_due=0)
    assert places(take(work)) == [PLACE]


def test_who_comes_back_after_the_lease_changes_nothing(work: WorkList, backend: Backend) -> None:
    work.notice([PLACE])
    late = take_one(work)
    backend.clock.advance(LEASE)
    item = take_one(work)
    work.looked(late, backend.clock.now, "old", failures=9)
    work.drop(late)
    assert take(work) == []
    assert work.backlog() == Backlog(leased=1)
    work.looked(item, backend.clock.now, "new")
    assert take_one(work).failures == 0


def test_a_look_is_noted_once(work: WorkList) -> None:
    work.notice([PLACE])
    item = take_one(work)
    work.looked(item, None, "7")
    work.notice([PLACE])
    work.looked(item, None, "7")  # its acknowledgement was lost
    assert places(take(work)) == [PLACE]


def test_what_is_dropped_comes_back_when_it_is_noticed(work: WorkList) -> None:
    work.notice([PLACE])
    work.drop(take_one(work))
    assert take(work) == []
    assert work.notice([PLACE]) == 1
    item = take_one(work)
    work.notice([PLACE])
    work.drop(item)
    assert places(take(work)) == [PLACE]


def test_what_is_forgotten_is_gone_in_any_state(work: WorkList, backend: Backend) -> None:
    work.notice([("s", name) for name in "abcd"])
    taken = {item.conversation: item for item in take(work, 3)}
    work.looked(taken["a"], backend.clock.now + SECOND, None)
    work.looked(taken["b"], None, None)
    for name in "abcd":
        work.forget("s", name)
    work.looked(taken["c"], backend.clock.now, None)
    backend.clock.advance(LEASE)
    assert work.backlog() == Backlog()
    assert take(work) == []


def test_those_that_met_an_error_are_counted_among_the_waiting(
    work: WorkList, backend: Backend
) -> None:
    work.notice([("s", name) for name in "abc"])
    again = backend.clock.now + 60 * SECOND
    for item, failures in zip(take(work, 3), (0, 1, 2), strict=True):
        work.looked(item, again, None, failures=failures)
    assert work.backlog() == Backlog(waiting=3, failing=2)
    backend.clock.advance(60)
    assert work.backlog() == Backlog(due=3, oldest_due=0)


# --- fairness -------------------------------------------------------------------------------------


def test_scopes_are_served_in_rounds(work: WorkList, backend: Backend) -> None:
    for scope, count in (("big", 5), ("small", 2), ("one", 1)):
        work.notice([(scope, str(n)) for n in range(count)])
        backend.clock.advance(1)
    served = [scope for scope, _ in places(take(work))]
    assert served == ["big", "small", "one", "big", "small", "big", "big", "big"]


def test_also_if_they_are_taken_one_by_one(work: WorkList, backend: Backend) -> None:
    for scope, count in (("big", 5), ("small", 2), ("one", 1)):
        work.notice([(scope, str(n)) for n in range(count)])
        backend.clock.advance(1)
    served = [places(take(work, 1))[0][0] for _ in range(8)]
    assert served == ["big", "small", "one", "big", "small", "big", "big", "big"]


def test_within_a_scope_who_became_due_first_comes_first(work: WorkList, backend: Backend) -> None:
    for name in "cab":
        work.notice([("s", name)])
        backend.clock.advance(1)
    assert [name for _, name in places(take(work))] == ["c", "a", "b"]


def test_who_comes_late_waits_for_no_more_than_a_round(work: WorkList, backend: Backend) -> None:
    work.notice([("big", str(n)) for n in range(50)])
    work.notice([("small", str(n)) for n in range(50)])
    take(work, 60)
    backend.clock.advance(1)
    work.notice([("late", str(n)) for n in range(3)])
    served = [scope for scope, _ in places(take(work, 9))]
    assert Counter(served) == {"big": 3, "small": 3, "late": 3}
    assert "late" in served[:3]


def test_who_was_served_much_is_not_behind_for_ever(work: WorkList, backend: Backend) -> None:
    work.notice([("big", str(n)) for n in range(50)])
    for item in take(work):
        work.looked(item, None, None)
    work.notice([("new", str(n)) for n in range(10)])
    backend.clock.advance(1)
    work.notice([("big", str(n)) for n in range(10)])
    served = [scope for scope, _ in places(take(work, 6))]
    assert served == ["new", "new", "big", "new", "big", "new"]


def test_what_has_waited_for_its_time_takes_its_turn_too(work: WorkList, backend: Backend) -> None:
    work.notice([("a", "waits")])
    work.looked(take_one(work), backend.clock.now + 10 * SECOND, None)
    work.notice([("b", str(n)) for n in range(20)])
    take(work, 5)
    backend.clock.advance(10)
    assert ("a", "waits") in places(take(work, 2))


@pytest.mark.slow_on("postgres")
def test_the_small_ones_are_served_in_the_first_rounds(work: WorkList) -> None:
    sizes = {"huge": 10_000, "ten": 10, "one": 1}
    for scope, count in sizes.items():
        assert work.notice([(scope, f"c{n}") for n in range(count)]) == count
    assert work.backlog().due == 10_011
    served = [scope for _ in range(7) for scope, _ in places(take(work, 3))]
    assert Counter(served) == {"huge": 10, "ten": 10, "one": 1}
    assert "one" in served[:3]
    rest = places(take(work, 20_000))
    assert len(rest) == len(set(rest)) == 10_011 - 21


# --- discovery ------------------------------------------------------------------------------------


class Host:
    """Transcripts of a host's own: names with their revisions."""

    def __init__(self, revisions: dict[str, str | None]) -> None:
        self.revisions = revisions

    def conversation(self, scope: str, conversation: str) -> Conversation:
        raise AssertionError("discovery reads names and revisions, and no conversation")

    def revision(self, scope: str, conversation: str) -> str | None:
        if conversation == "deleted":
            raise UnknownConversation(conversation)
        return self.revisions[conversation]

    def conversations(self) -> Iterable[tuple[str, str]]:
        return [("s", name) for name in self.revisions]


def test_new_and_changed_conversations_are_discovered(parts: Parts, backend: Backend) -> None:
    fill(parts, 1, "a")
    fill(parts, 1, "b")
    work = parts.work
    assert work.discover(parts.transcripts) == 2
    assert work.discover(parts.transcripts) == 0
    for item in take(work):
        work.looked(item, None, revision(parts, item))
    assert work.discover(parts.transcripts) == 0
    parts.transcripts.append(SCOPE, "b", *lines(1, start=1))
    assert backend.open().work.discover(backend.open().transcripts) is not None
    assert places(take(work)) == [(SCOPE, "b")]


def test_a_change_while_it_is_looked_at_is_discovered(parts: Parts) -> None:
    fill(parts, 1)
    parts.work.discover(parts.transcripts)
    item = take_one(parts.work)
    before = revision(parts, item)
    parts.transcripts.append(*PLACE, *lines(1, start=1))
    assert parts.work.discover(parts.transcripts) == 0  # somebody looks at it now
    parts.work.looked(item, None, before)
    assert parts.work.discover(parts.transcripts) == 1


def test_a_change_ends_the_waiting(parts: Parts, backend: Backend) -> None:
    fill(parts, 1)
    parts.work.discover(parts.transcripts)
    item = take_one(parts.work)
    parts.work.looked(item, backend.clock.now + 300 * SECOND, revision(parts, item))
    assert parts.work.discover(parts.transcripts) == 0
    parts.transcripts.append(*PLACE, *lines(1, start=1))
    assert parts.work.discover(parts.transcripts) == 1


def test_what_could_not_be_read_is_left_to_its_time(parts: Parts, backend: Backend) -> None:
    fill(parts, 1)
    parts.work.discover(parts.transcripts)
    again_at = backend.clock.now + 60 * SECOND
    parts.work.looked(take_one(parts.work), again_at, None, failures=1)
    assert parts.work.discover(parts.transcripts) == 0
    backend.clock.advance(60)
    assert take_one(parts.work).failures == 1


@pytest.mark.slow
def test_many_are_discovered(parts: Parts) -> None:
    for n in range(2_345):
        parts.transcripts.append(f"s{n % 7}", f"c{n}", [])
    assert parts.work.discover(parts.transcripts) == 2_345
    items = take(parts.work, 3_000)
    assert len(items) == 2_345
    for item in items[:100]:
        parts.work.looked(item, None, revision(parts, item))
    for item in items[100:150]:
        parts.work.looked(item, None, "another")
    assert parts.work.discover(parts.transcripts) == 50


def test_the_transcripts_of_a_host_are_asked_one_by_one(work: WorkList) -> None:
    host = Host({"a": "1", "b": "2", "deleted": "3"})
    assert work.discover(host) == 2
    for item in take(work):
        work.looked(item, None, host.revision(item.scope, item.conversation))
    assert work.discover(host) == 0
    host.revisions["b"] = "3"
    assert work.discover(host) == 1
    assert places(take(work)) == [("s", "b")]


def test_where_no_revision_is_kept_all_are_looked_at_that_do_not_wait(
    work: WorkList, backend: Backend
) -> None:
    host = Host({"idle": None, "waits": None})
    work.discover(host)
    for item in take(work):
        again_at = backend.clock.now + SECOND if item.conversation == "waits" else None
        work.looked(item, again_at, None)
    assert work.discover(host) == 1
    assert places(take(work)) == [("s", "idle")]


def test_another_view_makes_all_of_them_news(parts: Parts, backend: Backend) -> None:
    for name in "abc":
        fill(parts, 1, name)
    parts.work.discover(parts.transcripts, view="model-1")
    items = take(parts.work)
    for item, view in zip(items, ("model-1", "model-1", "model-2"), strict=True):
        parts.work.looked(item, None, revision(parts, item), view=view)
    assert parts.work.discover(parts.transcripts) == 0
    assert parts.work.discover(parts.transcripts, view="model-1") == 1
    assert parts.work.discover(parts.transcripts, view="model-2") == 2
    assert parts.work.discover(parts.transcripts, view="model-3") == 0  # they are due already


# --- who discovers, and when ----------------------------------------------------------------------


def test_one_of_all_discovers_in_each_period(backend: Backend) -> None:
    one, other = backend.open(), backend.open()
    fill(one, 1, "a")
    assert one.work.discover(one.transcripts, every=30) == 1
    fill(one, 1, "b")
    assert other.work.discover(other.transcripts, every=30) is None
    backend.clock.advance(29)
    assert one.work.discover(one.transcripts, every=30) is None
    backend.clock.advance(1)
    assert other.work.discover(other.transcripts, every=30) == 1


def test_views_are_compared_once_an_hour(parts: Parts, backend: Backend) -> None:
    fill(parts, 1)

    def look(discoverer: str, looker: str) -> bool:
        backend.clock.advance(31)
        parts.work.discover(parts.transcripts, view=discoverer, every=30)
        items = take(parts.work)
        for item in items:
            parts.work.looked(item, None, revision(parts, item), view=looker)
        return bool(items)

    assert look("m1", "m1")
    assert look("m2", "m2")  # for the first time of this view
    assert not look("m1", "m1")
    assert not look("m2", "m2")
    backend.clock.advance(3_600)
    assert look("m1", "m1")
    assert look("m2", "m2")
    assert not look("m1", "m1")


class SlowHost(Host):
    """A host that takes a second to tell a revision."""

    def __init__(self, backend: Backend, count: int) -> None:
        super().__init__({f"c{n}": "1" for n in range(count)})
        self._clock = backend.clock

    def revision(self, scope: str, conversation: str) -> str | None:
        self._clock.advance(1)
        return super().revision(scope, conversation)


@pytest.mark.slow_on("postgres")
def test_who_takes_long_to_discover_does_so_seldom(work: WorkList, backend: Backend) -> None:
    host = SlowHost(backend, 100)
    assert work.discover(host, every=10) == 100
    backend.clock.advance(899)
    assert work.discover(host, every=10) is None
    backend.clock.advance(1)
    assert work.discover(host, every=10) == 0


# --- many at once ---------------------------------------------------------------------------------


def test_takers_at_once_take_each_once(backend: Backend) -> None:
    sessions = [backend.open().work for _ in range(4)]
    sessions[0].notice([(f"s{n % 3}", f"c{n}") for n in range(300)])

    def all_of(work: WorkList) -> list[tuple[str, str]]:
        taken: list[tuple[str, str]] = []
        while items := take(work, 7):
            taken += places(items)
        return taken

    with ThreadPoolExecutor(4) as threads:
        taken = [place for found in threads.map(all_of, sessions) for place in found]
    assert len(taken) == len(set(taken)) == 300
