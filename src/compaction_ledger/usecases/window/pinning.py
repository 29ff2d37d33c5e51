"""Pinning: from a quote that somebody proposes to a fact in the run's stream (T9).

The proof is made against the original as it is kept, never against what a caller has at hand.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import cast

from compaction_ledger.domain.errors import DamagedLog, DamagedOriginal, PinRefused, StoreError
from compaction_ledger.domain.messages.interface import Part
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.events import PinProposer as ProposedBy
from compaction_ledger.domain.window.pin_sources import users_parts
from compaction_ledger.domain.window.pins import (
    PinProposer,
    ProposingFailed,
)
from compaction_ledger.domain.window.window_state import current_pins
from compaction_ledger.usecases.originals_reading import (
    MOST_AT_ONCE,
    read_readable,
)
from compaction_ledger.usecases.window.background import Background
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.pin_recording import (
    KeptMessage,
    Told,
    entry_of,
    kept_at,
    kept_message,
    original_at,
    record_pin,
)
from compaction_ledger.usecases.window.reading import Turn
from compaction_ledger.usecases.window_session import WindowSession

logger = logging.getLogger(__name__)

MOST_QUOTES = 16
"""Of so many quotes that are proposed of one message, the others are refused unread."""

MOST_ASKED_AT_ONCE = 8
"""A model that begins with a long run is asked about so many of its newest messages at most."""

MOST_REFUSED_KEPT = 100


@dataclass(frozen=True, slots=True)
class RefusedQuote:
    """A proposed quote that became no pin, and why. ``reason`` is one of a :class:`PinRefused`."""

    message: int
    quote: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Proposals:
    """What became of some messages' quotes. ``failed``: the messages of which nothing could be proposed,
    with the reason: a failure code, or the name of an error.
    """

    accepted: tuple[PinAccepted, ...] = ()
    refused: tuple[RefusedQuote, ...] = ()
    failed: tuple[tuple[int, str], ...] = ()


def accept_pin(
    context: WindowContext,
    position: int,
    quote: str,
    *,
    proposer: ProposedBy = "caller",
    supersedes: str | None = None,
    part: int | None = None,
) -> PinAccepted:
    """Prove ``quote`` in the original of message ``position``, and record it; the pin as it is recorded.

    A pin that is there already is no error. Without ``supersedes`` the user's own words may say that an
    earlier pin of this run is corrected (``superseded_by_rules``). Raises :class:`PinRefused`,
    :class:`DamagedOriginal`, kinds of :class:`StoreError`.
    """
    found = original_at(context, position)
    session = WindowSession(context.log, context.key)
    return record_pin(context, session, found, quote, Told(proposer, supersedes, part))


def propose_pins(
    context: WindowContext, proposer: PinProposer, positions: Sequence[int]
) -> Proposals:
    """Ask ``proposer`` about the messages at ``positions``, and prove and record what it says.

    Messages that are not a user's own are passed over, as is what is pinned in the same words. A quote
    that cannot be proven is refused and reported, and stops nothing; so does an error of the proposer's,
    and a message that is not what was kept. Raises kinds of :class:`StoreError`.
    """
    accepted: list[PinAccepted] = []
    refused: list[RefusedQuote] = []
    failed: list[tuple[int, str]] = []
    session = WindowSession(context.log, context.key)  # one for all: the stream is read once
    for position, kept in kept_at(context, positions):
        try:
            found = kept_message(context, position, kept)
            parts = users_parts(context.shape, found[1])
        except PinRefused:
            continue
        except DamagedOriginal as error:  # the others have their pins all the same
            failed.append((position, error.code))
            logger.warning("no pins are proposed of message %d: %s", position, error)
            continue
        told = Told(proposer.kind, readings={})
        for quote in _proposed(proposer, parts, position, refused, failed):
            if any(pin.quote == quote for pin in current_pins(session.state)):
                continue  # said again, as it stands: one pin of it is enough
            try:
                pin = record_pin(context, session, found, quote, told)
            except PinRefused as refusal:
                refused.append(RefusedQuote(position, quote, refusal.reason, str(refusal)))
            else:
                accepted.append(pin)
    return Proposals(tuple(accepted), tuple(refused), tuple(failed))


def _proposed(
    proposer: PinProposer,
    parts: Sequence[Part],
    position: int,
    refused: list[RefusedQuote],
    failed: list[tuple[int, str]],
) -> Iterator[str]:
    """The quotes proposed of one message, each once."""
    seen: set[str] = set()
    for part in parts:
        for quote in _asked(proposer, part.text, position, failed):
            if quote in seen:
                continue
            if len(seen) == MOST_QUOTES:
                detail = f"more than {MOST_QUOTES} quotes were proposed of one message"
                refused.append(RefusedQuote(position, quote[:200], "not_text", detail))
                return
            seen.add(quote)
            yield quote


def _asked(
    proposer: PinProposer, text: str, position: int, failed: list[tuple[int, str]]
) -> Sequence[str]:
    try:
        proposed = list(cast("Sequence[object]", proposer.propose(text)))
    except StoreError:
        raise
    except Exception as error:  # a turn never fails by who proposes
        reason = error.reason if isinstance(error, ProposingFailed) else type(error).__name__
        failed.append((position, reason))
        logger.warning("no pins were proposed of message %d: %s", position, reason)
        logger.debug("no pins were proposed of message %d", position, exc_info=True)
        return ()
    return [quote for quote in proposed if isinstance(quote, str)]


class Pinning:
    """The pins of one run, turn by turn. Rules propose at once; who may take long is asked in the
    background.

    So no turn waits for a model (T11). May be used from several threads.
    """

    def __init__(self, context: WindowContext, proposer: PinProposer | None) -> None:
        self._context = context
        self._proposer = proposer
        self._lock = Lock()
        self._looked: int | None = None
        self._waiting: list[int] = []
        self._refused: deque[RefusedQuote] = deque(maxlen=MOST_REFUSED_KEPT)
        self._background = Background("compaction-ledger pins")

    @property
    def refused(self) -> tuple[RefusedQuote, ...]:
        """The newest quotes that were proposed and refused, with the reasons."""
        with self._lock:
            return tuple(self._refused)

    def look(self, turn: Turn) -> None:
        """Propose pins of the user's messages that are new since the last turn, and are kept."""
        if self._proposer is None:
            return
        with self._lock:
            begun = self._looked is not None
            new = [
                entry.position
                for entry in turn.entries[self._looked or 0 :]
                if entry.role == "user" and entry.begins_turn
            ]
        if self._proposer.kind == "rule":
            self._propose(self._proposer, new)  # where the store fails, the next turn looks again
        with self._lock:
            self._looked = len(turn.entries)
            if self._proposer.kind != "rule":
                self._waiting += new if begun else new[-MOST_ASKED_AT_ONCE:]
            waiting = bool(self._waiting)
        if waiting:
            self._background.give(self._propose_waiting)

    def pin(
        self, quote: str, message: int | None = None, supersedes: str | None = None
    ) -> PinAccepted:
        """Pin these words of message ``message``, or of the newest user message that has them.

        Raises as :func:`accept_pin`; :class:`DamagedOriginal` where one that is not what was kept may have
        had them.
        """
        if message is not None:
            return accept_pin(self._context, message, quote, supersedes=supersedes)
        refusal: PinRefused | None = None
        session = WindowSession(self._context.log, self._context.key)
        told = Told("caller", supersedes)
        for found in self._users_newest_first():
            try:
                return record_pin(self._context, session, found, quote, told)
            except PinRefused as error:
                if error.reason in {"not_text", "unknown_pin", "pin_id_used"}:
                    raise
                refusal = _nearer(refusal, error)
        raise refusal or PinRefused("not_found", "no user message of this run has these words")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for what is asked in the background; whether it ended within ``timeout`` seconds."""
        return self._background.wait(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Ask nothing more, and wait for what runs; whether it ended within ``timeout`` seconds."""
        return self._background.close(timeout)

    def _users_newest_first(self) -> Iterator[KeptMessage]:
        """The user's messages as they are kept. Raises :class:`DamagedOriginal` behind the last of
        them, where one could not be read.
        """
        context = self._context
        damaged: DamagedOriginal | None = None
        stop = context.originals.count(context.key)
        while stop > 0:
            start = max(0, stop - MOST_AT_ONCE)
            page = read_readable(context.originals, context.key, start, stop)
            if len(page) < stop - start:
                damaged = DamagedOriginal(
                    f"some of the messages m{start} to m{stop - 1} are damaged"
                )
            for original in reversed(page):
                if original.role == "user":
                    try:
                        found = original, entry_of(context, original)
                    except DamagedOriginal as error:  # an older one may have the words, too
                        damaged = error
                    else:
                        yield found
            stop = start
        if damaged is not None:
            raise damaged

    def _propose_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        try:
            if self._proposer is not None:
                self._propose(self._proposer, waiting)
        except StoreError:
            with self._lock:  # asked at the next turn: no constraint is lost by it
                self._waiting = [*waiting, *self._waiting]
            raise

    def _propose(self, proposer: PinProposer, positions: Sequence[int]) -> None:
        try:
            proposals = propose_pins(self._context, proposer, positions)
        except DamagedLog as error:  # the request is made from the originals then (H9)
            logger.warning("no pins are recorded of %s: %s", self._context.key, error)
            return
        with self._lock:
            self._refused.extend(proposals.refused)


def _nearer(one: PinRefused | None, other: PinRefused) -> PinRefused:
    """Which of two refusals says more: that the words are there, and not provably so."""
    if one is None or one.reason in {"not_found", "not_users_words"}:
        return other
    return one
