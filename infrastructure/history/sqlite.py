"""The index in the ledger's own SQLite file, on FTS5, in tables that are made when they are first used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from compaction_ledger.domain.errors import StoreError
from compaction_ledger.domain.history import Document, HistoryQuery, Place
from compaction_ledger.domain.matching import inner, lone
from compaction_ledger.domain.terms import search_terms
from compaction_ledger.infrastructure.history.tiers import Ranked, by_tiers, conditions, place_of
from compaction_ledger.infrastructure.sqlite.database import Database
from compaction_ledger.infrastructure.sqlite.formats import statements

SLOTS = 1 << 10  # keys of one microsecond, as in tables.sql
LINES = 1 << 62
POSITIONS = 1 << 32
_LATEST = (1 << 52) - 1

_IS_MADE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'history_terms'"
_HAS_FTS5 = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'"
_KEY = "SELECT key FROM history_conversations WHERE scope = ? AND conversation = ?"
_MARKS = "SELECT shelf, mark FROM history_shelves WHERE conversation = ?"
_SHELF = "SELECT key, mark FROM history_shelves WHERE conversation = ? AND shelf = ?"
_OF_SHELF = "(SELECT key FROM history_places WHERE shelf = ?)"
_OF_CONVERSATION = (
    "(SELECT p.key FROM history_shelves AS s JOIN history_places AS p ON p.shelf = s.key "
    "WHERE s.conversation = ?)"
)
_TAKEN = "SELECT max(key) FROM history_places WHERE key >= ? AND key < ?"
_MATCHING = (
    "SELECT p.key, p.run, p.message, p.position, p.part, p.role, p.pair, p.at "
    "FROM history_terms CROSS JOIN history_places AS p ON p.key = history_terms.rowid "
    "CROSS JOIN history_shelves AS s ON s.key = p.shelf "
    "WHERE history_terms MATCH ? AND s.conversation = ?{conditions} "
    "ORDER BY history_terms.rowid DESC LIMIT ?"
)


class SQLiteHistoryIndex:
    """The index of a file."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_made = False

    def marks(self, scope: str, conversation: str) -> Mapping[str, str]:
        """The mark of every shelf."""
        if not self._has_tables():
            return {}
        with self._database.transaction(commit=False) as cursor:
            key = _key(cursor, scope, conversation)
            return dict(cursor.execute(_MARKS, (key,)).fetchall())

    def put(
        self,
        scope: str,
        conversation: str,
        shelf: str,
        documents: Sequence[Document],
        *,
        before: str | None,
        after: str | None,
        replace: bool = False,
    ) -> bool:
        """Add to a shelf, or replace it, where its mark is still ``before``."""
        terms = [search_terms(document.text) for document in documents]  # not while others wait
        with self._database.transaction(commit=True, durable=False) as cursor:
            self._make(cursor)
            key = _made_key(cursor, scope, conversation)
            row = cursor.execute(_SHELF, (key, shelf)).fetchone() or (None, None)
            if row[1] != before:
                return False
            if row[0] is not None and (replace or after is None):
                _delete(cursor, _OF_SHELF, row[0])
            number = _set_mark(cursor, key, shelf, row[0], after)
            if number is not None:
                keyed = dict(_keyed(cursor, key, [document.place for document in documents]))
                cursor.executemany(
                    "INSERT INTO history_places VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        (at, number, documents[index].place.run, *documents[index].place[2:])
                        for at, index in keyed.items()
                    ),
                )
                cursor.executemany(
                    "INSERT INTO history_terms (rowid, terms, characters) VALUES (?, ?, ?)",
                    (
                        (
                            at,
                            _named(key, terms[index].sequence),
                            _named(key, terms[index].characters),
                        )
                        for at, index in keyed.items()
                    ),
                )
        self._is_made = True
        return True

    def candidates(
        self, scope: str, conversation: str, query: HistoryQuery, start: int, count: int
    ) -> Sequence[Place]:
        """The places that may have what is wanted, in their order."""
        if not self._has_tables():
            return []
        wanted = query.wanted
        clauses, values = conditions(query, "p", "?")
        statement = _MATCHING.replace("{conditions}", clauses)
        with self._database.transaction(commit=False) as cursor:
            key = _key(cursor, scope, conversation)
            if key is None:
                return []
            needed = [part for need in wanted.needs for part in _match(key, need.terms)]

            def ask(parts: Iterable[str], limit: int) -> list[Ranked]:
                match = " AND ".join(dict.fromkeys(parts))
                rows = cursor.execute(statement, (match, key, *values, limit)).fetchall()
                return [Ranked(row[0], place_of(row[1:])) for row in rows]

            phrase = _match(key, inner(wanted.sequence))
            return by_tiers(
                (lambda limit: ask([*needed, *phrase], limit)) if phrase else None,
                lambda limit: ask(needed, limit),
                start,
                count,
            )

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation, and merge what is left, so that no trace is."""
        if not self._has_tables():
            return
        with self._database.transaction(commit=True) as cursor:
            key = _key(cursor, scope, conversation)
            if key is None:
                return
            _delete(cursor, _OF_CONVERSATION, key)
            cursor.execute("DELETE FROM history_shelves WHERE conversation = ?", (key,))
            cursor.execute("DELETE FROM history_conversations WHERE key = ?", (key,))
            cursor.execute("INSERT INTO history_terms (history_terms) VALUES ('optimize')")

    # --- inside ---

    def _make(self, cursor: sqlite3.Cursor) -> None:
        if self._is_made or cursor.execute(_IS_MADE).fetchone():
            return
        if not cursor.execute(_HAS_FTS5).fetchone():
            raise StoreError("this Python's SQLite was made without FTS5: it cannot search")
        for statement in statements(_tables()):
            cursor.execute(statement)

    def _has_tables(self) -> bool:
        if not self._is_made:
            with self._database.transaction(commit=False) as cursor:
                self._is_made = cursor.execute(_IS_MADE).fetchone() is not None
        return self._is_made


@cache
def _tables() -> str:
    folder = files("compaction_ledger.infrastructure.sqlite").joinpath("history")
    return folder.joinpath("tables.sql").read_text(encoding="utf-8")


def _key(cursor: sqlite3.Cursor, scope: str, conversation: str) -> int | None:
    row = cursor.execute(_KEY, (scope, conversation)).fetchone()
    return int(row[0]) if row else None


def _made_key(cursor: sqlite3.Cursor, scope: str, conversation: str) -> int:
    key = _key(cursor, scope, conversation)
    if key is None:
        cursor.execute(
            "INSERT INTO history_conversations (scope, conversation) VALUES (?, ?)",
            (scope, conversation),
        )
        key = int(cursor.lastrowid or 0)
    return key


def _set_mark(
    cursor: sqlite3.Cursor, key: int, shelf: str, number: int | None, mark: str | None
) -> int | None:
    """Set the mark of a shelf, or delete the shelf; its key, where there is one now."""
    if mark is None:
        cursor.execute("DELETE FROM history_shelves WHERE key = ?", (number,))
        return None
    if number is not None:
        cursor.execute("UPDATE history_shelves SET mark = ? WHERE key = ?", (mark, number))
        return number
    cursor.execute(
        "INSERT INTO history_shelves (conversation, shelf, mark) VALUES (?, ?, ?)",
        (key, shelf, mark),
    )
    return int(cursor.lastrowid or 0)


def _delete(cursor: sqlite3.Cursor, which: str, key: int) -> None:
    cursor.execute(f"DELETE FROM history_terms WHERE rowid IN {which}", (key,))  # noqa: S608 - our own
    cursor.execute(f"DELETE FROM history_places WHERE key IN {which}", (key,))  # noqa: S608 - our own


def _keyed(
    cursor: sqlite3.Cursor, conversation: int, places: Sequence[Place]
) -> Iterator[tuple[int, int]]:
    """A key for each place, with its index, in ascending order of the keys: FTS5 likes that best."""
    order = sorted(range(len(places)), key=lambda at: (places[at].rank, places[at][3:5]))
    next_free = 0
    for index in order:
        place = places[index]
        if place.at is None:
            yield conversation * POSITIONS + place.position - LINES, index
            continue
        wanted = min(max(place.at, 0), _LATEST) * SLOTS
        if next_free <= wanted or not next_free % SLOTS:
            next_free = _free(cursor, max(wanted, next_free))
        yield next_free, index
        next_free += 1


def _free(cursor: sqlite3.Cursor, key: int) -> int:
    """The first key behind all that are taken of the microsecond of ``key``, or of the next that has room."""
    while True:
        end = key - key % SLOTS + SLOTS
        (taken,) = cursor.execute(_TAKEN, (key, end)).fetchone()
        if taken is None:
            return key
        if taken + 1 < end:
            return int(taken) + 1
        key = end


def _named(key: int, terms: Iterable[str]) -> str:
    """Terms with their conversation in front."""
    return " ".join(f"{key}x{term}" for term in terms)


def _match(key: int, terms: tuple[str, ...]) -> list[str]:
    """Conditions of FTS5 for what must stand side by side. Terms have letters, digits and marks alone."""
    side_by_side = inner(terms)
    found = [f'terms : "{_named(key, side_by_side)}"'] if side_by_side else []
    return found + [f'characters : "{_named(key, [one])}"' for one in lone(terms)]
