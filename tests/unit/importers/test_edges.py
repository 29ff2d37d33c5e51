"""What the formats do at their edges: errors with places, and facts about how a turn ended."""

from pathlib import Path
from typing import Any

import pytest
from importing import lines, pairs, read, read_one, states, write_document, write_lines

from compaction_ledger.domain.errors import (
    DuplicateMessageId,
    InvalidId,
    InvalidSetting,
    MalformedRecord,
)
from compaction_ledger.infrastructure.importers import importer_named

HI = {"role": "user", "content": "Hi"}
HELLO = {"role": "assistant", "content": "Hello."}
PNG = {"type": "image_url", "image_url": {"url": "data:,"}}


def refused(importer: str, path: Path) -> str:
    with pytest.raises(MalformedRecord) as caught:
        importer_named(importer).read(path)
    assert caught.value.place
    return str(caught.value)


def exchange(message: dict[str, Any], finish: str) -> dict[str, Any]:
    response = {"choices": [{"index": 0, "finish_reason": finish, "message": message}]}
    return {"request": {"messages": [HI]}, "response": response}


@pytest.mark.parametrize("as_lines", [False, True])
def test_openai_message_array_and_message_lines(tmp_path: Path, as_lines: bool) -> None:
    write = write_lines if as_lines else write_document
    imported = read_one("openai-chat", write(tmp_path / "talk.json", [HI, HELLO]))
    assert imported.conversation == "talk"
    assert pairs(imported) == [("Hi", "Hello.")]


@pytest.mark.parametrize("as_lines", [False, True])
def test_openai_several_bodies(tmp_path: Path, as_lines: bool) -> None:
    write = write_lines if as_lines else write_document
    bodies = [{"messages": [HI, HELLO]}, {"id": "own", "messages": [HI, HELLO]}]
    result = read("openai-chat", write(tmp_path / "talk.json", bodies))
    assert [each.conversation for each in result.conversations] == ["talk/1", "own"]


@pytest.mark.parametrize(
    ("finish", "state", "status", "count"),
    [
        ("stop", "completed", "completed", 1),
        ("length", "partial", "completed", 1),
        ("content_filter", "failed", "failed", 0),
    ],
)
def test_openai_finish_reasons(
    tmp_path: Path, finish: str, state: str, status: str, count: int
) -> None:
    path = write_lines(tmp_path / "x.jsonl", [exchange(HELLO, finish)])
    imported = read_one("openai-chat", path)
    assert (states(imported), imported.messages[1].status) == ([state], status)
    assert len(pairs(imported)) == count


def test_openai_responses_that_are_no_answer_are_named(tmp_path: Path) -> None:
    two = exchange(HELLO, "stop")
    two["response"]["choices"].append(two["response"]["choices"][0])
    failed = {"request": {"messages": [HI]}, "response": {"error": {"message": "no"}}}
    stream = {"request": {"messages": [HI]}, "response": "data: {}"}
    result = read("openai-chat", write_lines(tmp_path / "x.jsonl", [two, failed, stream]))
    assert [(each.place, each.reason) for each in result.report.left_out] == [
        ("x.jsonl:1 response choices[1]", "other_choice"),
        ("x.jsonl:2 response", "provider_error"),
        ("x.jsonl:3 response", "unsupported_body"),
    ]
    assert [len(pairs(each)) for each in result.conversations] == [1, 0, 0]


def test_openai_parts_of_an_answer(tmp_path: Path) -> None:
    answer = {
        "role": "assistant",
        "id": "m",
        "reasoning_content": "Think.",
        "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}, PNG],
        "audio": {"id": "x"},
    }
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f"}}
    result = read("openai-chat", write_document(tmp_path / "x.json", [HI, answer, legacy]))
    (imported,) = result.conversations
    assert [(m.id, m.kind, m.text) for m in imported.messages[1:]] == [
        ("m/1", "trace", "Think."),
        ("m", "trace", "ab"),
        ("run-1/4", "tool", '{"name":"f"}'),
    ]
    assert [each.reason for each in result.report.left_out] == ["media", "media"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([HI, {"role": "robot", "content": "x"}], "x.json[1]: unknown role 'robot'"),
        ([HI, {"role": "user", "content": [{"text": "x"}]}], "x.json[1] content[0]: has no member"),
        ([HI, {"role": "user", "content": 5}], "x.json[1] content[0]: must be an object"),
        (
            [{"role": "user", "content": [{"type": "tool_result"}]}],
            "x.json[0] content[0]: a tool_result block belongs to Anthropic Messages",
        ),
        ({"model": "m"}, "x.json: holds no messages"),
        ([], "x.json: holds no conversation"),
        (5, "x.json: must be an object"),
        ([HI, {"model": "m"}], "x.json[0]: holds no messages"),
    ],
)
def test_openai_refusals(tmp_path: Path, value: Any, says: str) -> None:
    assert says in refused("openai-chat", write_document(tmp_path / "x.json", value))


def test_openai_lines_must_not_mix(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [HI, {"messages": [HI]}])
    assert refused("openai-chat", path).startswith("x.jsonl:2: is no message")


def test_a_given_id_needs_one_conversation(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"messages": [HI]}, {"messages": [HI]}])
    with pytest.raises(InvalidSetting, match="holds 2 conversations"):
        importer_named("openai-chat").read(path, conversation="mine")
    with pytest.raises(InvalidId):
        importer_named("openai-chat").read(write_document(path, [HI]), conversation="a\n")


def test_two_conversations_of_one_id_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"id": 1, "messages": [HI]}] * 2)
    assert "the conversation '1' stands 2 times" in refused("openai-chat", path)


def anthropic(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content), **more}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        ("end_turn", "completed"),
        ("stop_sequence", "completed"),
        ("max_tokens", "partial"),
        ("refusal", "failed"),
        ("pause_turn", "running"),
        (None, "completed"),
    ],
)
def test_anthropic_stop_reasons(tmp_path: Path, stop: str | None, state: str) -> None:
    answer = anthropic(words("a"), stop_reason=stop, type="message")
    line = {"request": {"messages": [HI]}, "response": answer}
    assert states(read_one("anthropic-messages", write_lines(tmp_path / "x.jsonl", [line]))) == [
        state
    ]


def test_anthropic_server_tools_in_one_turn_leave_the_last_text_as_answer(tmp_path: Path) -> None:
    answer = anthropic(
        words("I search."),
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        words("It is "),
        words("0.30 %."),
        stop_reason="end_turn",
        id="m",
    )
    imported = read_one("anthropic-messages", write_document(tmp_path / "x.json", [HI, answer]))
    assert pairs(imported) == [("Hi", "It is 0.30 %.")]
    assert [m.id for m in imported.messages] == ["run-1/1", "m", "m/2", "m/3", "m/4"]


def test_anthropic_text_beside_tool_results_is_a_user_message(tmp_path: Path) -> None:
    call = anthropic({"type": "tool_use", "id": "t", "name": "f", "input": {}})
    back = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t"}, words("Go"), words(" on")],
    }
    path = write_document(tmp_path / "x.json", [HI, call, back, anthropic(words("Done."))])
    imported = read_one("anthropic-messages", path)
    assert pairs(imported) == [("Go on", "Done.")]
    assert states(imported) == ["cancelled", "completed"]


def test_anthropic_unknown_blocks_and_empty_content_are_kept_in_sight(tmp_path: Path) -> None:
    odd = anthropic({"type": "hologram"}, {"type": "redacted_thinking", "data": "x"})
    result = read("anthropic-messages", write_document(tmp_path / "x.json", [HI, odd, anthropic()]))
    (imported,) = result.conversations
    assert lines(imported)[1:] == [
        ("assistant", "trace", "completed", '{"type":"redacted_thinking","data":"x"}'),
        ("assistant", "chat", "completed", ""),
    ]
    assert result.report.left_out_by_reason == {"unsupported_block": 1}


def test_anthropic_responses_that_are_no_answer_are_named(tmp_path: Path) -> None:
    failed = {"request": {"messages": [HI]}, "response": {"type": "error"}}
    stream = {"request": {"messages": [HI]}, "response": "event: x"}
    result = read("anthropic-messages", write_lines(tmp_path / "x.jsonl", [failed, stream]))
    assert result.report.left_out_by_reason == {"provider_error": 1, "unsupported_body": 1}


def test_cline_members_are_used(tmp_path: Path) -> None:
    message = {**HI, "id": "m1", "ts": 1_700_000_000_123}
    body = {"sessionId": "s1", "system_prompt": [words("Be brief.")], "messages": [message]}
    imported = read_one("anthropic-messages", write_document(tmp_path / "x.json", body))
    assert imported.conversation == "s1"
    assert lines(imported)[0] == ("system", "chat", "completed", "Be brief.")
    assert (imported.messages[1].id, imported.messages[1].created_at) == (
        "m1",
        1_700_000_000_123_000,
    )


def test_anthropic_unknown_role(tmp_path: Path) -> None:
    path = write_document(tmp_path / "x.json", [{"role": "system", "content": "x"}])
    assert "x.json[0]: unknown role 'system'" in refused("anthropic-messages", path)


def node(key: str, parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
    message = {
        "id": key,
        "author": {"role": role},
        "content": {"content_type": "text", "parts": [text]},
        **more,
    }
    return {"id": key, "parent": parent, "children": [], "message": message}


def tree(*nodes: dict[str, Any], current: str | None) -> dict[str, Any]:
    mapping = {each["id"]: each for each in nodes}
    return {"title": "t", "current_node": current, "mapping": mapping}


U1 = node("u1", None, "user", "Hi")


@pytest.mark.parametrize(
    ("more", "state", "status"),
    [
        ({"status": "finished_successfully", "end_turn": True}, "completed", "completed"),
        ({"status": "finished_successfully"}, "completed", "completed"),
        ({}, "completed", "completed"),
        ({"status": "in_progress"}, "running", "streaming"),
        ({"status": "finished_partial_completion"}, "partial", "completed"),
        ({"status": "failed_with_error"}, "failed", "failed"),
        ({"metadata": {"finish_details": {"type": "max_tokens"}}}, "partial", "completed"),
        ({"metadata": {"finish_details": {"type": "interrupted"}}}, "cancelled", "failed"),
    ],
)
def test_chatgpt_endings(tmp_path: Path, more: dict[str, Any], state: str, status: str) -> None:
    a1 = node("a1", "u1", "assistant", "Hello.", **more)
    path = write_document(tmp_path / "x.json", tree(U1, a1, current="a1"))
    imported = read_one("chatgpt-export", path)
    assert (states(imported), imported.messages[1].status) == ([state], status)
    assert imported.conversation == "x"


def test_chatgpt_without_a_current_node(tmp_path: Path) -> None:
    a1, a2 = node("a1", "u1", "assistant", "a"), node("a2", "u1", "assistant", "b")
    path = tmp_path / "x.json"
    assert len(pairs(read_one("chatgpt-export", write_document(path, tree(U1, a1, current=None)))))
    says = refused("chatgpt-export", write_document(path, tree(U1, a1, a2, current=None)))
    assert says == "x.json: names no current node and has 2 branches"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (tree(node("a", "b", "user", ""), node("b", "a", "user", ""), current="a"), "in a circle"),
        (tree(U1, current="gone"), "has no node 'gone'"),
        (tree(node("u", None, "robot", "x"), current="u"), "unknown role 'robot'"),
        ([{"title": "t"}], "x.json[0]: has no member 'mapping'"),
        (tree(node("u", None, "user", "x", create_time="now"), current="u"), "must be a number"),
        (tree(node("u", None, "user", "x", create_time=1e300), current="u"), "years 1 to 9999"),
        (tree(node("u", None, "user", "x", content={}), current="u"), None),
    ],
)
def test_chatgpt_refusals(tmp_path: Path, value: Any, says: str | None) -> None:
    path = write_document(tmp_path / "x.json", value)
    if says is None:
        assert lines(read_one("chatgpt-export", path)) == [("user", "trace", "completed", "{}")]
    else:
        assert says in refused("chatgpt-export", path)


def test_chatgpt_voice_and_hidden_messages(tmp_path: Path) -> None:
    spoken = {
        "content_type": "multimodal_text",
        "parts": [{"content_type": "audio_transcription", "text": "Hi"}, {"content_type": "audio"}],
    }
    hidden = {"is_visually_hidden_from_conversation": True}
    nodes = [
        node("u1", None, "user", "", content=spoken),
        node("u2", "u1", "user", "About me", metadata=hidden),
        node("a1", "u2", "assistant", "Hello."),
    ]
    result = read("chatgpt-export", write_document(tmp_path / "x.json", tree(*nodes, current="a1")))
    assert pairs(result.conversations[0]) == [("Hi", "Hello.")]
    assert lines(result.conversations[0])[1] == ("user", "trace", "completed", "About me")
    assert result.report.left_out_by_reason == {"media": 1}


def test_claude_ai_refusals(tmp_path: Path) -> None:
    def export(**message: Any) -> Path:
        value = [{"uuid": "c", "chat_messages": [{"uuid": "m", "sender": "human", **message}]}]
        return write_document(tmp_path / "x.json", value)

    assert "x.json[0] chat_messages[0]: unknown sender 'me'" in refused(
        "claude-ai-export", export(sender="me")
    )
    assert "created_at: the time" in refused("claude-ai-export", export(created_at="2025-01-01"))
    path = write_document(
        tmp_path / "x.json",
        [{"uuid": "c", "chat_messages": [{"uuid": "m", "sender": "human", "text": "x"}] * 2}],
    )
    with pytest.raises(DuplicateMessageId) as caught:
        importer_named("claude-ai-export").read(path)
    assert caught.value.first == "x.json[0] chat_messages[0]"


def code(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **more}


def test_claude_code_goes_on_over_a_compaction(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "x.jsonl",
        [
            code("user", "1", None, "Hi"),
            code("assistant", "2", "1", [words("Hello.")]),
            {"type": "system", "uuid": "3", "parentUuid": None, "logicalParentUuid": "2"},
            code("user", "4", "3", "The conversation so far …", isCompactSummary=True),
            code("user", "5", "4", "Go on."),
            code("assistant", "6", "5", [words("Done.")]),
            code("assistant", "7", "6", "No response requested.", message={"model": "<synthetic>"}),
        ],
    )
    imported = read_one("claude-code", path)
    assert imported.conversation == "x"
    assert pairs(imported) == [("Hi", "Hello."), ("Go on.", "Done.")]
    assert [m.id for m in imported.messages if m.kind == "trace"] == ["4", "7"]


def test_claude_code_refusals(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    circle = [code("user", "1", "2", "a"), code("user", "2", "1", "b")]
    assert "in a circle" in refused("claude-code", write_lines(path, circle))
    twice = [code("user", "1", None, "a"), code("user", "1", None, "a")]
    with pytest.raises(DuplicateMessageId) as caught:
        importer_named("claude-code").read(write_lines(path, twice))
    assert (caught.value.first, caught.value.second) == ("x.jsonl:1", "x.jsonl:2")
    robot = code("user", "1", None, "a", message={"role": "robot"})
    assert "x.jsonl:1: unknown role 'robot'" in refused("claude-code", write_lines(path, [robot]))


def test_pi_entries_with_ids_form_a_tree(tmp_path: Path) -> None:
    def entry(key: str, parent: str | None, message: dict[str, Any]) -> dict[str, Any]:
        return {"type": "message", "id": key, "parentId": parent, "message": message}

    stop = {"role": "assistant", "stopReason": "stop"}
    path = write_lines(
        tmp_path / "x.jsonl",
        [
            {"type": "session", "id": "s", "cwd": "/"},
            entry("1", None, HI),
            entry("2", "1", {**stop, "content": [words("Hello.")]}),
            entry("3", "1", {**stop, "content": [words("Hi there.")]}),
            entry("4", "3", {"role": "bashExecution", "command": "ls"}),
        ],
    )
    result = read("pi-session", path)
    assert pairs(result.conversations[0]) == [("Hi", "Hi there.")]
    assert result.report.left_out_by_reason == {"metadata": 1, "other_branch": 1}


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"role": "robot"}, "unknown role 'robot'"),
        ({"role": "assistant", "content": [], "stopReason": "x"}, "unknown stopReason 'x'"),
        ({"role": "assistant", "content": []}, "has no member 'stopReason'"),
    ],
)
def test_pi_refusals(tmp_path: Path, message: dict[str, Any], says: str) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"type": "message", "message": message}])
    assert says in refused("pi-session", path)


@pytest.mark.parametrize(
    ("importer", "value", "says"),
    [
        ("goodai", {"type": "0"}, "x.jsonl:1: an event's type must be a number"),
        ("goodai", {"type": 0, "data": {}}, "x.jsonl:1 data: has no member 'message'"),
        ("pairs", {"prompt": "x"}, "x.jsonl:1: must have one of prompt"),
        ("pairs", {"prompt": "x", "answer": 1}, "x.jsonl:1 answer: must be a string"),
        ("memorybank", {"A": {"history": {"today": []}}}, "'today' is no ISO 8601 date"),
        ("memorybank", {"A": {"history": {"2025-01-01": [{}]}}}, "has no member 'query'"),
        ("taubench", {"traj": []}, "must be an array, not an object"),
        ("claude-ai-export", {}, "must be an array, not an object"),
        ("chatgpt-export", {"mapping": {"a": 1}}, "must be an object, not a number"),
    ],
)
def test_refusals_of_the_small_formats(
    tmp_path: Path, importer: str, value: Any, says: str
) -> None:
    assert says in refused(importer, write_lines(tmp_path / "x.jsonl", [value]))
