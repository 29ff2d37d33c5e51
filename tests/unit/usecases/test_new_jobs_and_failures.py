"""What new jobs are made with (I2), and what a failure leaves behind (A11)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compaction_ledger import (
    Answer,
    FinishFacts,
    Ledger,
    ModelIdentity,
    NewMessage,
    NewRun,
    PromptVersion,
    SummaryRequest,
)

PAIRS = 40


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.in_memory() as opened:
        for n in range(PAIRS):
            question = NewMessage(f"q{n}", f"run{n}", "user", f"Question {n}?")
            answer = NewMessage(
                f"a{n}", f"run{n}", "assistant", f"Answer {n}. It has two sentences."
            )
            opened.transcripts.append("default", "chat", [question, answer], [NewRun(f"run{n}")])
        yield opened


class Failing:
    """A summarizer that brings no summary, each time in another way."""

    model = ModelIdentity.of("example.org", "failing")

    def __init__(self) -> None:
        self.calls = 0

    def summarize(self, request: SummaryRequest) -> Answer:
        self.calls += 1
        if self.calls == 1:
            raise RuntimeError(request.replies[0].text)
        return Answer(text="Cut off", finish=FinishFacts(signals=("length",)))


def test_new_jobs_use_the_current_prompt_version(ledger: Ledger) -> None:
    """I2."""
    ledger.compact("chat")
    current = PromptVersion("conversation-compaction", 3)
    assert [row.prompt for row in ledger.summaries("chat")] == [current, current]


def test_an_older_version_keeps_its_identity(ledger: Ledger) -> None:
    """I2: summarizing anew under the current version adds a job, and leaves the old one as it was."""
    model = ModelIdentity.of("openai", "gpt-4o-mini")
    version = PromptVersion("conversation-compaction", 2)
    job = ledger.job_of_present_source("chat", from_pair=0, model=model, prompt=version)
    ledger.import_summary(job, "An old summary.", origin="the old service")
    [before] = ledger.summaries("chat")
    ledger.compact("chat", upgrade=True)
    assert before.identity == job.identity
    assert before in ledger.summaries("chat")
    assert len(ledger.summaries("chat")) == 3


def test_a_failure_touches_no_transcript_and_no_request(ledger: Ledger) -> None:
    """A11: the worst case is that there is no summary."""
    before = ledger.transcripts.conversation("default", "chat")
    request = ledger.assemble("chat", budget=100_000)
    report = ledger.compact("chat", summarizer=Failing())
    assert report.completed == 0
    assert report.outcomes
    assert ledger.transcripts.conversation("default", "chat") == before
    assert ledger.assemble("chat", budget=100_000).body == request.body
    assert not any("Answer 0" in repr(entry.fact) for entry in ledger.events())
