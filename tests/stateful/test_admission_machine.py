"""Processes that ask, wait, leave, renew, die and come back late, against a plain model (D1, D2).

The clock is the database's, and stands where the machine sets it. Processes are objects of one process here:
what a thread would do at its time is a step, and leases are so long that it does nothing by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from admission_checks import forbid_more_slots_than
from backends import SECOND, START, PostgresBackend
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from compaction_ledger.infrastructure.admission.postgres import SharedAdmission
from compaction_ledger.infrastructure.postgres.database import Database

LIMITS = (1, 2, 2, 3)
"""One for each process: they differ, as while a deployment rolls."""
LEASES = (60, 120, 300, 60)
TICKETS = (10, 20, 10, 30)
"""Seconds."""


@dataclass
class Slot:
    """A slot as the model has it. ``owner`` is a process, in one of its lives."""

    owner: int
    renewed_at: int
    lease: int

    def live(self, now: int) -> bool:
        return self.renewed_at + self.lease > now


@dataclass
class Ticket:
    """A place in the queue. Their order is that of the list they are in."""

    owner: int
    asked: int
    kept: int

    def live(self, now: int) -> bool:
        return self.asked + self.kept > now


@dataclass
class Model:
    """Slots and a queue, as one would write them down on paper."""

    now: int = START
    slots: list[Slot] = field(default_factory=list)
    queue: list[Ticket] = field(default_factory=list)

    def ask(self, owner: int, limit: int, lease: int, kept: int) -> Slot | None:
        """Whether there is one for who asks, if one is set aside for everybody before."""
        own = next((ticket for ticket in self.queue if ticket.owner == owner), None)
        granted = self._may_take(owner, limit)
        if not granted and own and own.live(self.now) and 0 <= self.now - own.asked <= kept // 10:
            return None  # so soon, nothing is written
        self._settle()
        granted = self._may_take(owner, limit)
        own = next((ticket for ticket in self.queue if ticket.owner == owner), None)
        if granted:
            self.forget(owner)
            slot = Slot(owner, self.now, lease)
            self.slots.append(slot)
            assert sum(slot.live(self.now) for slot in self.slots) <= limit
            return slot
        if own is None:
            self.queue.append(Ticket(owner, self.now, kept))
        else:
            own.asked = self.now
        return None

    def renew(self, slots: list[Slot]) -> list[Slot]:
        """Those that nobody has taken."""
        kept = [slot for slot in slots if slot in self.slots]
        for slot in kept:
            slot.renewed_at = self.now
        return kept

    def give_back(self, slot: Slot) -> None:
        self.slots = [other for other in self.slots if other is not slot]

    def forget(self, owner: int) -> None:
        self.queue = [ticket for ticket in self.queue if ticket.owner != owner]

    def _may_take(self, owner: int, limit: int) -> bool:
        free = limit - sum(slot.live(self.now) for slot in self.slots)
        for ticket in self.queue:
            if ticket.owner == owner and ticket.live(self.now):
                break
            free -= ticket.live(self.now)
        return free > 0

    def _settle(self) -> None:
        for slot in self.slots:
            slot.renewed_at = min(slot.renewed_at, self.now)
        for ticket in self.queue:
            ticket.asked = min(ticket.asked, self.now)
        self.slots = [slot for slot in self.slots if slot.live(self.now)]
        self.queue = [ticket for ticket in self.queue if ticket.live(self.now)]


@dataclass
class Process:
    """One life of a process. After its death another begins, with another number."""

    number: int
    life: int
    admission: SharedAdmission
    held: list[tuple[Slot, Callable[[], None]]] = field(default_factory=list)


class AdmissionMachine(RuleBasedStateMachine):
    """The database must say what the model says."""

    store: PostgresBackend
    database: Database

    slots = Bundle("slots")
    numbers = st.integers(0, len(LIMITS) - 1)

    @initialize()
    def begin(self) -> None:
        self.model = Model()
        self.lives = 0
        self.owner_of: dict[int, Process] = {}
        self.processes: list[Process] = []
        self.store.clock.now = START
        for table in ("admission_slots", "admission_tickets"):
            self._rows(f"DELETE FROM {{schema}}.{table}")
        for number in range(len(LIMITS)):
            self.processes.append(self._born(number))

    def _born(self, number: int) -> Process:
        self.lives += 1
        admission = SharedAdmission(
            self.database,
            LIMITS[number],
            f"p{number}",
            LEASES[number],
            ticket_seconds=TICKETS[number],
        )
        return Process(number, self.lives, admission)

    # --- what happens ---

    @rule(target=slots, number=numbers)
    def ask(self, number: int) -> Any:
        process = self.processes[number]
        expected = self.model.ask(
            process.life, LIMITS[number], LEASES[number] * SECOND, TICKETS[number] * SECOND
        )
        leave = process.admission.admit()
        assert (leave is None) == (expected is None)
        if leave is None or expected is None:
            return multiple()
        held = (expected, leave)
        process.held.append(held)
        return process, held

    @rule(slot=consumes(slots))
    def leave(self, slot: Any) -> None:
        """Also after its process has closed, and after the slot went to another."""
        process, held = slot
        expected, leave = held
        leave()
        leave()
        if held in process.held:
            process.held.remove(held)
            self.model.give_back(expected)

    @rule(number=numbers)
    def renew(self, number: int) -> None:
        process = self.processes[number]
        kept = self.model.renew([slot for slot, _ in process.held])
        process.admission._slots._settle()
        process.held = [held for held in process.held if any(held[0] is slot for slot in kept)]
        assert len(process.admission._slots._held) == len(process.held)

    @rule(number=numbers)
    def die(self, number: int) -> None:
        """Nothing is given back, and nothing renewed any more."""
        process = self.processes[number]
        with process.admission._slots._changed:
            process.admission._slots._held.clear()
            process.admission._slots._changed.notify()
        process.held = []
        self.processes[number] = self._born(number)

    @rule(number=numbers)
    def close(self, number: int) -> None:
        process = self.processes[number]
        process.admission.close()
        for slot, _ in process.held:
            self.model.give_back(slot)
        process.held = []
        self.model.forget(process.life)
        self.processes[number] = self._born(number)

    @rule(
        seconds=st.sampled_from([0.5, 1, 2, 5, 9.999_999, 10, 20, 59.999_999, 60, 300])
        | st.floats(-400, 400)
    )
    def pass_time(self, seconds: float) -> None:
        self.store.clock.advance(seconds)
        self.model.now = self.store.clock.now

    # --- what must be so ---

    @invariant()
    def the_database_says_what_the_model_says(self) -> None:
        asked = self.processes[0].admission
        now = self.model.now
        assert asked.in_use() == sum(slot.live(now) for slot in self.model.slots)
        assert asked.waiting() == sum(ticket.live(now) for ticket in self.model.queue)
        assert self._rows(
            "SELECT renewed_at, lease FROM {schema}.admission_slots ORDER BY 1, 2"
        ) == sorted((slot.renewed_at, slot.lease) for slot in self.model.slots)
        assert self._rows(
            "SELECT last_asked, kept FROM {schema}.admission_tickets ORDER BY place"
        ) == [(ticket.asked, ticket.kept) for ticket in self.model.queue]

    @invariant()
    def there_are_never_more_than_the_highest_limit(self) -> None:
        assert len(self.model.slots) <= max(LIMITS)

    def teardown(self) -> None:
        for process in self.processes:
            process.admission.close()

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.database.call(self.database.sql(query))


def run(examples: int, steps: int) -> None:
    store = PostgresBackend(Path(mkdtemp()))
    try:
        database = store.database()
        forbid_more_slots_than(database, max(LIMITS))
        machine = type("Machine", (AdmissionMachine,), {"store": store, "database": database})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
                derandomize="CI" in os.environ,
            ),
        )
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.stateful
def test_slots_and_the_queue_against_the_plain_model() -> None:
    run(examples=25, steps=30)


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.stateful
def test_slots_and_the_queue_against_the_plain_model_at_length() -> None:
    run(examples=100, steps=60)
