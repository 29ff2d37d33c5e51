"""What the requests of a run were given, as the sealed log has it (section 0, Delivery; H8).

The log itself is read, from the first event to the last, and never the read models. Each event is checked
against its seal; one that does not hold is named, for it may be a request of this run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from compaction_ledger.domain.binding import message_ids, source_hash
from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.erasure import ErasedFact
from compaction_ledger.domain.errors import (
    DamagedLog,
    Erased,
    InvalidInput,
    UnknownConversation,
)
from compaction_ledger.domain.events import (
    DeliveredPairs,
    RangeClaimed,
    RangeCompleted,
    RequestDelivered,
    SummaryImported,
)
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.log import Recorded
from compaction_ledger.domain.ports import Log, Progress
from compaction_ledger.domain.request_digests import RequestKind, request_digests
from compaction_ledger.domain.window.events import (
    ChunkClaimed,
    ChunkCompleted,
    PinAccepted,
    WindowDelivered,
)
from compaction_ledger.domain.window.keys import message_id
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.given import (
    Delivered,
    Given,
    GivenMessages,
    GivenPin,
    GivenSummary,
    Told,
    place_of,
)
from compaction_ledger.usecases.reading import read_eligible

BATCH = 500
DELIVERIES = ("RequestDelivered", "WindowDelivered")


def delivered(
    context: Context,
    run: str,
    scope: str | None,
    conversation: str | None,
    progress: Progress | None = None,
) -> Delivered:
    """Every recorded request of a run, in one conversation or scope or in all of them."""
    log = context.log
    size = log.size()
    damaged: list[int] = []
    erased: list[int] = []
    proving = _Proving(context)
    found: list[Given] = []
    for entry in _readable(log, size, damaged, progress):
        fact = entry.fact
        if isinstance(fact, ErasedFact) and fact.event in DELIVERIES:
            erased.append(entry.index)
        if isinstance(fact, (RequestDelivered, WindowDelivered)) and _run(fact) == run:
            place = place_of(fact)
            if scope in (None, place[0]) and conversation in (None, place[1]):
                found.append(proving.given(entry, fact))
    return Delivered(run, size, found, damaged, erased)


def matching(found: Delivered, request: bytes) -> list[Given]:
    """Which of these a request was: those with its digest; none where it was none of them."""
    digests: dict[tuple[RequestKind, str], frozenset[str]] = {}
    same: list[Given] = []
    for one in found.requests:
        key = (one.kind, one.fact.shape)
        if key not in digests:
            digests[key] = frozenset(request_digests(request, *key))
        if one.fact.request_digest in digests[key]:
            same.append(one)
    return same


def _readable(
    log: Log, size: int, damaged: list[int], progress: Progress | None
) -> Iterator[Recorded]:
    for start in range(0, size, BATCH):
        wanted = range(start, min(start + BATCH, size))
        found = log.at(wanted)
        for index in wanted:
            entry = found.get(index)
            if entry is None:
                damaged.append(index)
            else:
                yield entry
        if progress:
            progress(wanted.stop, size)


def _run(fact: RequestDelivered | WindowDelivered) -> str | None:
    return fact.run if isinstance(fact, RequestDelivered) else fact.window.run


@dataclass(slots=True)
class _Sources:
    """The jobs of a stream by identity: where its summaries say what they were made of."""

    jobs: Mapping[str, RangeClaimed | SummaryImported | ChunkClaimed]


@dataclass
class _Proving:
    """Looks up what deliveries name, each stream and conversation once."""

    context: Context
    streams: dict[str, _Sources] = field(default_factory=dict[str, _Sources])
    present: dict[tuple[str, str], Sequence[Pair] | None] = field(
        default_factory=dict[tuple[str, str], Sequence[Pair] | None]
    )

    @cached_property
    def _log(self) -> Log:
        return self.context.log

    def given(self, entry: Recorded, fact: RequestDelivered | WindowDelivered) -> Given:
        if isinstance(fact, RequestDelivered):
            summaries = tuple(
                self._summary(one.from_pair, one.to_pair, one.identity, one.index)
                for one in fact.summaries
            )
            groups = tuple(self._pairs(fact, group, summaries) for group in fact.pairs)
            return Given("request", entry, fact, groups, summaries)
        chunks = tuple(
            self._summary(one.first, one.last, one.identity, one.index) for one in fact.chunks
        )
        return Given("window", entry, fact, tuple(_messages(fact)), chunks, self._pins(fact))

    def _summary(self, first: int, last: int, identity: str, index: int) -> GivenSummary:
        entry = self._log.at([index]).get(index)
        if entry is None:
            return GivenSummary(first, last, identity, index, "damaged")
        fact = entry.fact
        if isinstance(fact, ErasedFact):
            return GivenSummary(first, last, identity, index, "erased")
        if not isinstance(fact, (RangeCompleted, SummaryImported, ChunkCompleted)):
            return GivenSummary(first, last, identity, index, "other_summary")
        if fact.identity != identity:
            return GivenSummary(first, last, identity, index, "other_summary")
        claim = self._sources(entry).jobs.get(identity)
        if claim is None:
            return GivenSummary(first, last, identity, index, "damaged")
        job = claim.job
        return GivenSummary(
            first,
            last,
            identity,
            index,
            "sealed",
            fact.text,
            entry.recorded_at,
            job.model,
            job.prompt,
            job.source_hash,
            _ids(first, last) if isinstance(claim, ChunkClaimed) else claim.job.messages,
        )

    def _sources(self, entry: Recorded) -> _Sources:
        known = self.streams.get(entry.stream)
        if known is None:
            try:
                facts: Sequence[Fact] = [one.fact for one in self._log.stream(entry.stream)]
            except DamagedLog:
                facts = [entry.fact]
            known = self.streams[entry.stream] = _Sources(
                {
                    fact.identity: fact
                    for fact in facts
                    if isinstance(fact, (RangeClaimed, SummaryImported, ChunkClaimed))
                }
            )
        return known

    def _pairs(
        self, fact: RequestDelivered, group: DeliveredPairs, summaries: Sequence[GivenSummary]
    ) -> GivenMessages:
        told, messages = self._told(fact, group, summaries)
        return GivenMessages(
            group.from_pair, group.to_pair, group.disposition, group.reason, messages, told
        )

    def _told(
        self, fact: RequestDelivered, group: DeliveredPairs, summaries: Sequence[GivenSummary]
    ) -> tuple[Told, tuple[str, ...]]:
        """How the messages of a group are known, and which they are."""
        if group.disposition == "left_out":
            return "left_out", ()
        for summary in summaries:
            same = (summary.first, summary.last) == (group.from_pair, group.to_pair)
            bound = group.source_hash in (None, summary.source_hash)
            if same and bound and summary.state == "sealed":
                return "by_seal", summary.messages
        if group.source_hash is None:
            return "not_recorded", ()
        pairs = (self._present(fact) or ())[group.from_pair : group.to_pair + 1]
        if pairs and source_hash(fact.scope, fact.conversation, pairs) == group.source_hash:
            return "by_source", message_ids(pairs)
        return "changed", ()

    def _present(self, fact: RequestDelivered) -> Sequence[Pair] | None:
        place = (fact.scope, fact.conversation)
        if place not in self.present:
            try:
                self.present[place] = read_eligible(self.context, *place).pairs
            except (UnknownConversation, InvalidInput, Erased):
                self.present[place] = None
        return self.present[place]

    def _pins(self, fact: WindowDelivered) -> tuple[GivenPin, ...]:
        if not fact.pins:
            return ()
        try:
            entries = self._log.history(fact.window)
        except (DamagedLog, Erased):
            entries = ()
        known = {
            entry.fact.pin_id: (entry.index, entry.fact)
            for entry in entries
            if isinstance(entry.fact, PinAccepted)
        }
        return tuple(_pin(name, known.get(name)) for name in fact.pins)


def _pin(name: str, found: tuple[int, PinAccepted] | None) -> GivenPin:
    if found is None:
        return GivenPin(name, None, None, None)
    return GivenPin(name, message_id(found[1].message), found[1].quote, found[0])


def _messages(fact: WindowDelivered) -> Iterator[GivenMessages]:
    """A run's messages are known by their places: a run only grows (T2)."""
    for group in fact.messages:
        ids = () if group.disposition == "left_out" else _ids(group.first, group.last)
        told: Told = "left_out" if group.disposition == "left_out" else "by_seal"
        yield GivenMessages(group.first, group.last, group.disposition, group.reason, ids, told)


def _ids(first: int, last: int) -> tuple[str, ...]:
    return tuple(message_id(place) for place in range(first, last + 1))
