"""C1 to C4 through the pydantic-ai adapter, against a real server on the Chat Completions wire."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from provider_server import ProviderServer, Reply, completion
from summary_requests import request_of

from compaction_ledger.domain.finish import FAILURE_CODES, Answer, Usage, failures
from compaction_ledger.infrastructure.summarizers.pydantic_ai import PydanticAISummarizer

pytest.importorskip("openai")

TOOL_CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SECRET = "the provider's own words"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def ask(url: str, *, timeout: float = 20.0) -> Answer:
    model = "openai-compatible:m"
    with PydanticAISummarizer(model, base_url=f"{url}/v1", timeout=timeout) as summarizer:
        return summarizer.summarize(request_of(["One.", "Two."]))


def answered(server: ProviderServer, reply: Reply) -> Answer:
    server.reply = reply
    return ask(server.url)


def test_given_a_normal_stop_when_asked_then_it_is_a_success_with_its_usage(
    server: ProviderServer,
) -> None:
    answer = answered(server, completion("A summary."))

    assert failures(answer) == ()
    assert answer.text == "A summary."
    assert answer.finish.signals == ("stop",)
    assert answer.finish.provider_words == ("stop",)
    assert answer.usage == Usage(11, 7)


FINISHES = [
    ("length", completion("Cut", "length"), "truncated", "length"),
    ("content filter", completion("", "content_filter"), "content_filter", "content_filter"),
    ("unknown word", completion("Text", "eos"), "abnormal_finish", "other"),
    ("no finish reason", completion("Text", None), "missing_finish", None),
    ("refusal", completion(None, "stop", message={"refusal": SECRET}), "refusal", "refusal"),
    (
        "tool call beside good prose (Case A)",
        completion("Excellent prose.", "tool_calls", message={"tool_calls": [TOOL_CALL]}),
        "tool_call",
        "tool_call",
    ),
    (
        "tool call with a finish reason that hides it",
        completion("Excellent prose.", "stop", message={"tool_calls": [TOOL_CALL]}),
        "tool_call",
        "stop",
    ),
    ("empty", completion(""), "empty", "stop"),
    ("no content", completion(None), "empty", "stop"),
    ("white space", completion(" \u3000\n"), "empty", "stop"),
    ("NUL", completion("a\x00b"), "malformed_text", "stop"),
    ("too long", completion("x" * 6_001), "too_long", "stop"),
    ("only reasoning", completion("", message={"reasoning_content": "Hm."}), "empty", "stop"),
]


@pytest.mark.parametrize(
    ("reply", "code", "signal"),
    [pytest.param(*row[1:], id=row[0]) for row in FINISHES],
)
def test_given_an_abnormal_finish_when_asked_then_it_has_its_own_code(
    server: ProviderServer, reply: Reply, code: str, signal: str | None
) -> None:
    answer = answered(server, reply)

    assert failures(answer)[0] == code
    assert answer.finish.signals == (() if signal is None else (signal,))
    assert answer.fault is None
    assert SECRET not in repr(answer)


def test_given_two_choices_when_asked_then_there_are_two_finishes(server: ProviderServer) -> None:
    answer = answered(server, completion("Text", choices=2))

    assert failures(answer) == ("multiple_finishes",)
    assert answer.finish.signals == ("stop", "stop")
    assert answer.finish.provider_words == ("stop", "stop")


def test_given_exactly_6000_characters_when_asked_then_nothing_is_cut(
    server: ProviderServer,
) -> None:
    answer = answered(server, completion("字" * 6_000))

    assert failures(answer) == ()
    assert answer.text == "字" * 6_000


@pytest.mark.parametrize(
    "reply",
    [
        completion("The answer.", message={"reasoning_content": "Let me think."}),
        completion("<think>Let me think.</think>The answer."),
    ],
)
def test_given_reasoning_beside_text_when_asked_then_only_the_text_counts(
    server: ProviderServer, reply: Reply
) -> None:
    answer = answered(server, reply)

    assert failures(answer) == ()
    assert answer.text.strip() == "The answer."


def test_given_a_lone_surrogate_when_asked_then_the_text_is_malformed(
    server: ProviderServer,
) -> None:
    body = completion("MARK").body.replace(b"MARK", rb"bad \ud800 text")

    answer = answered(server, Reply(body))

    assert failures(answer) == ("malformed_text",)


FAULTS = [
    ("429", Reply(SECRET.encode(), 429), "provider_unavailable"),
    ("502", Reply(b"{}", 502), "provider_unavailable"),
    (
        "503",
        Reply(json.dumps({"error": {"message": SECRET}}).encode(), 503),
        "provider_unavailable",
    ),
    ("504", Reply(b"{}", 504), "provider_unavailable"),
    ("402 quota", Reply(b"{}", 402), "provider_unavailable"),
    ("connection dropped", Reply(drop=True), "provider_unavailable"),
    ("500", Reply(json.dumps({"error": {"message": SECRET}}).encode(), 500), "provider_error"),
    ("400", Reply(SECRET.encode(), 400), "provider_error"),
    ("401", Reply(json.dumps({"error": {"message": SECRET}}).encode(), 401), "provider_error"),
    ("404", Reply(b"{}", 404), "provider_error"),
    ("malformed JSON", Reply(b'{"choices": [' + SECRET.encode()), "provider_error"),
    ("not JSON", Reply(SECRET.encode(), content_type="text/html"), "provider_error"),
    ("empty object", Reply(b"{}"), "provider_error"),
    ("no choices", completion(choices=0), "provider_error"),
    ("JSON null", Reply(b"null"), "provider_error"),
    ("empty finish reason", completion("Text", ""), "provider_error"),
]


@pytest.mark.parametrize(("reply", "fault"), [pytest.param(*row[1:], id=row[0]) for row in FAULTS])
def test_given_a_faulty_provider_when_asked_then_one_call_was_made_and_no_text_kept(
    server: ProviderServer, reply: Reply, fault: str
) -> None:
    answer = answered(server, reply)

    assert failures(answer)[0] == fault
    assert answer.fault == fault
    assert answer.text == ""
    assert SECRET not in repr(answer)
    assert len(server.received) == 1, "one attempt is one call"


@pytest.mark.parametrize("header", ["Retry-After", "retry-after"])
def test_given_429_with_seconds_when_asked_then_they_are_handed_on(
    server: ProviderServer, header: str
) -> None:
    answer = answered(server, Reply(b"{}", 429, {header: "17"}))

    assert answer.retry_after == 17.0
    assert answer.detail is not None
    assert answer.detail.endswith("HTTP 429")


def test_given_503_with_a_date_when_asked_then_the_seconds_until_then(
    server: ProviderServer,
) -> None:
    then = datetime.now(UTC) + timedelta(seconds=90)

    answer = answered(
        server, Reply(b"{}", 503, {"Retry-After": format_datetime(then, usegmt=True)})
    )

    assert answer.retry_after == pytest.approx(90, abs=15)


@pytest.mark.parametrize("value", ["soon", "-5", "nan", "", "9" * 400])
def test_given_nonsense_in_retry_after_when_asked_then_there_is_none(
    server: ProviderServer, value: str
) -> None:
    assert answered(server, Reply(b"{}", 429, {"Retry-After": value})).retry_after is None


def test_given_nobody_listening_when_asked_then_the_provider_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        answer = ask(f"http://127.0.0.1:{port}")

    assert answer.fault == "provider_unavailable"


@pytest.mark.slow
def test_given_a_provider_that_hangs_when_asked_then_it_times_out(server: ProviderServer) -> None:
    server.reply = Reply(hang=True)

    answer = ask(server.url, timeout=0.3)

    assert failures(answer)[0] == "timeout"
    assert len(server.received) == 1


def test_given_a_call_under_way_when_cancelled_then_the_answer_says_so(
    server: ProviderServer,
) -> None:
    server.reply = Reply(hang=True)
    answers: list[Answer] = []
    with PydanticAISummarizer("openai-compatible:m", base_url=server.url) as summarizer:
        asking = threading.Thread(
            target=lambda: answers.append(summarizer.summarize(request_of(["One."])))
        )
        asking.start()
        assert server.arrived.wait(10)
        summarizer.cancel()
        asking.join(10)

    assert [failures(answer)[0] for answer in answers] == ["cancelled"]


def test_given_a_call_under_way_when_closed_then_the_answer_says_so(server: ProviderServer) -> None:
    server.reply = Reply(hang=True)
    answers: list[Answer] = []
    summarizer = PydanticAISummarizer("openai-compatible:m", base_url=server.url)
    asking = threading.Thread(
        target=lambda: answers.append(summarizer.summarize(request_of(["One."])))
    )
    asking.start()
    assert server.arrived.wait(10)
    summarizer.close()
    asking.join(10)

    assert [answer.fault for answer in answers] == ["cancelled"]


def test_every_code_but_the_ledgers_own_is_reached_in_this_file() -> None:
    reached = {row[2] for row in FINISHES} | {row[2] for row in FAULTS}
    elsewhere = {"timeout", "cancelled", "multiple_finishes"}

    with_the_source = {"invalid_structure", "not_smaller", "ungrounded"}
    assert reached | elsewhere == set(FAILURE_CODES) - with_the_source - {"lease_expired"}
