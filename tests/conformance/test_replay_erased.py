"""Replay of what was erased: it is said that it was, and nothing of it (S3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from backends import PostgresBackend
from histories import CONVERSATION, SCOPE, Worker, fill, present_job

from compaction_ledger import Ledger, Moment, Settings
from compaction_ledger.domain.errors import Erased

OTHER = "c-2"
RUN = "run-40"


def opened(kind: str, folder: Path, stack: ExitStack) -> Ledger:
    """A ledger with keys of its own."""
    settings = Settings(
        keys_folder=folder / "keys",
        checkpoints_folder=folder / "checkpoints",
        encryption="off" if kind == "sqlite, not encrypted" else "on",
    )
    if kind == "memory":
        return Ledger.in_memory(settings=settings)
    if kind.startswith("sqlite"):
        return Ledger.open(folder / "ledger.db", settings=settings)
    store = PostgresBackend(folder)
    stack.callback(store.close)
    return Ledger.open(store.url, settings=settings)


@pytest.fixture(params=["memory", "postgres", "sqlite", "sqlite, not encrypted"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """Two conversations, each with a summary and a recorded request of one run; one is erased."""
    with ExitStack() as stack, opened(request.param, tmp_path, stack) as made:
        for conversation in (CONVERSATION, OTHER):
            fill(made._parts, 40, conversation)
            Worker(made._parts, present_job(made._parts, conversation=conversation)).complete()
            made.catch_up()
            request_ = made.assemble(conversation, scope=SCOPE, budget=10**6)
            made.record_delivery(request_, run=RUN)
        made.erase(CONVERSATION, scope=SCOPE)
        yield made


@pytest.mark.slow_on("postgres")
@pytest.mark.parametrize("index", [-1, 2, 7, None])
def test_of_an_erased_conversation_nothing_is_said(ledger: Ledger, index: int | None) -> None:
    with pytest.raises(Erased):
        ledger.replay(CONVERSATION, Moment(index), scope=SCOPE)
    with pytest.raises(Erased):
        ledger.diff(Moment(-1), Moment(index), CONVERSATION, scope=SCOPE)


def test_an_overview_counts_what_was_erased(ledger: Ledger) -> None:
    then = ledger.replay_all(Moment(2))  # it was all there then
    assert list(then.conversations) == []
    assert list(then.erased.values()) == [3]
    now = ledger.replay_all(Moment())
    assert [one.conversation for one in now.conversations] == [OTHER]
    assert list(now.erased.values()) == [4]
    found = ledger.diff(Moment(1), Moment())
    assert found.erased == 2
    assert {change.after.conversation for change in found.changes} == {OTHER}


def test_the_other_conversation_is_replayed_as_before(ledger: Ledger) -> None:
    then = ledger.replay(OTHER, Moment(), scope=SCOPE)
    assert [one.standing for one in then.ranges] == ["done"]
    assert then.served is not None
    assert len(then.served.assembly.manifest.summaries) == 1


@pytest.mark.slow_on("postgres")
def test_an_erased_delivery_is_named_as_that(ledger: Ledger) -> None:
    found = ledger.delivered(RUN)
    assert [given.place for given in found.requests] == [(SCOPE, OTHER)]
    assert list(found.erased) == [3]
    assert list(found.damaged) == []
