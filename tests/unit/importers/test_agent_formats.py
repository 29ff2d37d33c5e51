"""What the formats of providers and agents say of how a turn ended, and what of them is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from importing import lines, pairs, read, read_one, states, write_document, write_lines

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.infrastructure.importers import detect, importer_named

SAID = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello."}],
}
CALLED = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}


def asked(response: object) -> dict[str, object]:
    return {"request": {"input": "Hi"}, "response": response}


@pytest.mark.parametrize(
    ("response", "state"),
    [
        ({"status": "completed", "output": [SAID]}, "completed"),
        ({"status": "incomplete", "output": [SAID]}, "completed"),
        (
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [SAID],
            },
            "partial",
        ),
        (
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "content_filter"},
                "output": [SAID],
            },
            "failed",
        ),
        ({"status": "completed", "output": [SAID, CALLED]}, "running"),
        ({"status": "failed", "error": {"code": "server_error"}, "output": []}, "running"),
        ("data: {}", "running"),
    ],
)
def test_responses_that_end_a_turn(tmp_path: Path, response: object, state: str) -> None:
    path = write_lines(tmp_path / "x.jsonl", [asked(response)])
    assert detect(path).name == "openai-responses"
    assert states(read_one("openai-responses", path)) == [state]


def test_responses_in_pieces(tmp_path: Path) -> None:
    """Items on lines of their own, phases, several bodies, and lines without a request."""
    user = {"role": "user", "content": "Hi"}
    remark = SAID | {"phase": "commentary", "content": "Wait."}
    answer = SAID | {"phase": "final_answer"}
    path = write_lines(tmp_path / "items.jsonl", [user, remark, CALLED, answer, {"type": "new"}])
    assert detect(path).name == "openai-responses"
    result = read("openai-responses", path)
    assert pairs(result.conversations[0]) == [("Hi", "Hello.")]
    assert result.report.left_out_by_reason == {"unsupported_block": 1}
    bodies = [asked({"output": [SAID]}), {"request": "", "response": {}}, {"input": [user, SAID]}]
    found = read("openai-responses", write_lines(tmp_path / "bodies.jsonl", bodies))
    assert [each.conversation for each in found.conversations] == ["bodies/1", "bodies/2"]
    assert [len(pairs(each)) for each in found.conversations] == [1, 1]
    assert [each.reason for each in found.report.left_out] == ["no_request"]


@pytest.mark.parametrize(
    ("stop", "state", "status"),
    [
        ("end_turn", "completed", "completed"),
        ("max_tokens", "partial", "completed"),
        ("guardrail_intervened", "failed", "failed"),
        ("tool_use", "running", "completed"),
    ],
)
def test_converse_stop_reasons(tmp_path: Path, stop: str, state: str, status: str) -> None:
    said = {"role": "assistant", "content": [{"text": "Hello."}]}
    request = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    exchange = {"request": request, "response": {"output": {"message": said}, "stopReason": stop}}
    path = write_lines(tmp_path / "x.jsonl", [exchange])
    assert detect(path).name == "bedrock-converse"
    imported = read_one("bedrock-converse", path)
    assert (states(imported), imported.messages[-1].status) == ([state], status)


def test_converse_alone_is_no_other_provider_s(tmp_path: Path) -> None:
    """A plain array of messages, whose blocks have no type: none of the other APIs writes that."""
    messages = [
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "assistant", "content": []},
    ]
    path = write_document(tmp_path / "x.json", messages)
    assert detect(path).name == "bedrock-converse"
    assert lines(read_one("bedrock-converse", path))[1] == ("assistant", "chat", "completed", "")


@pytest.mark.parametrize(
    ("members", "state"),
    [
        ({"finish_reason": "stop"}, "completed"),
        ({"finish_reason": "length"}, "partial"),
        ({"finish_reason": "content_filter"}, "failed"),
        ({"state": "interrupted"}, "cancelled"),
        ({}, "completed"),
    ],
)
def test_pydantic_ai_responses(tmp_path: Path, members: dict[str, str], state: str) -> None:
    history = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello."}], **members},
        {"kind": "request", "parts": [{"part_kind": "retry-prompt", "content": "Plain text."}]},
        {"kind": "response", "parts": []},
    ]
    path = write_document(tmp_path / "x.json", history[:2])
    assert states(read_one("pydantic-ai", path)) == [state]
    again = read_one("pydantic-ai", write_document(path, history))
    assert lines(again)[2][:2] == ("user", "trace")
    assert lines(again)[3][::3] == ("assistant", "")


def test_langchain_as_messages_to_dict_writes_it(tmp_path: Path) -> None:
    told = {"finish_reason": "length"}
    messages = [
        {"type": "system", "data": {"content": "Be brief."}},
        {"type": "human", "data": {"content": "Hi"}},
        {"type": "ai", "data": {"content": "Hel", "response_metadata": told}},
    ]
    path = write_document(tmp_path / "x.json", messages)
    assert detect(path).name == "langchain"
    imported = read_one("langchain", path)
    assert (pairs(imported), states(imported)) == ([("Hi", "Hel")], ["completed", "partial"])


def test_google_adk_as_json_writes_it(tmp_path: Path) -> None:
    """The other spelling, an error, and an agent that says nothing."""
    model: dict[str, Any] = {"author": "a", "content": {"role": "model", "parts": []}}
    call = {"functionCall": {"name": "look", "args": {}}}
    events = [
        {"author": "user", "content": {"role": "user", "parts": [{"text": "Hi"}]}},
        model | {"content": {"role": "model", "parts": [call]}},
        model | {"content": {"parts": [{"functionResponse": {"name": "look"}}]}},
        model | {"content": {"parts": [{"text": "Hel"}]}, "errorCode": "500"},
        model,
    ]
    path = write_document(tmp_path / "x.json", {"id": "s", "events": events, "past_events": [1]})
    assert detect(path).name == "google-adk"
    result = read("google-adk", path)
    (imported,) = result.conversations
    assert [line[:3] for line in lines(imported)] == [
        ("user", "chat", "completed"),
        ("assistant", "tool", "completed"),
        ("tool", "tool", "completed"),
        ("assistant", "chat", "failed"),
    ]
    assert states(imported) == ["failed"]
    assert result.report.left_out_by_reason == {"metadata": 1, "no_message": 1}


def test_codex_texts_of_an_aborted_turn_are_no_answers(tmp_path: Path) -> None:
    def line(kind: str, **payload: object) -> dict[str, object]:
        return {"timestamp": "2025-03-01T09:00:00Z", "type": kind, "payload": payload}

    rollout = [
        line("session_meta", id="s"),
        line("response_item", type="message", role="user", content="Hi"),
        line("response_item", type="message", role="assistant", content="Hel"),
        line("event_msg", type="turn_aborted", reason="interrupted"),
    ]
    imported = read_one("codex-rollout", write_lines(tmp_path / "x.jsonl", rollout))
    assert (pairs(imported), states(imported)) == ([], ["cancelled"])
    assert [line[1] for line in lines(imported)] == ["chat", "trace", "trace"]


@pytest.mark.parametrize(
    ("importer", "value", "place"),
    [
        ("openai-responses", [{"role": "narrator", "content": ""}], "x.json[0]"),
        ("openai-responses", [{"type": "function_call", "id": ""}], "x.json[0] id"),
        ("openai-responses", {"messages": []}, "x.json"),
        ("bedrock-converse", [{"role": "tool", "content": []}], "x.json[0]"),
        ("bedrock-converse", [{"role": "user", "content": [{"text": 1}]}], "x.json[0] content[0]"),
        ("pydantic-ai", [{"kind": "reply", "parts": []}], "x.json[0]"),
        ("langchain", [{"lc": 1, "id": ["RemoveMessage"], "kwargs": {}}], "x.json[0]"),
        ("google-adk", {"events": [{"author": 1}]}, "x.json events[0] author"),
        ("codex-rollout", {"timestamp": None, "type": "response_item", "payload": 1}, "x.json:1"),
        ("swe-agent", {"history": [{"role": "x"}]}, "x.json history[0]"),
    ],
)
def test_what_is_malformed_is_refused_with_its_place(
    tmp_path: Path, importer: str, value: Any, place: str
) -> None:
    write = write_lines if importer == "codex-rollout" else write_document
    path = write(tmp_path / "x.json", [value] if importer == "codex-rollout" else value)
    with pytest.raises((MalformedRecord, ValueError)) as caught:
        importer_named(importer).read(path)
    assert str(caught.value).startswith(place)
