"""The index in a ledger's PostgreSQL database: arrays of hashed terms under a GIN index.

Pairs of neighboring words are terms of their own. So words side by side are found by the index alone, however
common each of them is. Most pairs are rare, and an entry of its own for each would be most of the index: so
they share a fixed number of entries. Then a place may be taken for one that has the words side by side,
about once in ten thousand; what is quoted is decided by the original, as ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

from compaction_ledger.domain.history import Document, HistoryQuery, Place
from compaction_ledger.domain.matching import inner, lone
from compaction_ledger.domain.terms import Terms, search_terms
from compaction_ledger.infrastructure.history.tiers import Ranked, by_tiers, conditions, place_of
from compaction_ledger.infrastructure.postgres.database import Cursor, Database

PAIRS = 1 << 20
"""Entries that the pairs of one conversation share."""

NEWEST = 500
"""So many of the newest places are looked at before the index is asked: enough for common words."""

PASSED_OVER = 20 * NEWEST
"""So many are gone through for them where roles, exchanges or times are asked for."""

_COLUMNS = "p.key, p.run, p.message, p.position, p.part, p.role, p.pair, p.at"
_CONVERSATION = "SELECT key FROM {schema}.history_conversations WHERE name = %b"
_MAKE = "INSERT INTO {schema}.history_conversations (name) VALUES (%b) ON CONFLICT DO NOTHING"
_MARKS = (
    "SELECT s.shelf, s.mark FROM {schema}.history_conversations AS c "
    "JOIN {schema}.history_shelves AS s ON s.conversation = c.key WHERE c.name = %b"
)
_SHELF = "SELECT key, mark FROM {schema}.history_shelves WHERE conversation = %b AND shelf = %t"
_ADD_SHELF = (
    "INSERT INTO {schema}.history_shelves (conversation, shelf, mark) VALUES (%b, %t, %t) "
    "RETURNING key"
)
_ADD_PLACE = (
    "INSERT INTO {schema}.history_places "
    "(shelf, conversation, rank, run, message, position, part, role, pair, at, terms) "
    "VALUES (%b, %b, %b, %t, %t, %b, %b, %t, %b, %b, %t::bigint[])"
)
_FORGET = (
    "DELETE FROM {schema}.history_places WHERE conversation = %b",
    "DELETE FROM {schema}.history_shelves WHERE conversation = %b",
    "DELETE FROM {schema}.history_conversations WHERE key = %b",
)
_AMONG_NEWEST = f"""
    SELECT {_COLUMNS} FROM (
        SELECT * FROM (
            SELECT * FROM {{schema}}.history_places AS n WHERE n.conversation = %b
            ORDER BY n.rank DESC, n.key DESC LIMIT {PASSED_OVER}
        ) AS p WHERE true{{conditions}} ORDER BY p.rank DESC, p.key DESC LIMIT {NEWEST}
    ) AS p WHERE p.terms @> %t::bigint[] ORDER BY p.rank DESC, p.key DESC LIMIT %b"""  # noqa: S608 - names of our own
# The sums keep the planner from walking through the conversation: the terms are what it is to go by.
_AMONG_ALL = f"""
    SELECT {_COLUMNS} FROM {{schema}}.history_places AS p
    WHERE p.terms @> %t::bigint[] AND p.conversation + 0 = %b{{conditions}}
    ORDER BY p.rank + 0 DESC, p.key DESC LIMIT %b"""  # noqa: S608 - names of our own


class PostgresHistoryIndex:
    """The index of a database, for any number of processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def marks(self, scope: str, conversation: str) -> Mapping[str, str]:
        """The mark of every shelf."""
        rows = self._database.call(self._database.sql(_MARKS), (_name_of(scope, conversation),))
        return dict(rows)

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
        ordered = sorted(documents, key=lambda one: (one.place.position, one.place.part))
        terms = [search_terms(document.text) for document in ordered]  # not while others wait
        sql, name = self._database.sql, _name_of(scope, conversation)

        def work(cursor: Cursor) -> bool:
            cursor.execute(sql(_MAKE), (name,))
            key: int = _rows(cursor, sql(_CONVERSATION + " FOR UPDATE"), (name,))[0][0]
            found = _rows(cursor, sql(_SHELF), (key, shelf))
            number, mark = found[0] if found else (None, None)
            if mark != before:
                return False
            if number is not None and (replace or after is None):
                cursor.execute(
                    sql("DELETE FROM {schema}.history_places WHERE shelf = %b"), (number,)
                )
            if after is None:
                cursor.execute(
                    sql("DELETE FROM {schema}.history_shelves WHERE key = %b"), (number,)
                )
                return True
            if number is None:
                number = _rows(cursor, sql(_ADD_SHELF), (key, shelf, after))[0][0]
            else:
                cursor.execute(
                    sql("UPDATE {schema}.history_shelves SET mark = %t WHERE key = %b"),
                    (after, number),
                )
            hashes = _Hashes(key)
            cursor.executemany(
                sql(_ADD_PLACE),
                [
                    (number, key, place.rank, *place[1:], _array(hashes.of_text(kept)))
                    for (place, _), kept in zip(ordered, terms, strict=True)
                ],
            )
            return True

        return self._database.run(work, commit=True, durable=False)

    def candidates(
        self, scope: str, conversation: str, query: HistoryQuery, start: int, count: int
    ) -> Sequence[Place]:
        """The places that may have what is wanted, in their order."""
        wanted = query.wanted
        clauses, values = conditions(query, "p", "%t")
        newest, everything = (
            self._database.sql(statement.replace("{conditions}", clauses))
            for statement in (_AMONG_NEWEST, _AMONG_ALL)
        )

        def work(cursor: Cursor) -> list[Place]:
            found = _rows(
                cursor, self._database.sql(_CONVERSATION), (_name_of(scope, conversation),)
            )
            if not found:
                return []
            ((key,),) = found
            hashes = _Hashes(key)

            def ask(terms: Iterable[tuple[str, ...]], limit: int) -> list[Ranked]:
                array = _array(one for some in terms for one in hashes.of_need(some))
                rows = _rows(cursor, newest, (key, *values, array, limit))
                if len(rows) < limit:
                    rows = _rows(cursor, everything, (array, key, *values, limit))
                return [Ranked(row[0], place_of(row[1:])) for row in rows]

            needed = [need.terms for need in wanted.needs]
            phrase = inner(wanted.sequence)
            return by_tiers(
                (lambda limit: ask([*needed, phrase], limit)) if phrase else None,
                lambda limit: ask(needed, limit),
                start,
                count,
            )

        return self._database.run(work, commit=False)

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation."""
        name = _name_of(scope, conversation)

        def work(cursor: Cursor) -> None:
            sql = self._database.sql
            for (key,) in _rows(cursor, sql(_CONVERSATION + " FOR UPDATE"), (name,)):
                for statement in _FORGET:
                    cursor.execute(sql(statement), (key,))

        self._database.run(work, commit=True, repeatable=True)


class _Hashes:
    """The hashes of terms in one conversation: those of another are other numbers."""

    def __init__(self, conversation: int) -> None:
        self._start = hashlib.blake2b(str(conversation).encode(), digest_size=8)
        self._known: dict[str, int] = {}

    def of_text(self, terms: Terms) -> set[int]:
        """Of all that a text is found by."""
        return {
            *map(self._of, terms.sequence),
            *map(self._of_pair, pairwise(terms.sequence)),
            *(self._of(f".{one}") for one in terms.characters),
        }

    def of_need(self, terms: tuple[str, ...]) -> Iterable[int]:
        """Of what a text has, where these stand side by side."""
        side_by_side = inner(terms)
        yield from map(self._of, side_by_side)
        yield from map(self._of_pair, pairwise(side_by_side))
        for one in lone(terms):
            yield self._of(f".{one}")

    def _of_pair(self, pair: tuple[str, str]) -> int:
        return self._of(f" {crc32(' '.join(pair).encode()) % PAIRS}")

    def _of(self, term: str) -> int:
        """Terms have neither spaces nor dots: what begins with one is never a plain term."""
        known = self._known.get(term)
        if known is None:
            digest = self._start.copy()
            digest.update(f"/{term}".encode())
            known = self._known[term] = int.from_bytes(digest.digest(), "big", signed=True)
        return known


def _array(numbers: Iterable[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def _rows(cursor: Cursor, statement: bytes, parameters: Sequence[Any]) -> list[Any]:
    return cursor.execute(statement, parameters).fetchall()


def _name_of(scope: str, conversation: str) -> bytes:
    """As in the table of conversations."""
    return hashlib.sha256(f"{scope}\0{conversation}".encode()).digest()
