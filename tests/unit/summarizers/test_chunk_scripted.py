"""The test double for chunks that ships for users' own tests."""

from __future__ import annotations

import pytest
from chunk_requests import chunk_request

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import Answer, failures
from compaction_ledger.domain.window.structure import StructuredSummary, parse_structure
from compaction_ledger.infrastructure.summarizers.chunk_scripted import ScriptedChunkSummarizer


def test_given_answers_when_asked_then_they_come_in_order_and_requests_are_kept() -> None:
    said = StructuredSummary(decisions=("Yes.",))
    summarizer = ScriptedChunkSummarizer([said, "{}", Answer(fault="timeout")])
    requests = [chunk_request(["One."]), chunk_request(["Two."]), chunk_request(["Three."])]

    first, second, third = map(summarizer.summarize_chunk, requests)

    assert parse_structure(first.text) == said
    assert (failures(first), second.text, third.fault) == ((), "{}", "timeout")
    assert summarizer.requests == requests
    with pytest.raises(InvalidSetting, match="call 4"):
        summarizer.summarize_chunk(requests[0])
