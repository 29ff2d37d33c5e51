"""A ledger file of an older format: read as it is, and brought up to date in place when it is written."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from disks import read_only_mount
from originals_messages import KEY, SHAPE, messages

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import LedgerError, LedgerReadOnly, NewerFormat, NotALedger
from compaction_ledger.domain.window.originals import Originals
from compaction_ledger.infrastructure.originals.sqlite import SQLiteOriginals
from compaction_ledger.infrastructure.sqlite import formats
from compaction_ledger.infrastructure.sqlite.database import open_database

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "format-1" / "ledger.db"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger that software of format 1 wrote."""
    (tmp_path / "old").mkdir()
    return Path(shutil.copy(GOLDEN, tmp_path / "old"))


def told(path: Path) -> tuple[int, list[tuple[str, str, str]]]:
    """The format, and all that is defined in a file."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        made = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return version, sorted(made, key=str)


def check_is_empty(originals: Originals) -> None:
    assert originals.count(KEY) == 0
    assert originals.shape(KEY) is None
    assert list(originals.digests(KEY)) == []
    assert list(originals.read(KEY)) == []
    assert list(originals.runs(KEY.scope, KEY.conversation)) == []
    assert originals.result(KEY.scope, KEY.conversation, "ab" * 32) is None


def test_it_is_brought_up_to_date_and_goes_on(old: Path, tmp_path: Path) -> None:
    assert told(old)[0] == 1
    with Ledger.open(old) as ledger:
        check_is_empty(ledger._parts.originals)
        ledger._parts.originals.append(KEY, SHAPE, 0, messages(0, 2))
        assert ledger.verify().ok
        assert len(ledger.transcripts.conversation("tenant-1", "c-1").messages) == 145
    assert told(old)[0] == formats.FORMAT
    with Ledger.open(old, create=False) as ledger:
        assert ledger._parts.originals.count(KEY) == 2
    open_database(tmp_path / "new.db").close()
    _, made = told(tmp_path / "new.db")
    names = {name for _, name, _ in made}
    assert {"window_runs", "window_messages", "window_results"} < names
    assert [row for row in told(old)[1] if row[1] in names] == made


def test_it_can_be_read_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    with Ledger.open(old, read_only=True) as ledger:
        assert ledger.size() > 0
        assert ledger.verify().ok
        check_is_empty(ledger._parts.originals)
        for write in writes(ledger._parts.originals):
            with pytest.raises(LedgerReadOnly):
                write()
    assert old.read_bytes() == before
    assert told(old)[0] == 1


def writes(originals: Originals) -> list[Callable[[], object]]:
    return [
        lambda: originals.append(KEY, SHAPE, 0, messages(0, 1)),
        lambda: originals.keep_result(KEY.scope, KEY.conversation, b"x"),
        lambda: originals.forget(KEY.scope, KEY.conversation),
    ]


def test_who_reads_it_sees_what_comes_when_another_brings_it_up_to_date(old: Path) -> None:
    with Ledger.open(old, read_only=True) as reader:
        check_is_empty(reader._parts.originals)
        with Ledger.open(old) as writer:
            writer._parts.originals.append(KEY, SHAPE, 0, messages(0, 2))
            assert reader._parts.originals.count(KEY) == 2
            assert [m.position for m in reader._parts.originals.read(KEY)] == [0, 1]


def test_where_it_cannot_be_written_it_is_read_all_the_same(old: Path) -> None:
    with read_only_mount(old), Ledger.open(old) as ledger:
        assert ledger.verify().ok
        check_is_empty(ledger._parts.originals)
        for write in writes(ledger._parts.originals):
            with pytest.raises(LedgerReadOnly):
                write()
    assert told(old)[0] == 1


def test_many_bring_it_up_to_date_at_once(old: Path) -> None:
    def open_and_count(_: int) -> int:
        with Ledger.open(old) as ledger:
            return ledger._parts.originals.count(KEY)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(open_and_count, range(6))) == [0] * 6
    assert told(old)[0] == formats.FORMAT


def test_half_an_upgrade_is_none(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is one transaction: what fails in the middle leaves format 1."""
    before = told(old)
    whole = formats._upgrades

    def broken(present: int) -> list[str]:
        return [*whole(present), "CREATE TABLE window_runs (again INTEGER);"]

    monkeypatch.setattr(formats, "_upgrades", broken)
    with pytest.raises(LedgerError, match="already exists"):
        Ledger.open(old)
    assert told(old) == before
    monkeypatch.undo()
    with Ledger.open(old) as ledger:
        check_is_empty(ledger._parts.originals)


def test_older_software_refuses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path):
        pass
    written = formats.FORMAT
    monkeypatch.setattr(formats, "FORMAT", 1)
    for read_only in (False, True):
        with pytest.raises(NewerFormat, match=f"format {written}"):
            Ledger.open(path, read_only=read_only)


def test_a_file_of_ours_without_a_format_is_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {formats.APPLICATION_ID}")
    with pytest.raises(NotALedger):
        Ledger.open(path)


def test_there_is_one_script_for_each_format() -> None:
    assert len(list(formats._upgrades(1))) == formats.FORMAT - 1


@pytest.mark.parametrize("table", ["window_runs", "window_messages", "window_results"])
def test_the_database_refuses_to_change_what_was_written(tmp_path: Path, table: str) -> None:
    with closing(open_database(tmp_path / "ledger.db")) as database:
        originals = SQLiteOriginals(database)
        originals.append(KEY, SHAPE, 0, messages(0, 2))
        originals.keep_result(KEY.scope, KEY.conversation, b"x")
        column = {"window_runs": "shape", "window_messages": "wire", "window_results": "content"}
        with (
            pytest.raises(Exception, match="append-only"),
            database.transaction(commit=True) as cursor,
        ):
            cursor.execute(f"UPDATE {table} SET {column[table]} = 'x'")
        assert originals.shape(KEY) == SHAPE
