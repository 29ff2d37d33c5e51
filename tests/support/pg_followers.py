"""Processes that follow the log of a ledger in PostgreSQL, or rebuild its read models, while others write."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pg_competition import open_ledger

from compaction_ledger.composition import past_read_models
from compaction_ledger.projections.postgres import PostgresStore

Say = Callable[..., None]


def follow_and_compare(end: Path, url: str, say: Say) -> None:
    """Follow the log until there is a file at ``end``; say how often the rows were compared, and how far.

    Whatever is served is a fold from zero up to the position that it names (P2, P3), which never goes back.
    """
    parts = open_ledger(url)
    log, rows = parts.context.log, parts.read_models
    compared = before = 0
    say("following")
    while not end.exists():
        rows.catch_up(log)
        position, _, records = rows.snapshot()
        past = past_read_models(parts.context.registry, position)
        past.catch_up(log)
        assert past.records() == records, f"at {position}"
        assert position >= before, f"from {before} back to {position}"
        compared, before = compared + 1, position
        time.sleep(0.05)
    say("compared", compared, before)
    parts.close()


def rebuild_slowly(url: str, batch: int, pause: float, say: Say) -> None:
    """Rebuild in batches of so many facts, with so many seconds behind each; say how long the log was."""
    PostgresStore.rebuild_batch = batch
    parts = open_ledger(url)

    def told(done: int, total: int) -> None:
        say("progress", done, total)
        time.sleep(pause)

    say("began", parts.context.log.size())
    say("ended", parts.read_models.rebuild(parts.context.log, told))
    parts.close()
