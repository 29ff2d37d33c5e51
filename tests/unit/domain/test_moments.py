"""Points of the log as people name them (P5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.moments import EPOCH, Moment, Point, parse_moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("-1", Moment(index=-1)),
        ("0", Moment(index=0)),
        ("41", Moment(index=41)),
        ("@0", Moment(time=0)),
        ("@-5", Moment(time=-5)),
        ("@1750000000000001", Moment(time=1_750_000_000_000_001)),
        ("1970-01-01T00:00:01Z", Moment(time=1_000_000)),
        ("1970-01-01T01:00:00.000002+01:00", Moment(time=2)),
        ("1969-12-31T23:59:59.999999Z", Moment(time=-1)),
    ],
)
def test_a_point(text: str, moment: Moment) -> None:
    assert parse_moment(text, "--at") == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-2",
        "yesterday",
        "1.5",
        "²",
        "@",
        "@x",
        "@1.5",
        "@9007199254740992",
        "1970-01-01T00:00:00",
    ],
)
def test_what_is_no_point(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"^--to: ") as caught:
        parse_moment(text, "--to")
    assert caught.value.place == "--to"


@pytest.mark.slow
@given(
    st.datetimes(
        datetime(1970, 1, 1),  # noqa: DTZ001 - as the strategy wants it
        datetime(2200, 1, 1),  # noqa: DTZ001
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))]),
    )
)
def test_a_time_and_its_microseconds_are_one_point(moment: datetime) -> None:
    microseconds = (moment - EPOCH) // timedelta(microseconds=1)
    assert parse_moment(moment.isoformat(), "--at") == Moment(time=microseconds)
    assert parse_moment(f"@{microseconds}", "--at") == Moment(time=microseconds)


def test_leases_are_judged_by_the_time_asked_for_else_by_that_of_the_last_event() -> None:
    assert Point(4, 10).judged_at == 10
    assert Point(4, 10, 99).judged_at == 99
    assert Point(-1, None).judged_at is None
    assert Point(-1, None).position == 0
