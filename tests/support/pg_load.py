"""Threads that use a ledger as hosts and workers do, whatever happens to the server, and note what is told.

Each works on ranges and on a conversation of its own, so nobody is ever in another's way: whoever is refused
is refused wrongly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from typing import Self

from histories import SCOPE, Worker, key_of
from kept_processes import wait_until
from pg_ledgers import PgLedger, Session, are_once
from scenarios import CURRENT, MODEL, make_pairs

from compaction_ledger.domain.errors import StoreError, UnknownConversation
from compaction_ledger.domain.events import RangeFact
from compaction_ledger.domain.identity import job_for
from compaction_ledger.domain.transcript import NewMessage
from compaction_ledger.usecases.range_session import Outcome

PAUSE = 0.05
UNKNOWN = ("not known", "not settled")
"""What is said where something may have been stored."""


@dataclass
class Hand:
    """What one thread does, and what it was told."""

    session: Session
    name: str
    stop: Event
    told: list[tuple[int, RangeFact]] = field(default_factory=list)
    completed: list[Worker] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    errors: list[StoreError] = field(default_factory=list)
    steps: int = 0

    def run(self) -> None:
        """Work until it is told to stop; the first thing that must not be ends it."""
        number = 0
        while not self.stop.is_set():
            self._complete(number)
            self._write(f"{self.name}-{number}")
            number += 1

    def _complete(self, number: int) -> None:
        pairs = make_pairs(10, 10 * number)
        worker = Worker(
            self.session.parts,
            job_for(SCOPE, self.name, pairs, MODEL, CURRENT),
            f"{self.name}-{number}",
        )
        for step in (worker.claim, worker.start, worker.finish):
            self._insist(step)
        self.completed.append(worker)

    def _insist(self, step: Callable[[], Outcome]) -> None:
        """Until it is done. Of what is not known the command itself finds out when it comes again."""
        while True:
            try:
                outcome = step()
            except StoreError as error:
                self._note(error)
            else:
                self.told += zip(outcome.indices, outcome.facts, strict=True)
                self.steps += 1
                return

    def _write(self, message: str) -> None:
        """Append a message once: after an error only where it is not there."""
        while True:
            try:
                self.session.parts.transcripts.append(
                    SCOPE, self.name, [NewMessage(message, "run", "user", message)]
                )
            except StoreError as error:
                self._note(error)
                if not self._is_there(message):
                    continue
                if not any(words in str(error) for words in UNKNOWN):
                    raise AssertionError(
                        f"{message} is stored, and it was said: {error}"
                    ) from error
            self.written.append(message)
            self.steps += 1
            return

    def _is_there(self, message: str) -> bool:
        while True:
            try:
                found = self.session.parts.transcripts.conversation(SCOPE, self.name).messages
            except UnknownConversation:
                return False
            except StoreError as error:
                self._note(error)
            else:
                return message in [line.id for line in found]

    def _note(self, error: StoreError) -> None:
        self.errors.append(error)
        time.sleep(PAUSE)


@dataclass
class Load:
    """Use as a context: it works within, and is over behind."""

    ledger: PgLedger
    sessions: Sequence[Session]
    threads: int = 6

    def __enter__(self) -> Self:
        self._stop = Event()
        self.hands = [
            Hand(self.sessions[number % len(self.sessions)], f"hand-{number}", self._stop)
            for number in range(self.threads)
        ]
        self._pool = ThreadPoolExecutor(self.threads + 1)
        self._doing = [self._pool.submit(hand.run) for hand in self.hands]
        self._doing.append(self._pool.submit(self._follow))
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()

    def _follow(self) -> None:
        """The read models follow all the while."""
        while not self._stop.is_set():
            with suppress(StoreError):
                self.sessions[0].ledger.catch_up()
            time.sleep(PAUSE)

    @property
    def errors(self) -> list[StoreError]:
        """What the threads were told of in between."""
        return [error for hand in self.hands for error in hand.errors]

    def get_on(self, seconds: float = 60, steps: int = 5) -> None:
        """Until each thread has done something more (or one has ended)."""
        goals = [hand.steps + steps for hand in self.hands]

        def reached() -> bool:
            pairs = zip(self.hands, goals, strict=True)
            return any(one.done() for one in self._doing) or all(h.steps >= g for h, g in pairs)

        wait_until(reached, seconds, "the threads to get on")

    def check(self) -> None:
        """Nothing lost, no false success, no false refusal; and all of the ledger holds."""
        for one in self._doing:
            one.result()
        entries = self.ledger.check()
        looking = self.ledger.open()
        for hand in self.hands:
            are_once(entries, hand.told)
            for worker in hand.completed:
                history = looking.log.history(key_of(worker.job))
                assert [type(entry.fact).__name__ for entry in history] == [
                    "RangeClaimed",
                    "AttemptStarted",
                    "RangeCompleted",
                ]
            stored = looking.parts.transcripts.conversation(SCOPE, hand.name).messages
            assert [line.id for line in stored] == hand.written
