"""An intruder's work on a copy of the ledger file, past all of this software."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def change_payload(path: Path, index: int, before: bytes, after: bytes) -> None:
    """Replace the first ``before`` in an event's stored payload by ``after``.

    The trigger that keeps the log append-only is dropped first, as whoever can write could do.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER stored_events_no_update")
        (payload,) = connection.execute(
            "SELECT state FROM stored_events WHERE idx = ?", (index,)
        ).fetchone()
        if before not in payload:
            raise LookupError(f"the payload of event {index} has no {before!r}")
        changed = payload.replace(before, after, 1)
        connection.execute("UPDATE stored_events SET state = ? WHERE idx = ?", (changed, index))
