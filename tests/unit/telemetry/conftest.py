"""A watcher for each test, and a ledger that is watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from backends import Clock
from histories import CONVERSATION, SCOPE, lines
from watched import Watched

from compaction_ledger import Ledger


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Keeps what ledgers tell that are opened after it."""
    return Watched(monkeypatch)


@pytest.fixture
def clock() -> Clock:
    """The store's clock."""
    return Clock()


@pytest.fixture
def ledger(watched: Watched, clock: Clock) -> Iterator[Ledger]:
    """A watched ledger with a conversation of one range that is due."""
    with Ledger.in_memory(clock=clock) as opened:
        opened.transcripts.append(SCOPE, CONVERSATION, *lines(30))
        yield opened
