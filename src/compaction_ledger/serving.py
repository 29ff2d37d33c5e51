"""The loop of a worker: find what is due, look at it, wait; until it is told to stop.

Several threads take conversations off the work list, one each at a time. One more discovers what changed,
one asks the store about once a second whether it is there, and one signs the log, if that is wanted. The
caller's thread waits, so that signals reach it.

An error of one conversation delays that conversation. While the store cannot do its part, all wait, longer
each time, and go on. Only a stop ends the loop, or something that every conversation would meet.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import ParamSpec

from compaction_ledger.domain.errors import InvalidSetting, LedgerError, StoreError
from compaction_ledger.domain.ports import WorkList
from compaction_ledger.domain.work import WorkItem
from compaction_ledger.usecases.claiming import RangeOutcome
from compaction_ledger.usecases.compaction import Compactor
from compaction_ledger.usecases.looking import HELD_BACK_SECONDS
from compaction_ledger.usecases.stopping import Stop
from compaction_ledger.usecases.telemetry import Telemetry
from compaction_ledger.usecases.working import Looker, LookFailure, view_of

logger = logging.getLogger(__name__)

P = ParamSpec("P")

TICK = 0.1
FIRST_IDLE = 0.1
FIRST_AWAY, LONGEST_AWAY = 1.0, 30.0
INTERRUPTED = 5.0
"""How long a call that was interrupted has to be recorded."""

PULSE = 1.0
SILENCE = 5.0
"""After so long without an answer the store counts as away."""

STALL_LEASES = 2
"""A thread counts as stalled when nothing was heard of it for so many leases and the longest attempt."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a worker spends its time. All times are seconds. Raises :class:`InvalidSetting`."""

    threads: int = 4
    """How many conversations are looked at at once."""

    poll: float = 5.0
    """How long a thread waits, at most, before it looks for work again."""

    discover: float = 30.0
    """How often the transcripts are searched for what changed, by one of all workers."""

    drain: float = 20.0
    """How long calls that are under way may go on after a stop, before they are interrupted."""

    ranges: int = 4
    """How many ranges of one conversation are attempted before it is another's turn."""

    until_idle: bool = False
    """Whether to end when nothing is due any more."""

    def __post_init__(self) -> None:
        for name in ("threads", "ranges"):
            if not 1 <= getattr(self, name) <= 1_000:
                raise InvalidSetting("must be from 1 to 1000", place=name)
        for name, least in (("poll", 0.01), ("discover", 0.01), ("drain", 0.0)):
            if not least <= getattr(self, name) <= 86_400:
                raise InvalidSetting(f"must be from {least} to 86400 seconds", place=name)


class Listener:
    """What a worker tells while it works, from any of its threads. This one tells the log of the process."""

    def range_done(self, scope: str, conversation: str, outcome: RangeOutcome) -> None:
        """What became of a range."""

    def failed(self, failure: LookFailure) -> None:
        """A conversation met an error."""
        logger.warning("a conversation met %s, for the %d. time", failure.code, failure.number)

    def store_away(self, error: StoreError) -> None:
        """The store cannot do its part now. Told once, until it can again."""
        logger.warning("the store cannot do it, and is asked again: %s", error)

    def store_back(self) -> None:
        """The store can do its part again."""
        logger.warning("the store can do it again")

    def signing_failed(self, error: LedgerError) -> None:
        """The log could not be signed; it is tried again when it is time."""
        logger.warning("the log could not be signed: %s", error)


@dataclass(frozen=True, slots=True)
class Signing:
    """That the worker signs the log (K1): ``sign`` does it, every so many seconds.

    Raises :class:`InvalidSetting`.
    """

    every: float
    sign: Callable[[], object]

    def __post_init__(self) -> None:
        if not 0.1 <= self.every <= 86_400:
            raise InvalidSetting("must be from 0.1 to 86400 seconds", place="sign_every")


@dataclass(frozen=True, slots=True)
class Condition:
    """How a worker is at one moment. ``trouble`` says why it is not ready, ``counts`` what it has done."""

    trouble: str | None
    draining: bool
    busy: int
    counts: Mapping[str, int]


class Activity:
    """What a worker does, for those who watch it from other threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self._signs: dict[int, float] = {}
        self._busy: set[int] = set()
        self._answered: float | None = None
        self._stall = float("inf")
        self._draining = False

    def begin(self, threads: int, stall: float) -> None:
        """So many threads begin; one that shows no sign of life for so many seconds is stalled."""
        with self._lock:
            self._stall = stall
            self._signs = dict.fromkeys(range(threads), self._clock())

    def count(self, name: str, number: int = 1) -> None:
        """Something was done."""
        with self._lock:
            self._counts[name] += number

    def alive(self, thread: int, *, busy: bool | None = None) -> None:
        """A sign of life of a thread."""
        with self._lock:
            self._signs[thread] = self._clock()
            if busy is not None:
                (self._busy.add if busy else self._busy.discard)(thread)

    def answered(self) -> None:
        """The store has answered."""
        with self._lock:
            self._answered = self._clock()

    def drain(self) -> None:
        """No more is begun."""
        self._draining = True

    def condition(self) -> Condition:
        """How it is now."""
        with self._lock:
            now = self._clock()
            counts = {name: self._counts[name] for name in sorted(self._counts)}
            return Condition(self._trouble(now), self._draining, len(self._busy), counts)

    def _trouble(self, now: float) -> str | None:
        if self._draining:
            return "it is about to end"
        if self._answered is None or now - self._answered > SILENCE:
            return "the store does not answer"
        if any(now - seen > self._stall for seen in self._signs.values()):
            return "a thread has not ended its turn for long"
        return None


@dataclass(frozen=True, slots=True)
class Served:
    """How a worker's run went. ``abandoned`` threads could not be interrupted in time."""

    counts: Mapping[str, int]
    stopped: bool
    abandoned: int = 0


@dataclass(slots=True)
class Serving:
    """One run of a worker. ``compactor_for`` makes its compactor, with the stop that it is to heed.

    ``cancel`` interrupts the calls of the model that are under way; ``hurry``, when it is set, cuts the
    draining short.
    """

    compactor_for: Callable[[Stop], Compactor]
    work: WorkList
    stop: Stop
    pace: Pace = field(default_factory=Pace)
    upgrade: bool = False
    listener: Listener = field(default_factory=Listener)
    activity: Activity = field(default_factory=Activity)
    cancel: Callable[[], None] | None = None
    hurry: Event = field(default_factory=Event)
    signing: Signing | None = None
    _ending: Event = field(default_factory=Event, init=False)
    _woken: Event = field(default_factory=Event, init=False)
    """Set by a hint, and at the end: whoever has nothing to do looks again."""
    _discovered: Event = field(default_factory=Event, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _idle: int = field(default=0, init=False)
    _away: bool = field(default=False, init=False)
    _defect: BaseException | None = field(default=None, init=False)
    _looker: Looker = field(init=False)

    def run(self) -> Served:
        """Work until the stop is requested, or until nothing is due, if that is what the pace says.

        Raises what every conversation would meet: :class:`InvalidSetting`, and a defect of the loop's own.
        With ``until_idle`` also kinds of :class:`StoreError`: then somebody starts it again.
        """
        compactor = self.compactor_for(_Ending(self.stop, self._ending))
        view = view_of(compactor.context, compactor.summarizer.model, upgrade=self.upgrade)
        self._looker = Looker(compactor, self.work, view, self.upgrade, self.pace.ranges)
        stall = STALL_LEASES * compactor.lease + compactor.longest_attempt
        self.activity.begin(self.pace.threads, stall / 1_000_000)
        workers = [
            self._thread(f"worker {number}", self._work, number)
            for number in range(self.pace.threads)
        ]
        helpers = [
            self._thread("discovery", self._discover),
            self._thread("pulse", self._feel_pulse),
        ]
        if self.signing is not None:
            helpers.append(self._thread("signing", self._sign, self.signing))
        try:
            with self.work.hints(self._woken.set):
                while any(map(Thread.is_alive, workers)) and not self.stop.requested:
                    self._ending.wait(TICK)
        finally:  # also where the caller's thread is interrupted
            stopped = self.stop.requested
            abandoned = self._drain(workers, helpers)
        if self._defect is not None:
            raise self._defect
        if self.signing is not None and self.pace.until_idle and not stopped:
            self._sign_once(self.signing, at_the_end=True)
        return Served(self.activity.condition().counts, stopped, abandoned)

    # --- the end ---

    def _drain(self, workers: list[Thread], helpers: list[Thread]) -> int:
        """Begin nothing more; let what is under way end, or have it interrupted. How many did not end."""
        self._end()
        self.activity.drain()
        until = time.monotonic() + self.pace.drain
        while time.monotonic() < until and not self.hurry.is_set() and _join(workers, TICK):
            pass
        if _join(workers, 0) and self.cancel is not None:
            self.cancel()
        left = _join(workers, INTERRUPTED)
        _join(helpers, TICK)
        return left

    def _fail(self, error: BaseException) -> None:
        """End the loop with this error."""
        if self._defect is None:
            self._defect = error
        self._end()

    def _end(self) -> None:
        self._ending.set()
        self._woken.set()

    # --- threads ---

    def _thread(self, name: str, body: Callable[..., None], *arguments: object) -> Thread:
        def run() -> None:
            try:
                body(*arguments)
            except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
                self._fail(error)

        thread = Thread(target=run, name=f"compaction-ledger {name}", daemon=True)
        thread.start()
        return thread

    def _work(self, number: int) -> None:
        """Take, look, wait."""
        in_vain = 0
        owed: list[WorkItem] = []
        while not self._ending.is_set():
            found: float | None = None
            all_known = self._discovered.is_set()  # before it is looked for
            with self._store() as store:
                self._give_back(owed)
                found = self._turn(number, owed)
            if store.error is not None:
                in_vain += 1
                self._wait(_growing(FIRST_AWAY, LONGEST_AWAY, in_vain))
            elif found is None:
                in_vain += 1
                longest = FIRST_IDLE if self.pace.until_idle else self.pace.poll
                self._be_idle(_growing(FIRST_IDLE, longest, in_vain), all_known=all_known)
            else:
                in_vain = 0
                self._wait(found)
        with suppress(StoreError):  # then their leases end by themselves
            self._give_back(owed)

    def _turn(self, number: int, owed: list[WorkItem]) -> float | None:
        """Look at one conversation; how long to wait before the next one. ``None``: there is none.

        It is ``owed`` to the work list until it was looked at.
        """
        looker = self._looker
        lease = looker.compactor.lease / 1_000_000
        items = self.work.take(looker.compactor.holder, 1, lease)
        self.activity.alive(number)
        if not items:
            return None
        owed += items

        def on_outcome(scope: str, conversation: str, outcome: RangeOutcome) -> None:
            self.activity.alive(number)
            self.activity.count(f"ranges_{outcome.result}")
            self._tell(self.listener.range_done, scope, conversation, outcome)

        self.activity.alive(number, busy=True)
        try:
            look = looker.look(items[0], on_outcome)
        finally:
            self.activity.alive(number, busy=False)
        owed.clear()
        self.activity.count("conversations")
        if look.failure is not None:
            self.activity.count("failures")
            self._tell(self.listener.failed, look.failure)
        return _jittered(HELD_BACK_SECONDS) if look.held_back else 0.0

    def _give_back(self, owed: list[WorkItem]) -> None:
        """Leave to others what could not be looked at to its end."""
        while owed:
            self._looker.give_back(owed[-1])
            owed.pop()

    def _discover(self) -> None:
        """Find what changed, again and again."""
        in_vain = 0
        transcripts = self._looker.compactor.context.transcripts
        every = 0.0 if self.pace.until_idle else self.pace.discover
        while not self._ending.is_set():
            with self._store() as store:
                try:
                    found = self.work.discover(transcripts, view=self._looker.view, every=every)
                except (StoreError, InvalidSetting):
                    raise
                except Exception as error:  # noqa: BLE001 - of the host's transcripts
                    self._discovery_failed(error)
                else:
                    self.activity.count("discovered", found or 0)
                    self._discovered.set()
            in_vain = 0 if store.error is None else in_vain + 1
            if self.pace.until_idle:
                return
            wait = _growing(FIRST_AWAY, LONGEST_AWAY, in_vain) if in_vain else self.pace.discover
            self._wait(min(wait, self.pace.discover))

    def _discovery_failed(self, error: Exception) -> None:
        if self.pace.until_idle:
            raise error
        code = error.code if isinstance(error, LedgerError) else type(error).__name__
        logger.warning("conversations cannot be listed: %s", code)
        logger.debug("conversations cannot be listed", exc_info=error)
        self.activity.count("failures")
        self._telemetry.count("errors", error=code)

    def _feel_pulse(self) -> None:
        """Ask the store for something small."""
        while not self._ending.is_set():
            try:
                self._looker.compactor.context.log.size()
            except StoreError as error:  # whoever needs it waits
                logger.debug("no pulse: %s", error)
            else:
                self.activity.answered()
            self._ending.wait(PULSE)

    # --- signing ---

    def _sign(self, signing: Signing) -> None:
        """Sign the log, again and again."""
        while not self._ending.is_set():
            self._sign_once(signing)
            self._wait(signing.every)

    def _sign_once(self, signing: Signing, *, at_the_end: bool = False) -> None:
        """Sign the log. What goes wrong is told, and is nobody else's trouble."""
        try:
            signing.sign()
        except LedgerError as error:
            if self._ending.is_set() and not at_the_end:  # the store may be closed already
                return
            self.activity.count("signing_failures")
            self._telemetry.count("errors", error=error.code)
            self._tell(self.listener.signing_failed, error)
        else:
            self.activity.count("checkpoints")

    # --- waiting ---

    @contextmanager
    def _store(self) -> Generator[_StoreCall]:
        """Around what needs the store: an error of it is kept, and told once."""
        call = _StoreCall()
        try:
            yield call
        except StoreError as error:
            if self.pace.until_idle:
                raise
            call.error = error
        with self._lock:
            changed, self._away = self._away != (call.error is not None), call.error is not None
        if call.error is not None:
            self.activity.count("store_errors")
            self._telemetry.count("errors", error=call.error.code)
        if self._ending.is_set():  # who helped may not have heard of it in time
            return
        if changed and call.error is not None:
            self._tell(self.listener.store_away, call.error)
        elif changed:
            self._tell(self.listener.store_back)

    @property
    def _telemetry(self) -> Telemetry:
        return self._looker.compactor.context.telemetry

    def _tell(self, tell: Callable[P, None], *words: P.args, **named: P.kwargs) -> None:
        """Tell the listener something. What is wrong with it is no error of a conversation."""
        try:
            tell(*words, **named)
        except Exception as error:  # noqa: BLE001 - raised by the caller's thread
            self._fail(error)

    def _be_idle(self, seconds: float, *, all_known: bool) -> None:
        """Wait, unless all threads do and that is to be the end.

        It is not where this one looked before all that is due was ``all_known``.
        """
        with self._lock:
            self._idle += 1
            all_idle = self._idle == self.pace.threads
        if all_idle and self.pace.until_idle and all_known:
            self._end()
        self._woken.wait(seconds)
        if not self._ending.is_set():
            self._woken.clear()
        with self._lock:
            self._idle -= 1

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            self._ending.wait(seconds)


@dataclass(slots=True)
class _StoreCall:
    error: StoreError | None = None


@dataclass(frozen=True, slots=True)
class _Ending:
    """The caller's stop, or the loop's own end."""

    stop: Stop
    ending: Event

    @property
    def requested(self) -> bool:
        return self.ending.is_set() or self.stop.requested

    @contextmanager
    def interruptible(self) -> Generator[None]:
        with self.stop.interruptible():
            yield


def _join(threads: list[Thread], seconds: float) -> int:
    """Wait for threads, so long in all; how many have not ended."""
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return sum(map(Thread.is_alive, threads))


def _growing(first: float, longest: float, times: int) -> float:
    return _jittered(min(longest, first * 2.0 ** min(times - 1, 16)))


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - so that not all come back at once
