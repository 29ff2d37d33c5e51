"""`window search`, and `window mcp` as a real process, asked by the official client (T14, T15)."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from backends import START
from command_line import COMMAND, Done, call, environment
from history_cases import assistant, handle, originals, user
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from compaction_ledger import Ledger, NewMessage, NewRun
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.usecases.history_toolset import TOOLS

SECRET = "zq7kestrel"
CONTENT = "行\n".encode() * 5_000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger with two conversations; one has a secret."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        for scope, conversation, word in (
            ("acme", "funds", "ours"),
            ("acme", "board", SECRET),
            ("globex", "funds", SECRET),
        ):
            wires = [
                user(f"At most 4,000 EUR, says {word}."),
                assistant(f"预算上限是四千欧元 {word} \ud800"),
            ]
            kept = originals(wires, at=START)
            keep = ledger._parts.originals
            keep.append(WindowKey(scope, conversation, "run-1"), "openai-chat", 0, kept)
            lines = [
                NewMessage("u1", "r1", "user", f"What do {word} cost?"),
                NewMessage("a1", "r1", "assistant", f"{word}: 4,000 EUR"),
            ]
            ledger.transcripts.append(scope, conversation, lines, [NewRun("r1", "completed")])
        ledger._parts.originals.keep_result("acme", "funds", CONTENT)
        ledger._parts.originals.keep_result("acme", "board", SECRET.encode())
    return path


def window_search(place: Path, query: str, *words: str, conversation: str = "funds") -> Done:
    return call(
        *("window", "search", query, "--conversation", conversation, "--scope", "acme", *words),
        ledger=place,
    )


# --- search ---


def test_search_prints_exact_quotes(place: Path) -> None:
    found = window_search(place, "4,000 eur", "--json").fine().json
    assert [(hit["run"], hit["message"], hit["pair"]) for hit in found["hits"]] == [
        ("run-1", "m0", 0),
        (None, "a1", 0),
    ]
    assert found["hits"][0]["quote"] == "At most 4,000 EUR, says ours."
    assert found["next_offset"] is None
    shown = window_search(place, "预算").fine().out
    assert "m1 of run run-1 (assistant, pair 0" in shown
    assert "预算上限是四千欧元 ours \\ud800" in shown
    assert shown.endswith("1 hit.\n")


def test_search_with_filters_and_pages(place: Path) -> None:
    found = window_search(place, "ours", "--json", "--limit", "1").fine().json
    assert found["next_offset"] == 1
    assert "There are more: --offset 1." in window_search(place, "ours", "--limit", "1").out
    only = window_search(place, "ours", "--role", "user", "--role", "tool", "--json").fine().json
    assert [hit["message"] for hit in only["hits"]] == ["m0", "u1"]
    assert window_search(place, "ours", "--first-pair", "1", "--json").fine().json["hits"] == []
    assert window_search(place, SECRET, "--json").fine().json["hits"] == []


def test_search_says_what_is_wrong(place: Path) -> None:
    assert "no word" in window_search(place, "!!").failed("invalid_input")
    assert "roles" in window_search(place, "x", "--role", "robot").failed("invalid_input")
    missing = window_search(place, "x", conversation="none")
    assert "'none'" in missing.failed("unknown_conversation")
    window_search(place, "x", "--limit", "51").failed("invalid_input")


def test_a_damaged_original_is_counted_and_not_quoted(place: Path) -> None:
    assert window_search(place, "says", "--json").fine().json["unreadable"] == 0
    with sqlite3.connect(place) as connection:
        connection.execute("DROP TRIGGER window_messages_no_update")
        connection.execute(
            "UPDATE window_messages SET wire = replace(CAST(wire AS TEXT), '4,000', '9,000')"
        )
    connection.close()
    found = window_search(place, "says", "--json").fine().json
    assert (found["hits"], found["unreadable"]) == ([], 1)
    assert "1 place cannot be read any more." in window_search(place, "says").fine().out


# --- the server ---


def ask(place: Path, do: Callable[[Client], Awaitable[None]], *words: str) -> None:
    """Start the server as a process of its own, and let a client of the SDK talk with it."""
    command, *rest = COMMAND
    given = ["window", "mcp", "--ledger", str(place), "--scope", "acme", *words]
    parameters = StdioServerParameters(command=command, args=[*rest, *given], env=environment())

    async def talk() -> None:
        with anyio.fail_after(60):
            async with Client(stdio_client(parameters)) as client:
                await do(client)

    anyio.run(talk)


def value_of(result: types.CallToolResult) -> Any:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return json.loads(content.text)


@pytest.mark.slow
def test_the_official_client_searches_and_rereads(place: Path) -> None:
    async def talk(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert {tool.name: tool.input_schema for tool in listed} == {
            name: tool.schema() for name, tool in TOOLS.items()
        }
        found = value_of(await client.call_tool("search_conversation_history", {"query": "四千"}))
        (hit,) = found["hits"]
        assert hit["quote"] == "预算上限是四千欧元 ours \ud800"
        read = value_of(await client.call_tool("read_message", {"message_id": hit["message_id"]}))
        assert read["parts"][0]["text"][hit["start"] : hit["end"]] == hit["quote"]
        pages = ""
        start: int | None = 0
        while start is not None:
            arguments = {"handle": handle(CONTENT), "start": start, "length": 3_000}
            page = value_of(await client.call_tool("read_tool_result", arguments))
            pages, start = pages + page["text"], page["next_start"]
        assert pages.encode() == CONTENT

    ask(place, talk, "--conversation", "funds", "--run", "run-1")


@pytest.mark.slow
def test_the_client_learns_nothing_of_another_conversation(place: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_conversation_history", {"query": SECRET}),
        ("search_conversation_history", {"query": SECRET, "conversation": "board"}),
        ("search_conversation_history", {"query": SECRET, "scope": "globex"}),
        ("search_conversation_history", {"query": f'") OR {SECRET}'}),
        ("search_conversation_history", {"query": 7}),
        ("read_message", {"message_id": "m0", "run": "../board"}),
        ("read_tool_result", {"handle": handle(SECRET.encode())}),
        ("drop_everything", {}),
    ]

    async def talk(client: Client) -> None:
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            value = value_of(result)
            assert result.is_error == ("error" in value)
            assert result.is_error or value["hits"] == []
            assert SECRET not in json.dumps(value)
        again = await client.call_tool("search_conversation_history", {"query": "ours"})
        assert len(value_of(again)["hits"]) == 4

    ask(place, talk, "--conversation", "funds")


@pytest.mark.slow
def test_the_server_ends_when_its_client_leaves(place: Path) -> None:
    words = ["window", "mcp", "--conversation", "funds", "--ledger", str(place)]
    done = subprocess.run(
        [*COMMAND, *words],
        env=environment(),
        input=b"",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_without_the_extra_it_says_what_to_install(place: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from compaction_ledger.cli import main\n"
        f"main(['window', 'mcp', '--conversation', 'funds', '--ledger', {str(place)!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'compaction-ledger[mcp]'" in done.stderr
