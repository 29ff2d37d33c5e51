"""A log of three conversations, one of them erased, and bundles of it."""

from __future__ import annotations

import pytest
from bundles import Keeper, Members

from compaction_ledger.infrastructure.event_store.memory_recorder import SealedMemoryRecorder
from compaction_ledger.usecases.exporting import Selection


@pytest.fixture(scope="session")
def keeper() -> Keeper:
    """``a`` and ``c`` are encrypted, ``b`` was stored before encryption was on; ``gone`` is erased."""
    made = Keeper(SealedMemoryRecorder(lambda: 1_750_000_000_000_000))
    made.summarize("a")
    made.sign()
    made.summarize("b", plain=True)
    made.summarize("gone", 1)
    made.summarize("gone-plain", 1, plain=True)
    made.sign()
    made.erase("gone")
    made.erase("gone-plain")
    made.summarize("c", 1)
    made.sign()
    return made


@pytest.fixture(scope="session")
def whole(keeper: Keeper) -> Members:
    """The whole log."""
    return keeper.export()


@pytest.fixture(scope="session")
def one(keeper: Keeper) -> Members:
    """One conversation."""
    return keeper.export(Selection(keeper.subject("a")))


@pytest.fixture(scope="session")
def with_envelopes(keeper: Keeper) -> Members:
    """One conversation, with all envelopes of the log."""
    return keeper.export(Selection(keeper.subject("a"), envelopes=True))
