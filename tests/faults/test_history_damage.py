"""T15 where what is kept was damaged or forgotten: what is wrong with one message keeps no other from being
found, and nothing changed is ever quoted.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from history_cases import CONVERSATION, RUN, SCOPE, history, ids, keep, user
from window_runs import window_on

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import DamagedOriginal, UnknownMessage
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import Original

PLACE = (SCOPE, CONVERSATION, RUN)
MESSAGES = [user(f"The fund INV-{number:04d} is from Luxembourg.") for number in range(6)]
ASKED = {"query": "Luxembourg"}

Change = Callable[[bytes], None]

BYTES = [
    b'{"content": "zz"}',
    b'{"role": null, "content": "zz"}',
    b'{"role": "user", "content": "Luxembourg, says who changed it."}',
    b"[1]",
    b'"Luxembourg"',
    b"no JSON",
    b"\xff\xfe",
    b'{"a": ' + b"[" * 5000,
    b'{"content": NaN, "role": "user"}',
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        keep(ledger._parts, MESSAGES)
    return path


@pytest.fixture
def change(path: Path) -> Iterator[Change]:
    """Changes the bytes of message 3, past this software."""
    with closing(sqlite3.connect(path)) as connection:

        def changed(wire: bytes) -> None:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                connection.execute(f'DROP TRIGGER "{name}"')
            rows = connection.execute(
                "UPDATE window_messages SET wire = ? WHERE (key & 4294967295) = 3", (wire,)
            ).rowcount
            connection.commit()
            assert rows == 1

        yield changed


@pytest.mark.parametrize("wire", BYTES)
@pytest.mark.parametrize("indexed", [True, False], ids=["indexed before", "indexed after"])
def test_a_damaged_message_keeps_no_other_from_being_found(
    path: Path, change: Change, wire: bytes, indexed: bool
) -> None:
    with Ledger.open(path) as ledger:
        if indexed:
            assert len(history(ledger._parts).search("Luxembourg").hits) == len(MESSAGES)
        change(wire)
        found = history(ledger._parts, run=RUN).search("Luxembourg")
        assert ids(found) == ["m5", "m4", "m2", "m1", "m0"]
        assert found.unreadable == indexed  # what was never searched has no place to be missing at
        with pytest.raises(DamagedOriginal, match="message m3"):
            history(ledger._parts, run=RUN).read_message("m3")
        window = window_on(ledger._parts, place=PLACE)
        answer = json.loads(window.call_tool("search_conversation_history", ASKED))
        assert [hit["message_id"] for hit in answer["hits"]] == ids(found)
        answer = json.loads(window.call_tool("read_message", {"message_id": "m3"}))
        assert list(answer) == ["error"]
        answer = json.loads(window.call_tool("read_message", {"message_id": "m4"}))
        assert answer["parts"][0]["text"] == MESSAGES[4]["content"]


def test_a_message_that_is_forgotten_while_it_is_read_is_unknown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(path) as ledger:
        originals: Any = ledger._parts.originals
        read = originals.read

        def forgotten(key: WindowKey, *pages: int) -> list[Original]:
            originals.forget(*PLACE[:2])
            return list(read(key, *pages))

        asked = history(ledger._parts, run=RUN)
        with monkeypatch.context() as patched:
            patched.setattr(type(originals), "read", lambda _, *given: forgotten(*given))
            with pytest.raises(UnknownMessage, match="m3"):
                asked.read_message("m3")
        assert read(WindowKey(*PLACE)) == []
