"""What is stored of a window is checked again when it is used (H2, H9, T14): nothing changed reaches a
request.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from window_runs import PLACE, RememberingSummarizer, growing, text_of, turn, window_on

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import DamagedOriginal, HistoryChanged
from compaction_ledger.domain.window.events import ChunkAttemptFailed, ChunkCompleted
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.usecases.window.preparing import Prepared

LISTS = list(growing(30))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a run that has chunks."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        window = window_on(ledger._parts, RememberingSummarizer())
        for messages in LISTS[:40]:
            window.prepare(messages)
            window.compact()
    return path


@pytest.fixture
def intruder(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody who goes past this software: without the triggers that keep rows as they are."""
    with closing(sqlite3.connect(path)) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        yield connection


def next_request(path: Path) -> Prepared:
    with Ledger.open(path) as ledger:
        return window_on(ledger._parts, RememberingSummarizer(), budget=90_000).prepare(LISTS[40])


def test_untouched_it_has_its_summaries(path: Path) -> None:
    prepared = next_request(path)
    assert len(prepared.manifest.chunks) >= 2
    assert prepared.rejected == ()


def test_a_changed_summary_reaches_no_request(path: Path, intruder: sqlite3.Connection) -> None:
    changed = intruder.execute(
        "UPDATE stored_events SET state = CAST(substr(state, 1, 70) || x'0001' AS BLOB) "
        "WHERE topic LIKE 'ChunkCompleted@%'"
    ).rowcount
    intruder.commit()
    assert changed >= 2
    prepared = next_request(path)
    assert prepared.messages == LISTS[40]  # the originals, and it is said why
    assert [item.reason for item in prepared.rejected] == ["damaged_log"]
    with Ledger.open(path) as ledger:
        assert not ledger.verify(seal_only=True).ok


def test_a_deleted_completion_is_noticed(path: Path, intruder: sqlite3.Connection) -> None:
    intruder.execute(
        "DELETE FROM stored_events WHERE idx = "
        "(SELECT min(idx) FROM stored_events WHERE topic LIKE 'ChunkCompleted@%')"
    )
    intruder.commit()
    assert next_request(path).messages == LISTS[40]


def test_a_changed_original_is_no_source(path: Path, intruder: sqlite3.Connection) -> None:
    """B3: who summarizes reads the originals again, against their digests, and the chunk's own."""
    position = len(LISTS[40]) - 8
    intruder.execute(
        "UPDATE window_messages "
        "SET wire = CAST(replace(CAST(wire AS TEXT), 'case', 'cake') AS BLOB) "
        "WHERE (key & 4294967295) <= ?",
        (position,),
    )
    intruder.commit()
    with Ledger.open(path) as ledger:
        window = window_on(ledger._parts, summarizer := RememberingSummarizer())
        due = next(messages for messages in LISTS[40:] if window.prepare(messages).due is not None)
        assert len(due) > position
        with pytest.raises(DamagedOriginal, match="not what was kept"):
            window.compact()
        assert "cake" not in text_of([line.text for r in summarizer.requests for line in r.lines])
        facts = [e.fact for e in ledger._parts.context.log.history(WindowKey(*PLACE))]
        assert not any(isinstance(fact, ChunkAttemptFailed) for fact in facts)  # at no cost (A6)
        assert any(isinstance(fact, ChunkCompleted) for fact in facts)


def test_a_changed_digest_is_a_changed_history(path: Path, intruder: sqlite3.Connection) -> None:
    intruder.execute(
        "UPDATE window_messages SET digest = ? WHERE (key & 4294967295) = 3", ("0" * 64,)
    )
    intruder.commit()
    with pytest.raises(HistoryChanged, match="message 3"):
        next_request(path)


def test_a_changed_tool_result_is_not_reread(tmp_path: Path) -> None:
    """T14."""
    path = tmp_path / "ledger.db"
    messages: list[dict[str, Any]] = turn(0)
    messages[2]["content"] = "a line of a log\n" * 500
    messages.append({"role": "user", "content": "And?"})
    budget = WindowBudget(9_000, externalize_over=1_000)
    with Ledger.open(path) as ledger:
        prepared = window_on(ledger._parts, budget=budget).prepare(messages)
    with closing(sqlite3.connect(path)) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute(
            "UPDATE window_results "
            "SET content = CAST(replace(CAST(content AS TEXT), 'log', 'fog') AS BLOB)"
        )
        connection.commit()
    (stub,) = prepared.manifest.stubs
    with Ledger.open(path) as ledger:
        window = window_on(ledger._parts, budget=budget)
        answer = json.loads(window.call_tool("read_tool_result", {"handle": f"tr_{stub.digest}"}))
    assert "error" in answer
    assert "fog" not in json.dumps(answer)
