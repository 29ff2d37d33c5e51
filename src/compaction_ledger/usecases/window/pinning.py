"""Pinning: from a quote that somebody proposes to a fact in the run's stream (T9).

The proof is made against the original as it is kept, never against what a caller has at hand.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import cast

from compaction_ledger.domain.errors import DamagedLog, DamagedOriginal, PinRefused, StoreError
from compaction_ledger.domain.messages.interface import Entry, Part, Wire
from compaction_ledger.domain.window.commands import AcceptPin
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.events import PinProposer as ProposedBy
from compaction_ledger.domain.window.originals import Original, message_digest
from compaction_ledger.domain.window.pin_proof import Readings
from compaction_ledger.domain.window.pin_sources import find_in, users_parts
from compaction_ledger.domain.window.pins import (
    PinProposer,
    ProposingFailed,
    pin_id,
    superseded_by_rules,
)
from compaction_ledger.domain.window.window_state import WindowState, current_pins
from compaction_ledger.usecases.window.background import Background
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.reading import Turn
from compaction_ledger.usecases.window_session import WindowSession

logger = logging.getLogger(__name__)

MOST_QUOTES = 16
"""Of so many quotes that are proposed of one message, the others are refused unread."""

MOST_ASKED_AT_ONCE = 8
"""A model that begins with a long run is asked about so many of its newest messages at most."""

MOST_REFUSED_KEPT = 100
_PAGE = 64


@dataclass(frozen=True, slots=True)
class RefusedQuote:
    """A proposed quote that became no pin, and why. ``reason`` is one of a :class:`PinRefused`."""

    message: int
    quote: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Proposals:
    """What became of some messages' quotes. ``failed``: the messages of which nothing could be proposed, with
    the reason: a failure code, or the name of an error.
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
    earlier pin of this run is corrected (:func:`superseded_by_rules`). Raises :class:`PinRefused`,
    :class:`DamagedOriginal`, kinds of :class:`StoreError`.
    """
    found = _original(context, position)
    session = WindowSession(context.log, context.key)
    return _accept(context, session, found, quote, _Told(proposer, supersedes, part))


def propose_pins(
    context: WindowContext, proposer: PinProposer, positions: Sequence[int]
) -> Proposals:
    """Ask ``proposer`` about the messages at ``positions``, and prove and record what it says.

    Messages that are not a user's own are passed over. A quote that cannot be proven is refused and
    reported, and stops nothing; so does an error of the proposer's, and a message that is not what was kept.
    Raises kinds of :class:`StoreError`.
    """
    accepted: list[PinAccepted] = []
    refused: list[RefusedQuote] = []
    failed: list[tuple[int, str]] = []
    session = WindowSession(context.log, context.key)  # one for all: the stream is read once
    for position in positions:
        try:
            original, entry = _original(context, position)
            parts = users_parts(context.shape, entry)
        except PinRefused:
            continue
        except DamagedOriginal as error:  # the others have their pins all the same
            failed.append((position, error.code))
            logger.warning("no pins are proposed of message %d: %s", position, error)
            continue
        told = _Told(proposer.kind, readings={})
        for quote in _proposed(proposer, parts, position, refused, failed):
            try:
                pin = _accept(context, session, (original, entry), quote, told)
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


def _original(context: WindowContext, position: int) -> tuple[Original, Entry]:
    """The message as it is kept, checked against its digest, and what it is in its shape."""
    found = context.originals.read(context.key, position, position + 1) if position >= 0 else ()
    if not found:
        raise PinRefused("unknown_message", f"no message {position} of this run is kept")
    return found[0], _entry(context, found[0])


def _entry(context: WindowContext, original: Original) -> Entry:
    try:
        wire = cast("Wire", json.loads(original.wire.decode("utf-8", "surrogatepass")))
        intact = message_digest(context.shape.settled(wire)) == original.digest
    except (ValueError, AttributeError) as error:
        raise DamagedOriginal(f"message {original.position} is not JSON: {error}") from error
    if not intact:
        raise DamagedOriginal(f"message {original.position} is not what was kept")
    return context.shape.read([wire], original.position)[0]


@dataclass(frozen=True, slots=True)
class _Told:
    """What is told of a quote beside its words: who proposes it, what it corrects, in which part it is, and
    what was read of its message already.
    """

    proposer: ProposedBy
    supersedes: str | None = None
    part: int | None = None
    readings: Readings | None = None


def _accept(
    context: WindowContext,
    session: WindowSession,
    found: tuple[Original, Entry],
    quote: str,
    told: _Told,
) -> PinAccepted:
    (original, entry), supersedes = found, told.supersedes
    source, (start, end) = find_in(
        quote, users_parts(context.shape, entry), told.part, told.readings
    )
    place = (entry.position, source.part, start)

    def recorded(state: WindowState) -> PinAccepted | None:
        known = _known(state, place, end)
        return known if known and supersedes in {None, known.supersedes, known.pin_id} else None

    def pin_of(state: WindowState) -> PinAccepted:
        known = recorded(state)
        if known is not None:
            return known
        corrected = supersedes or _corrected(state, place, quote, source.text)
        return PinAccepted(
            window=context.key,
            pin_id=pin_id(context.key, entry.position, source.part, start, end, corrected),
            message=entry.position,
            digest=original.digest,
            part=source.part,
            start=start,
            end=end,
            quote=quote,
            exchange=original.exchange,
            proposer=told.proposer,
            supersedes=corrected,
        )

    known = recorded(session.state)
    if known is not None:  # and stays so: nothing is to be judged or read again
        return known
    outcome = session.execute(lambda _: AcceptPin(pin_of(session.state)))
    for fact in outcome.facts:
        if isinstance(fact, PinAccepted):
            return fact
    return pin_of(session.state)


def _known(state: WindowState, place: tuple[int, int, int], end: int) -> PinAccepted | None:
    """The newest pin of these very words."""
    found = [pin for pin in state.pins.values() if _place(pin) == place and pin.end == end]
    return found[-1] if found else None


def _corrected(
    state: WindowState, place: tuple[int, int, int], quote: str, text: str
) -> str | None:
    """The pin that these words correct by the rules: one that was said before them."""
    earlier = [pin for pin in current_pins(state) if _place(pin) < place]
    return superseded_by_rules(quote, text, earlier) if earlier else None


def _place(pin: PinAccepted) -> tuple[int, int, int]:
    return (pin.message, pin.part, pin.start)


class Pinning:
    """The pins of one run, turn by turn. Rules propose at once; who may take long is asked in the background.

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

        Raises as :func:`accept_pin`.
        """
        if message is not None:
            return accept_pin(self._context, message, quote, supersedes=supersedes)
        refusal: PinRefused | None = None
        session = WindowSession(self._context.log, self._context.key)
        told = _Told("caller", supersedes)
        for original in self._users_newest_first():
            found = original, _entry(self._context, original)
            try:
                return _accept(self._context, session, found, quote, told)
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

    def _users_newest_first(self) -> Iterator[Original]:
        stop = self._context.originals.count(self._context.key)
        while stop > 0:
            start = max(0, stop - _PAGE)
            page = self._context.originals.read(self._context.key, start, stop)
            yield from (original for original in reversed(page) if original.role == "user")
            stop = start

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
