"""What a backfill tells while it goes on: rates, what is left, and a line now and then."""

from __future__ import annotations

import io

import pytest

from compaction_ledger.cli.backfill.rate import WINDOW, Rate
from compaction_ledger.cli.backfill.running import is_done
from compaction_ledger.cli.backfill.telling import Teller
from compaction_ledger.cli.plain import duration
from compaction_ledger.cli.screen import Screen
from compaction_ledger.domain.work import Backlog
from compaction_ledger.usecases.archiving import ArchiveProgress


class Seconds:
    """A clock of seconds that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


def test_a_rate_is_that_of_lately(clock: Seconds) -> None:
    rate = Rate(clock)
    assert (rate.per_second, rate.seconds_for(10)) == (0.0, None)
    rate.note(0)
    assert rate.per_second == 0.0
    for _ in range(100):
        clock.now += 1
        rate.note(int(clock.now - 1_000) * 5)
    assert rate.per_second == pytest.approx(5)
    assert rate.seconds_for(50) == pytest.approx(10)
    for _ in range(int(WINDOW) + 2):  # and now nothing comes of it any more
        clock.now += 1
        rate.note(500)
    assert rate.per_second == 0.0
    assert rate.seconds_for(1) is None


def test_a_line_every_few_seconds(clock: Seconds, capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(Screen(file=io.StringIO()), clock)
    with teller.importing() as tell:
        for step in range(1, 12):
            clock.now += 1
            tell(ArchiveProgress(100 * step, 2_000, 2 * step, 300 * step, 0))
    assert capsys.readouterr().err.splitlines() == [
        "Importing: 25 %, 10 conversations, 1,500 pairs, 300 pairs/s, 15.0 s left",
        "Importing: 50 %, 20 conversations, 3,000 pairs, 300 pairs/s, 10.0 s left",
    ]
    with teller.summarizing(100) as tell_done:
        tell_done(40)
        clock.now += 5
        tell_done(50)
    assert capsys.readouterr().err.splitlines() == [
        "Summarizing: 50 %, 50 of 100 ranges, 2.0 ranges/s, 25.0 s left"
    ]
    teller.note("the store can do it again\x1b[31m")
    assert capsys.readouterr().err == "the store can do it again\\u001b[31m\n"


def test_a_bar_on_a_terminal(clock: Seconds) -> None:
    out = io.StringIO()
    teller = Teller(Screen(file=out, force_terminal=True, width=120), clock)
    with teller.importing() as tell:
        clock.now += 1
        tell(ArchiveProgress(10, 20, 1, 5, 1))
        teller.note("something happened")
    assert "Importing" in out.getvalue()
    assert "something happened" in out.getvalue()


@pytest.mark.parametrize(
    ("backlog", "done"),
    [
        (Backlog(), True),
        (Backlog(waiting=2, failing=2), True),
        (Backlog(waiting=2, failing=1), False),
        (Backlog(due=1), False),
        (Backlog(leased=1), False),
    ],
)
def test_when_there_is_nothing_left_to_wait_for(backlog: Backlog, done: bool) -> None:
    assert is_done(backlog) == done


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.25, "0.2 s"), (119, "119.0 s"), (600, "10 min"), (9_000, "2.5 h")]
)
def test_lengths_of_time(seconds: float, told: str) -> None:
    assert duration(seconds) == told
