"""The test double that ships for users' own tests."""

from __future__ import annotations

import pytest
from summary_requests import request_of

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import Answer, failures
from compaction_ledger.infrastructure.summarizers.scripted import ScriptedSummarizer, plain


def test_given_answers_when_asked_then_they_come_in_order_and_requests_are_kept() -> None:
    summarizer = ScriptedSummarizer(["First.", Answer(fault="timeout")])
    first, second = request_of(["One."]), request_of(["Two."])

    assert summarizer.summarize(first) == plain("First.")
    assert failures(summarizer.summarize(second))[0] == "timeout"
    assert summarizer.requests == [first, second]


def test_given_no_answer_left_when_asked_then_the_unexpected_call_is_an_error() -> None:
    summarizer = ScriptedSummarizer([])

    with pytest.raises(InvalidSetting, match="call 1"):
        summarizer.summarize(request_of(["One."]))
