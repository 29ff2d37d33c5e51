"""The lease of a running attempt is renewed, and nothing of that reaches the attempt (A4, A5)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from backends import SECOND
from histories import CONVERSATION, SCOPE, Worker, fill, key_of, made_up_job, present_job
from kept_processes import wait_until
from scenarios import MODEL, good

from compaction_ledger import (
    Answer,
    InvalidSetting,
    Ledger,
    ModelIdentity,
    Settings,
    Stopped,
    SummaryRequest,
    composition,
)
from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import (
    AlreadyClaimed,
    LeaseExpired,
    NotTheHolder,
    StoreError,
)
from compaction_ledger.domain.events import ClaimRenewed, RangeClaimed
from compaction_ledger.domain.ports import Log
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.usecases.renewing import Renewal, renewing

JOB = made_up_job()
LEASE = SECOND // 2
LONG = 3_600 * SECOND
NOT_DURING_THE_TEST = 3_600 * SECOND


def opened(path: Path) -> Parts:
    return composition.open_sqlite(
        path, policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings()
    )


@pytest.fixture
def parts() -> Parts:
    """A ledger in memory, by the clock of this machine."""
    return composition.open_memory(
        policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings()
    )


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert threads() == []


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "lease-renewal"]


def at_work(parts: Parts, lease: int = NOT_DURING_THE_TEST) -> Worker:
    """A worker whose attempt is running, under a lease that began with it."""
    one = Worker(parts, JOB)
    one.claim(NOT_DURING_THE_TEST)
    one.start(lease=lease)
    return one


def renewal_of(one: Worker, lease: int = LEASE, log: Any = None) -> Renewal:
    chosen = cast(Log, log) if log is not None else one.parts.context.log
    return Renewal(chosen, key_of(JOB), one.claim_id, lease)


def renewals(parts: Parts) -> list[ClaimRenewed]:
    facts = [entry.fact for entry in parts.context.log.read(0, 10**6)]
    return [fact for fact in facts if isinstance(fact, ClaimRenewed)]


# --- a long attempt, on a real file ---------------------------------------------------------------


class Slow:
    """A summarizer that takes its time; what happens meanwhile is given."""

    model: ModelIdentity = MODEL

    def __init__(self, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._seconds = seconds
        self._meanwhile = meanwhile

    def summarize(self, request: SummaryRequest) -> Answer:
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            self._meanwhile()
            time.sleep(0.05)
        return good()


@pytest.mark.slow
def test_an_attempt_of_three_leases_completes_and_nobody_gets_in_between(tmp_path: Path) -> None:
    path, lease = tmp_path / "ledger.db", 1.0
    refused: list[int] = []

    def try_to_claim() -> None:
        rival = Worker(other, job, f"rival-{len(refused)}")
        with pytest.raises(AlreadyClaimed) as refusal:
            rival.claim()
        refused.append(refusal.value.expires_at)

    with Ledger.open(path, settings=Settings(lease_seconds=lease)) as ledger:
        fill(ledger._parts)
        job = present_job(ledger._parts)
        other = opened(path)
        report = ledger.compact(CONVERSATION, scope=SCOPE, summarizer=Slow(3 * lease, try_to_claim))
        assert [outcome.result for outcome in report.outcomes] == ["completed"]
        assert len(refused) > 3
        assert sorted(refused) == refused
        facts = [entry.fact for entry in ledger.events()]
        ends = [fact.expires_at for fact in facts if isinstance(fact, ClaimRenewed)]
        assert len(ends) >= 3
        assert sorted(set(ends)) == ends
        assert set(refused) <= {*ends, *(getattr(fact, "expires_at", 0) for fact in facts[:2])}
        assert [attempt.outcome for attempt in ledger.attempts(CONVERSATION, scope=SCOPE)] == [
            "completed"
        ]
        assert ledger.verify().ok
        other.close()


@pytest.mark.slow
def test_an_attempt_that_takes_too_long_is_not_renewed_for_ever() -> None:
    settings = Settings(lease_seconds=0.3, longest_attempt_seconds=0)
    with Ledger.in_memory(settings=settings) as ledger:
        fill(ledger._parts)
        report = ledger.compact(CONVERSATION, scope=SCOPE, summarizer=Slow(0.4))
        assert [outcome.result for outcome in report.outcomes] == ["refused"]
        assert renewals(ledger._parts) == []


def test_how_long_an_attempt_may_take_is_a_setting() -> None:
    assert Settings().longest_attempt_seconds == 3_600
    with pytest.raises(InvalidSetting):
        Settings(longest_attempt_seconds=-1)
    parts = composition.open_memory(
        policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings()
    )
    work = composition.compactor(
        parts, Slow(0), Settings(longest_attempt_seconds=7), stop=cast(Any, None)
    )
    assert work.longest_attempt == 7 * SECOND


# --- when it renews -------------------------------------------------------------------------------


def test_a_short_call_renews_nothing(parts: Parts) -> None:
    one = at_work(parts)
    with renewing(renewal_of(one, NOT_DURING_THE_TEST), LONG):
        assert threads() == ["lease-renewal"]
    assert renewals(parts) == []


@pytest.mark.slow
def test_a_lease_is_renewed_three_times_in_its_time(parts: Parts) -> None:
    one = at_work(parts, LEASE)
    with renewing(renewal_of(one), LONG):
        wait_until(lambda: len(renewals(parts)) >= 3)
    facts = parts.context.log.read(2, 100)
    times = [entry.recorded_at for entry in facts if isinstance(entry.fact, ClaimRenewed)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) >= LEASE // 3 * 0.9
    assert one.finish().facts  # the holder knows nothing of it, and finishes


@pytest.mark.slow
def test_it_ends_after_the_longest_time(parts: Parts) -> None:
    one = at_work(parts)
    with renewing(renewal_of(one, NOT_DURING_THE_TEST), LEASE), renewing(renewal_of(one), LEASE):
        wait_until(lambda: len(threads()) == 1)
    assert len(renewals(parts)) <= 3


def test_a_refused_renewal_is_the_last(parts: Parts) -> None:
    one = at_work(parts, LEASE)
    with renewing(renewal_of(one, 3 * SECOND // 100), LONG):
        one.finish()
        wait_until(lambda: threads() == [])
    with pytest.raises(NotTheHolder):
        one.renew()


def test_what_is_found_past_its_lease_is_recorded(parts: Parts) -> None:
    one = at_work(parts, 1_000)
    time.sleep(0.002)
    with renewing(renewal_of(one), LONG):
        wait_until(lambda: threads() == [])
    assert parts.context.log.load(key_of(JOB)).closed == {one.claim_id: "expired"}
    with pytest.raises(NotTheHolder):
        one.finish()


# --- what goes wrong ------------------------------------------------------------------------------


class Failing:
    """A log whose appends fail so many times."""

    def __init__(self, log: Log, error: Exception, times: int) -> None:
        self._log = log
        self._error = error
        self.left = times

    def append(self, *arguments: Any) -> Sequence[int]:
        if self.left:
            self.left -= 1
            raise self._error
        return self._log.append(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


@pytest.mark.slow
def test_what_the_store_could_not_do_is_tried_again_at_the_next_tick(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    one = at_work(parts, SECOND)
    log = Failing(parts.context.log, StoreError("the disk is gone"), 1)
    with renewing(renewal_of(one, SECOND, log), LONG):
        wait_until(lambda: len(renewals(parts)) > 0)
    assert log.left == 0
    assert "the disk is gone" in caplog.text


def test_a_defect_ends_it_and_reaches_nobody(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    one = at_work(parts, LEASE)
    log = Failing(parts.context.log, RuntimeError("a secret"), 1)
    with renewing(renewal_of(one, LEASE, log), LONG):
        wait_until(lambda: threads() == [])
    assert "RuntimeError" in caplog.text
    assert "a secret" not in [record.message for record in caplog.records]


def test_without_another_thread_the_attempt_goes_on(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    one = at_work(parts)
    monkeypatch.setattr(threading.Thread, "start", none_left)
    with renewing(renewal_of(one), LONG):
        one.finish()
    assert "can't start new thread" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt, RuntimeError])
def test_however_the_call_ends_renewing_ends_before_it(
    parts: Parts, error: type[BaseException]
) -> None:
    def interrupted() -> None:
        with renewing(renewal_of(one), LONG):
            wait_until(lambda: len(renewals(parts)) > 0)
            raise error

    one = at_work(parts, LEASE)
    with pytest.raises(error):
        interrupted()
    assert threads() == []
    count = len(renewals(parts))
    time.sleep(LEASE / SECOND)
    assert len(renewals(parts)) == count


def test_a_lease_that_ran_out_all_the_same_refuses_the_finish() -> None:
    """Whatever stops the renewing, the rule stays as it is."""
    parts = composition.open_memory(
        policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings()
    )
    one = at_work(parts, 1_000)
    with renewing(renewal_of(one, LEASE), 0):
        time.sleep(0.01)
    with pytest.raises(LeaseExpired):
        one.finish()
    assert isinstance(parts.context.log.read(0, 1)[0].fact, RangeClaimed)
