"""Looking at one conversation of the work list: what is noted of it, and when it is looked at again."""

from __future__ import annotations

import pytest
from backends import SECOND, Clock
from histories import CONVERSATION, SCOPE, TRUNCATED, UNAVAILABLE, Worker, lines, present_job
from scenarios import MODEL, good

from compaction_ledger import composition
from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DamagedLog, DiskFull, Erased, InvalidSetting
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.summarization import SummaryRequest
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.domain.work import Backlog, WorkItem
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.claiming import RangeOutcome
from compaction_ledger.usecases.stopping import NeverStop, Stop
from compaction_ledger.usecases.working import (
    FIRST_WAIT,
    LONGEST_WAIT,
    Look,
    Looker,
    view_of,
    wait_after,
)
from compaction_ledger.worker import SignalStop

PLACE = (SCOPE, CONVERSATION)


class Model:
    """A model that answers as it is told, again and again with the last one."""

    model = MODEL

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers) or [good()]
        self.asked = 0

    def summarize(self, request: SummaryRequest) -> Answer:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def parts(clock: Clock) -> Parts:
    """A ledger in memory with a conversation of five ranges that are due."""
    opened = composition.open_memory(
        policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings(), clock=clock
    )
    opened.transcripts.append(*PLACE, *lines(70))
    opened.work.notice([PLACE])
    return opened


def looker(
    parts: Parts, model: Model | None = None, *, stop: Stop | None = None, ranges: int = 100
) -> Looker:
    compactor = composition.compactor(
        parts, model or Model(), Settings(), stop=stop or NeverStop(), holder="w"
    )
    return Looker(compactor, parts.work, "v", ranges=ranges, random=lambda: 0.5)


def take(parts: Parts) -> WorkItem:
    [item] = parts.work.take("w", 1, 300)
    return item


def results(look: Look) -> list[str]:
    return [outcome.result for outcome in look.outcomes]


def due_in(parts: Parts, clock: Clock) -> float | None:
    """In how many seconds the conversation is due again; ``None``: when it is noticed."""
    before = clock.now
    for tenths in range(100_000):
        clock.now = before + tenths * SECOND // 10
        if parts.work.backlog().due:
            return tenths / 10
    return None


def test_what_is_due_is_summarized_and_then_it_waits_for_a_notice(parts: Parts) -> None:
    told: list[tuple[str, str, RangeOutcome]] = []
    look = looker(parts).look(take(parts), lambda *outcome: told.append(outcome))
    assert results(look) == ["completed"] * 5
    assert [(scope, name, outcome.result) for scope, name, outcome in told] == [
        (*PLACE, "completed")
    ] * 5
    assert parts.work.backlog() == Backlog()
    assert parts.work.discover(parts.transcripts, view="v") == 0


def test_what_changed_since_the_plan_is_discovered(parts: Parts) -> None:
    class Busy(Model):
        def summarize(self, request: SummaryRequest) -> Answer:
            parts.transcripts.append(*PLACE, *lines(1, start=70 + self.asked))
            return super().summarize(request)

    looker(parts, Busy()).look(take(parts))
    assert parts.work.discover(parts.transcripts) == 1


@pytest.mark.slow
def test_after_a_few_ranges_it_is_anothers_turn(parts: Parts, clock: Clock) -> None:
    one = looker(parts, ranges=2)
    assert results(one.look(take(parts))) == ["completed", "completed"]
    assert due_in(parts, clock) == 0
    assert results(one.look(take(parts))) == ["completed", "completed"]
    assert results(one.look(take(parts))) == ["completed"]
    assert due_in(parts, clock) is None


def test_a_range_that_waits_is_looked_at_when_its_time_comes(parts: Parts, clock: Clock) -> None:
    model = Model(good(), UNAVAILABLE, good())
    look = looker(parts, model).look(take(parts))
    assert results(look) == ["completed", "failed", "completed", "completed", "completed"]
    [failed] = [outcome for outcome in look.outcomes if outcome.result == "failed"]
    assert failed.again_at is not None
    assert parts.work.backlog() == Backlog(waiting=1)
    clock.now = failed.again_at - 1
    assert parts.work.backlog() == Backlog(waiting=1)
    clock.now = failed.again_at
    assert results(looker(parts, model).look(take(parts))) == ["completed"]


def test_a_range_whose_attempts_are_used_is_not_looked_at_again(parts: Parts) -> None:
    look = looker(parts, Model(TRUNCATED)).look(take(parts))
    assert results(look) == ["exhausted"] * 5
    assert parts.work.backlog() == Backlog()


def test_what_another_worker_holds_is_looked_at_when_its_lease_is_over(
    parts: Parts, clock: Clock
) -> None:
    other = Worker(parts, present_job(parts, 20), "other")
    other.claim(60 * SECOND)
    look = looker(parts).look(take(parts))
    assert results(look) == ["completed"] * 4  # the plan knows of the claim
    assert due_in(parts, clock) == 60
    assert results(looker(parts).look(take(parts))) == ["completed"]


def test_also_if_only_the_claim_finds_out(parts: Parts, clock: Clock) -> None:
    def claim_first(_done: int, due: int, _outcome: RangeOutcome | None) -> None:
        if not claimed:
            claimed.append(Worker(parts, present_job(parts, 0), "other"))
            claimed[0].claim(60 * SECOND)

    claimed: list[Worker] = []
    compactor = composition.compactor(parts, Model(), Settings(), stop=NeverStop())
    report = compactor.compact(*PLACE, on_range=claim_first)
    [refused] = [o for o in report.outcomes if o.result == "claimed_elsewhere"]
    assert refused.again_at == clock.now + 60 * SECOND


def test_in_an_outage_nothing_more_is_tried(parts: Parts, clock: Clock) -> None:
    look = looker(parts, Model(UNAVAILABLE)).look(take(parts))
    assert results(look) == ["failed", "failed", "failed", "outage"]
    assert look.held_back
    outage = look.outcomes[-1]
    assert outage.again_at is not None
    assert outage.again_at > clock.now
    assert due_in(parts, clock) not in (None, 0)


def test_who_is_not_admitted_leaves_it_to_whoever_is(parts: Parts, clock: Clock) -> None:
    leaves = [parts.admission.admit() for _ in range(4)]
    look = looker(parts).look(take(parts))
    assert (results(look), look.held_back) == (["not_admitted"], True)
    assert due_in(parts, clock) == 0
    assert leaves[0] is not None
    leaves[0]()
    assert results(looker(parts).look(take(parts))) == ["completed"] * 5


def test_a_stop_gives_back_what_was_not_done(parts: Parts, clock: Clock) -> None:
    stop = SignalStop()

    class Stopping(Model):
        def summarize(self, request: SummaryRequest) -> Answer:
            if self.asked == 1:
                stop._requested = True
            return super().summarize(request)

    look = looker(parts, Stopping(), stop=stop).look(take(parts))
    assert results(look) == ["completed", "completed"]
    assert due_in(parts, clock) == 0


def test_a_conversation_that_is_gone_is_dropped(parts: Parts) -> None:
    parts.work.notice([(SCOPE, "gone")])
    items = parts.work.take("w", 2, 300)
    [gone] = [item for item in items if item.conversation == "gone"]
    assert looker(parts).look(gone) == Look()
    assert parts.work.backlog() == Backlog(leased=1)


@pytest.mark.parametrize("noticed", [False, True])
def test_a_conversation_that_is_erased_is_forgotten(parts: Parts, *, noticed: bool) -> None:
    """No error, and nothing that is looked at again; also where it was noticed meanwhile (S3)."""
    item = take(parts)
    if noticed:
        parts.work.notice([PLACE])
    breaking(parts, Erased("it was erased"))
    assert looker(parts).look(item) == Look()
    assert list(parts.work.places()) == []


# --- errors ---------------------------------------------------------------------------------------


def breaking(parts: Parts, error: Exception) -> None:
    """From now on the conversation cannot be read."""

    def conversation(scope: str, name: str) -> None:
        raise error

    parts.transcripts.conversation = conversation  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DamagedLog("not what was sealed", index=3), "damaged_log", "index 3: not what was sealed"),
        (KeyError("a text of the user"), "internal", "KeyError"),
    ],
)
def test_an_error_is_noted_and_its_waits_grow(
    parts: Parts, clock: Clock, error: Exception, code: str, message: str
) -> None:
    breaking(parts, error)
    waits: list[float | None] = []
    for number in range(1, 4):
        look = looker(parts).look(take(parts))
        assert look.failure is not None
        failure = look.failure
        assert (failure.code, failure.message, failure.number) == (code, message, number)
        assert (failure.scope, failure.conversation) == PLACE
        waits.append(due_in(parts, clock))
    assert waits == [7.5, 15, 30]


def test_a_change_ends_the_wait_after_an_error(parts: Parts) -> None:
    breaking(parts, DamagedLog("damaged"))
    looker(parts).look(take(parts))
    assert parts.work.discover(parts.transcripts, view="v") == 0
    parts.transcripts.append(*PLACE, *lines(1, start=70))
    assert parts.work.discover(parts.transcripts, view="v") == 1


def test_once_it_went_well_the_errors_are_forgotten(parts: Parts, clock: Clock) -> None:
    item = take(parts)
    parts.work.looked(item, clock.now, None, failures=7)
    looker(parts, ranges=1).look(take(parts))
    assert take(parts).failures == 0


@pytest.mark.parametrize("error", [DiskFull("full"), InvalidSetting("no key")])
def test_what_concerns_everything_goes_on(parts: Parts, error: Exception) -> None:
    breaking(parts, error)
    with pytest.raises(type(error)):
        looker(parts).look(take(parts))
    assert parts.work.backlog() == Backlog(leased=1)


def test_waits_after_errors_end_at_an_hour() -> None:
    assert wait_after(1, 0.0) == FIRST_WAIT // 2
    assert wait_after(2, 0.0) == FIRST_WAIT
    assert wait_after(1_000, 0.999) < LONGEST_WAIT
    assert wait_after(1_000, 0.0) == LONGEST_WAIT // 2


def test_a_view_depends_on_all_that_a_look_depends_on(parts: Parts) -> None:
    context = parts.context
    other = composition.open_memory(
        policy=WindowPolicy(40), registry=DEFAULT_REGISTRY, settings=Settings()
    ).context
    small = type(MODEL).of("p", "small")
    views = {
        view_of(context, MODEL, upgrade=False),
        view_of(context, MODEL, upgrade=True),
        view_of(context, small, upgrade=False),
        view_of(context, type(MODEL).of("p", "small", {"t": "1"}), upgrade=False),
        view_of(other, MODEL, upgrade=False),
    }
    assert len(views) == 5
    assert view_of(context, MODEL, upgrade=False) in views
