"""The next request of a run: read, keep, look what holds, place, plan (T3 to T11). Calls no model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compaction_ledger.domain.errors import DamagedLog, WindowTooSmall
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.messages.interface import Wire
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.placement import (
    OVER_LIMIT,
    Holding,
    Request,
    Room,
    Transcript,
    WindowManifest,
    place,
)
from compaction_ledger.domain.window.reuse import common_prefix, sent
from compaction_ledger.domain.window.window_stream import fold
from compaction_ledger.usecases.window.context import Messages, WindowContext
from compaction_ledger.usecases.window.holding import (
    Held,
    RejectedItem,
    holding_now,
    sorted_record,
    window_facts,
)
from compaction_ledger.usecases.window.planning import (
    Fate,
    NothingDue,
    Situation,
    fate_of_oldest,
    plan_job,
)
from compaction_ledger.usecases.window.reading import Turn, encode_all, read_turn
from compaction_ledger.usecases.window.recording import Recorder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send: ``messages`` in the shape of the run. The rest says what they are and what is to be
    done.

    ``due`` is the chunk that should be summarized before one of the next turns; ``nothing_due`` says why
    there is none. ``rejected``: recorded summaries and pins that do not hold now. Bytes are those of the
    messages' JSON.
    """

    key: WindowKey
    messages: list[Wire]
    manifest: WindowManifest
    due: ChunkJob | None
    nothing_due: NothingDue | None
    rejected: tuple[RejectedItem, ...]
    bytes_sent: int
    bytes_reused: int
    encoded: Sequence[bytes] = field(repr=False)

    @property
    def tokens(self) -> int:
        """The tokens of the messages, as counted."""
        return self.manifest.tokens


class Preparer:
    """Prepares one request of a run after the other."""

    def __init__(self, context: WindowContext, model: ModelIdentity) -> None:
        self._context = context
        self._model = model
        self._recorder = Recorder(context)
        self._before: Sequence[bytes] = ()
        self._searched: frozenset[str] = frozenset()  # as Situation.searched

    def keep(self, messages: Messages, beside: int = 0) -> Turn:
        """Read the run's complete list of messages, and keep what is new.

        Raises :class:`MalformedMessage`, :class:`BrokenTranscript`, :class:`HistoryChanged` (T2), kinds of
        :class:`StoreError`; and :class:`WindowTooSmall` (T6), before anything is kept: a message that can
        never be sent may be taken back.
        """
        context = self._context
        turn = read_turn(context.shape, messages, context.gauge, context.budget.externalize_over)
        self._check_last_exchange(turn.transcript, beside)
        self._recorder.record(turn)
        return turn

    def _check_last_exchange(self, transcript: Transcript, beside: int) -> None:
        """Whether instructions and the last exchange have room, with nothing else there."""
        start = transcript.boundaries[-1] if transcript.boundaries else 0
        needed = beside + sum(transcript.tokens[start:])
        needed += sum(
            transcript.tokens[place] for place in transcript.instructions if place < start
        )
        if needed > self._context.budget.limit:
            raise WindowTooSmall(needed, self._context.budget.limit, beside)

    def prepare(self, turn: Turn, beside: int = 0) -> Prepared:
        """The request of a turn that is kept. ``beside``: tokens that stand apart from the messages.

        Raises :class:`WindowTooSmall` (T6), kinds of :class:`StoreError`.
        """
        request, held, due = self._look(turn, beside)
        reused = common_prefix(self._before, request.encoded)
        self._before = request.encoded
        return Prepared(
            key=self._context.key,
            messages=request.messages,
            manifest=request.manifest,
            due=due if isinstance(due, ChunkJob) else None,
            nothing_due=None if isinstance(due, ChunkJob) else due,
            rejected=held.rejected,
            bytes_sent=sent(request.encoded),
            bytes_reused=reused,
            encoded=request.encoded,
        )

    def plan(self, turn: Turn, beside: int = 0) -> ChunkJob | NothingDue:
        """What is due of a turn now, after something was summarized. Raises as :meth:`prepare`."""
        return self._look(turn, beside)[2]

    def _look(self, turn: Turn, beside: int) -> tuple[Request, Held, ChunkJob | NothingDue]:
        context = self._context
        digests = self._recorder.digests
        try:
            entries = context.log.history(context.key)
            facts = window_facts(entries)
        except DamagedLog as error:  # then there are the originals (H9), and it is said why
            logger.warning("the log of %s cannot be read: %s", context.key, error)
            held = Held(Holding(), (RejectedItem("", error.code),))
            request = self._place(turn.transcript, held, beside, "stand")
            return request, held, "rejected"
        record, state = sorted_record(entries), fold(facts)
        held = holding_now(
            context, record, [chunk.identity for chunk in state.chunks], turn.messages, digests
        )
        situation = Situation(
            turn,
            record,
            state,
            held.holding.chunks,
            digests,
            0,
            context.log.now(),
            beside,
            self._searched,
        )
        fate = fate_of_oldest(context, self._model, situation)
        if fate == "search":
            self._searched |= {held.holding.chunks[0].identity}
        request = self._place(turn.transcript, held, beside, fate)
        tokens = request.manifest.tokens + _left_out(request, turn.transcript) + beside
        situation = replace(situation, tokens=tokens, searched=self._searched)
        return request, held, plan_job(context, self._model, situation)

    def _place(self, transcript: Transcript, held: Held, beside: int, fate: Fate) -> Request:
        budget, gauge = self._context.budget, self._context.gauge
        room = Room(budget.limit, beside, None if fate == "regroup" else budget.summaries)
        return place(transcript, held.holding, room, encode_all, gauge.count, gauge.uncorrected)


def _left_out(request: Request, transcript: Transcript) -> int:
    """The tokens of the turns that are over the limit: they count, or nothing would ever be due for them."""
    return sum(
        sum(transcript.tokens[group.first : group.last + 1])
        for group in request.manifest.messages
        if group.reason == OVER_LIMIT
    )
