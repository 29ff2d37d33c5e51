"""A run over all conversations: what ends it, and what is reported while it goes on."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from compaction_ledger import (
    Answer,
    Conversation,
    DamagedLog,
    DuplicateMessageId,
    InvalidInput,
    InvalidSetting,
    Ledger,
    LedgerError,
    Message,
    ModelIdentity,
    Run,
    ScriptedSummarizer,
    StoreError,
    SummaryRequest,
    UnknownConversation,
)
from compaction_ledger.domain.errors import DiskFull, LedgerBusy, LedgerReadOnly

NAMES = ["c0", "c1", "c2"]


class Host:
    """Three conversations of thirty pairs; reading the second one goes wrong."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def conversation(self, scope: str, conversation: str) -> Conversation:
        if conversation == "c1" and self._error is not None:
            raise self._error
        messages: list[Message] = []
        runs: dict[str, Run] = {}
        for n in range(30):
            where = (conversation, scope)
            run = f"run{n}"
            runs[run] = Run(run, "completed", *where)
            for side in ("user", "assistant"):
                text = f"{side} {n} says something. " * 9
                messages.append(Message(f"{side}{n}", run, side, "completed", "chat", text, *where))
        return Conversation(scope, conversation, messages, runs)

    def revision(self, scope: str, conversation: str) -> str | None:
        return None

    def conversations(self) -> Iterable[tuple[str, str]]:
        return [("s", name) for name in NAMES]


OF_ONE_CONVERSATION = [
    DuplicateMessageId("m", "row 1", "row 2"),
    UnknownConversation("it was deleted meanwhile"),
    InvalidInput("a host's row is wrong"),
    DamagedLog("the payload is not the one that was sealed", index=3),
]


@pytest.mark.parametrize("error", OF_ONE_CONVERSATION, ids=lambda e: e.code)
def test_an_error_of_one_conversation_is_reported_and_the_run_goes_on(error: LedgerError) -> None:
    with Ledger.in_memory(transcripts=Host(error)) as ledger:
        run = ledger.compact_all()
    assert [(report.conversation, report.completed) for report in run.reports] == [
        ("c0", 1),
        ("c2", 1),
    ]
    [failure] = run.failures
    assert (failure.scope, failure.conversation) == ("s", "c1")
    assert failure.error is error
    assert not run.stopped


OF_EVERYTHING = [
    DiskFull("the disk is full"),
    LedgerReadOnly("the file cannot be written"),
    LedgerBusy("held by another process"),
    StoreError("out of order"),
    OSError("an error that is none of ours"),
]


@pytest.mark.parametrize("error", OF_EVERYTHING, ids=lambda e: type(e).__name__)
def test_an_error_of_the_store_or_of_the_host_ends_the_run(error: Exception) -> None:
    with Ledger.in_memory(transcripts=Host(error)) as ledger:
        with pytest.raises(type(error)) as raised:
            ledger.compact_all()
        assert raised.value is error
        assert [row.conversation for row in ledger.ranges()] == ["c0"]


def test_a_summarizer_that_is_set_wrongly_ends_the_run() -> None:
    summarizer = ScriptedSummarizer(["A summary."])  # the second call is one too many
    with Ledger.in_memory(transcripts=Host()) as ledger:
        with pytest.raises(InvalidSetting):
            ledger.compact_all(summarizer=summarizer)
        assert [(row.conversation, row.status) for row in ledger.ranges()] == [
            ("c0", "done"),
            ("c1", "failed"),
        ]


def test_what_the_model_does_wrong_is_no_failure_of_its_conversation() -> None:
    class Broken:
        model = ModelIdentity.of("example.org", "broken")

        def summarize(self, request: SummaryRequest) -> Answer:
            raise RuntimeError

    with Ledger.in_memory(transcripts=Host()) as ledger:
        run = ledger.compact_all(summarizer=Broken())
    assert run.failures == ()
    assert [outcome.result for report in run.reports for outcome in report.outcomes] == [
        "failed",
        "failed",
        "failed",
    ]
