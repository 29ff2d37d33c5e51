"""The common prefix of successive requests (T10)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.domain.window.reuse import common_prefix, sent

messages = st.lists(st.binary(max_size=12).map(lambda text: text.replace(b",", b".")), max_size=6)


@given(messages, messages)
def test_it_is_the_common_prefix_of_the_joined_bytes(before: list[bytes], now: list[bytes]) -> None:
    one, other = b",".join(before), b",".join(now)
    shared = next(
        (n for n, (x, y) in enumerate(zip(one, other, strict=False)) if x != y),
        min(len(one), len(other)),
    )
    assert abs(common_prefix(before, now) - shared) <= 1  # the comma behind the last one


@given(messages, messages)
def test_what_is_appended_changes_nothing_before_it(before: list[bytes], new: list[bytes]) -> None:
    assert common_prefix(before, [*before, *new]) == sum(map(len, before)) + len(before)


def test_what_is_sent_is_counted_with_its_commas() -> None:
    assert sent([]) == 0
    assert sent([b"ab", b"c"]) == 4
