"""An intruder's work on a copy of the ledger file, past all of this software."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def change_payload(path: Path, index: int) -> int:
    """Change one bit in the middle of an event's stored payload; in which byte.

    The trigger that keeps the log append-only is dropped first, as whoever can write could do.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER stored_events_no_update")
        (payload,) = connection.execute(
            "SELECT state FROM stored_events WHERE idx = ?", (index,)
        ).fetchone()
        place = len(payload) // 2
        changed = payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]
        connection.execute("UPDATE stored_events SET state = ? WHERE idx = ?", (changed, index))
        return place
