"""Assembling the next request (section 9): segments in conversation order, and the manifest.

Pure: it is given the pairs as they are now and the stored summaries as candidates, and believes none of
them (H2). Whatever is missing, late or damaged degrades to the originals (H9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from compaction_ledger.domain.binding import pairs_of
from compaction_ledger.domain.canonical import MAX_INTEGER, tagged_sha256
from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.eligibility import Eligibility
from compaction_ledger.domain.errors import BudgetTooSmall, InvalidJob, InvalidSetting
from compaction_ledger.domain.identifiers import replace_surrogates
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion, job_for
from compaction_ledger.domain.manifest import (
    Manifest,
    Mode,
    PairGroup,
    RejectedSummary,
    RejectionReason,
    UsedSummary,
)
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.rendering import Shape, SummaryFrame, shape_named, summary_block
from compaction_ledger.domain.windows import Range

REQUEST_TAG = b"compaction-ledger/request/v1"

Fallback = Literal["newest_originals", "newest_mixed"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored summary as read back: its row's claims, and the text from the log (``None`` if damaged)."""

    window: Range
    identity: str
    model: ModelIdentity
    prompt: PromptVersion
    source_hash: str
    index: int
    recorded_at: int
    text: str | None
    origin: str | None = None
    made_at: int | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller wants. ``budget`` is in bytes (H3); ``fallback`` says what to do beyond it (H4, H5).

    ``system`` and ``next_user`` are sent whole: a budget below them is :class:`BudgetTooSmall`.
    """

    budget: int
    shape: str = "openai-chat"
    fallback: Fallback = "newest_originals"
    system: str | None = None
    next_user: str | None = None


@dataclass(frozen=True)
class Assembly:
    """A rendered request. ``body`` is its JSON: ``messages``, and ``system`` where that stands apart.

    ``pairs`` are those of the conversation that it was made of, sent or not.
    """

    body: bytes
    manifest: Manifest
    pairs: Sequence[Pair] = field(default=(), repr=False)

    @cached_property
    def _parsed(self) -> dict[str, Any]:
        parsed: dict[str, Any] = from_json(self.body)
        return parsed

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, in the shape asked for."""
        messages: list[dict[str, Any]] = self._parsed["messages"]
        return messages

    @property
    def system(self) -> Any:
        """The system prompt where the shape keeps it apart from the messages, else ``None``."""
        return self._parsed.get("system")


@dataclass(frozen=True, slots=True)
class _Segment:
    """A run of pairs rendered alike: its JSON without the list's brackets."""

    from_pair: int
    to_pair: int
    fragment: bytes
    summary: Candidate | None = None


def assemble(
    scope: str,
    conversation: str,
    eligibility: Eligibility,
    candidates: Iterable[Candidate],
    registry: PromptRegistry,
    options: Options,
    unreadable: Sequence[RejectedSummary] = (),
) -> Assembly:
    """The next request under ``options.budget``, with its manifest. Raises :class:`InvalidInput` kinds.

    ``unreadable`` are summaries that cannot even be candidates; the manifest tells of them as well (H8).
    """
    if options.fallback not in ("newest_originals", "newest_mixed"):
        raise InvalidSetting(f"{options.fallback!r} is no fallback", place="fallback")
    pairs = eligibility.pairs
    chosen, rejected = _choose(scope, conversation, pairs, candidates, registry)
    render = _Renderer(shape_named(options.shape))
    segments = _full_candidate(pairs, chosen, render, rejected)
    frame = _Frame(render, options)
    mode: Mode = "full"
    room = frame.room(options.budget)
    kept = segments
    if _size(segments) > room:
        mode = options.fallback
        newest = (
            reversed(segments) if mode == "newest_mixed" else map(render.verbatim, reversed(pairs))
        )
        kept = _newest_that_fit(newest, room)
        rejected += _over_budget(segments, kept)
    body = frame.body(kept)
    manifest = Manifest(
        scope=scope,
        conversation=conversation,
        shape=options.shape,
        mode=mode,
        groups=_groups(kept, len(pairs)),
        summaries=tuple(_used(s.summary) for s in kept if s.summary is not None),
        rejected=(*unreadable, *rejected),
        lines_left_out=tuple(eligibility.left_out),
        replaced=tuple(_replaced(kept, pairs, options)) if render.replaces else (),
        bytes_used=len(body),
        bytes_allowed=options.budget,
        request_digest=tagged_sha256(REQUEST_TAG, options.shape.encode() + b"\x00" + body),
    )
    return Assembly(body, manifest, pairs)


# --- choosing summaries (H2, V3) --------------------------------------------------------------------


def _choose(
    scope: str,
    conversation: str,
    pairs: Sequence[Pair],
    candidates: Iterable[Candidate],
    registry: PromptRegistry,
) -> tuple[dict[int, Candidate], list[RejectedSummary]]:
    """The one summary per range that may stand for its replies now, and every other with its reason."""
    chosen: dict[int, Candidate] = {}
    rejected: list[RejectedSummary] = []
    sources: dict[Range, Job] = {}
    for candidate in sorted(candidates, key=lambda candidate: _preference(candidate, registry)):
        reason = _rejection(scope, conversation, pairs, candidate, registry, sources)
        if reason is None and candidate.window.from_pair in chosen:
            reason = "superseded"
        if reason is None:
            chosen[candidate.window.from_pair] = candidate
        else:
            rejected.append(_rejected(candidate, reason))
    return chosen, rejected


def _preference(candidate: Candidate, registry: PromptRegistry) -> tuple[int, int, int]:
    """Oldest range first; within it the newest prompt version, then the latest completion (V3)."""
    return (candidate.window.from_pair, -registry.rank(candidate.prompt), -candidate.index)


def _rejection(
    scope: str,
    conversation: str,
    pairs: Sequence[Pair],
    candidate: Candidate,
    registry: PromptRegistry,
    sources: dict[Range, Job],
) -> RejectionReason | None:
    verdict = registry.verdict(candidate.prompt)
    if verdict != "projectable":
        return verdict
    job = sources.get(candidate.window)
    if job is None:
        try:
            source = pairs_of(pairs, candidate.window)
        except InvalidJob:
            return "range_missing"
        job = sources[candidate.window] = job_for(
            scope, conversation, source, candidate.model, candidate.prompt
        )
    if job.source_hash != candidate.source_hash:
        return "source_changed"
    if (job.model, job.prompt) != (candidate.model, candidate.prompt):
        job = job_for(
            scope,
            conversation,
            pairs_of(pairs, candidate.window),
            candidate.model,
            candidate.prompt,
        )
    if job.identity != candidate.identity:
        return "identity_mismatch"
    times = (candidate.recorded_at, candidate.made_at or 0)
    readable = candidate.text is not None and all(0 <= time <= MAX_INTEGER for time in times)
    return None if readable else "damaged"


def _rejected(candidate: Candidate, reason: RejectionReason) -> RejectedSummary:
    return RejectedSummary(
        candidate.window.from_pair, candidate.window.to_pair, candidate.identity, reason
    )


def _used(candidate: Candidate) -> UsedSummary:
    return UsedSummary(
        candidate.window.from_pair,
        candidate.window.to_pair,
        candidate.identity,
        candidate.index,
        candidate.model,
        candidate.prompt,
        candidate.recorded_at,
        candidate.origin,
        candidate.made_at,
    )


# --- rendering segments (H1, H6) --------------------------------------------------------------------


class _Renderer:
    """Renders segments in one shape, and remembers whether anything had to be replaced (E6)."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.replaces = False

    def verbatim(self, pair: Pair) -> _Segment:
        shape = self.shape
        fragment = self.fragment(
            [*shape.user([pair.user.text]), *shape.assistant(pair.assistant.text)]
        )
        return _Segment(pair.index, pair.index, fragment)

    def summarized(self, pairs: Sequence[Pair], summary: Candidate, text: str) -> _Segment | None:
        """The ten user messages verbatim and the summary; ``None`` if it saves nothing (H6)."""
        frame = SummaryFrame(
            summary.window,
            summary.model,
            summary.prompt,
            summary.recorded_at,
            summary.origin,
            summary.made_at,
        )
        block = self.fragment(self.shape.assistant(summary_block(frame, text)))
        if len(block) >= self._replies_size(pairs, len(block)):
            return None
        users = self.fragment(self.shape.user([pair.user.text for pair in pairs]))
        return _Segment(pairs[0].index, pairs[-1].index, users + b"," + block, summary)

    def fragment(self, messages: list[dict[str, Any]]) -> bytes:
        """The JSON of ``messages`` without the list's brackets."""
        try:
            return to_json(messages)[1:-1]
        except PydanticSerializationError:
            self.replaces = True
            return to_json(_sendable(messages))[1:-1]

    def _replies_size(self, pairs: Sequence[Pair], enough: int) -> int:
        """The rendered size of the replies, or any lower bound of it that is above ``enough``."""
        characters = sum([len(pair.assistant.text) for pair in pairs])
        if characters > enough:
            return characters
        replies = [
            message for pair in pairs for message in self.shape.assistant(pair.assistant.text)
        ]
        return len(self.fragment(replies))


def _full_candidate(
    pairs: Sequence[Pair],
    chosen: Mapping[int, Candidate],
    render: _Renderer,
    rejected: list[RejectedSummary],
) -> list[_Segment]:
    """H1: summarized ranges where there is a valid summary, the originals for everything else."""
    segments: list[_Segment] = []
    index = 0
    while index < len(pairs):
        summary = chosen.get(index)
        if summary is not None and summary.text is not None:
            source = pairs_of(pairs, summary.window)
            segment = render.summarized(source, summary, summary.text)
            if segment is not None:
                segments.append(segment)
                index = summary.window.to_pair + 1
                continue
            rejected.append(_rejected(summary, "not_smaller"))
        segments.append(render.verbatim(pairs[index]))
        index += 1
    return segments


def _replaced(
    kept: Sequence[_Segment], pairs: Sequence[Pair], options: Options
) -> Iterator[tuple[str, int]]:
    """Message ids, or ``system`` and ``next_user``, with the number of lone surrogates replaced in them."""
    sent = [("system", options.system or "")]
    for segment in kept:
        for pair in pairs[segment.from_pair : segment.to_pair + 1]:
            sent.append((pair.user.id, pair.user.text))
            if segment.summary is None:
                sent.append((pair.assistant.id, pair.assistant.text))
    sent.append(("next_user", options.next_user or ""))
    for name, text in sent:
        count = replace_surrogates(text)[1]
        if count:
            yield name, count


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)[0]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _sendable(item) for key, item in members.items()}
    return [_sendable(item) for item in value]


# --- the budget (H3, H4, H5) ------------------------------------------------------------------------


class _Frame:
    """What stands around the segments: system prompt, next user message, brackets."""

    def __init__(self, render: _Renderer, options: Options) -> None:
        shape = render.shape
        first: list[bytes] = []
        self._end = b"]}"
        if options.system is not None:
            system = render.fragment([shape.system(options.system)])
            if shape.system_apart:
                self._end = b'],"system":' + system + b"}"
            else:
                first.append(system)
        self._first = first
        self._last = (
            [] if options.next_user is None else [render.fragment(shape.user([options.next_user]))]
        )

    def body(self, segments: Sequence[_Segment]) -> bytes:
        middle = [segment.fragment for segment in segments]
        return b'{"messages":[' + b",".join(self._first + middle + self._last) + self._end

    def room(self, budget: int) -> int:
        """The bytes that are left for segments, each with one comma. Raises :class:`BudgetTooSmall`."""
        needed = len(self.body([]))
        if needed > budget:
            raise BudgetTooSmall(needed, budget)
        spare_comma = 0 if self._first or self._last else 1
        return budget - needed + spare_comma


def _size(segments: Iterable[_Segment]) -> int:
    return sum(len(segment.fragment) + 1 for segment in segments)


def _newest_that_fit(newest_first: Iterable[_Segment], room: int) -> list[_Segment]:
    """The longest run of newest segments within ``room`` bytes: whole ones only, without gaps."""
    kept: list[_Segment] = []
    for segment in newest_first:
        room -= len(segment.fragment) + 1
        if room < 0:
            break
        kept.append(segment)
    kept.reverse()
    return kept


def _over_budget(segments: Sequence[_Segment], kept: Sequence[_Segment]) -> list[RejectedSummary]:
    """The valid summaries of the full candidate that do not stand among the kept segments (H8)."""
    sent = {segment.from_pair for segment in kept if segment.summary is not None}
    return [
        _rejected(segment.summary, "over_budget")
        for segment in segments
        if segment.summary is not None and segment.from_pair not in sent
    ]


def _groups(kept: Sequence[_Segment], pairs: int) -> tuple[PairGroup, ...]:
    """H8, compactly: consecutive pairs with one disposition."""
    first = kept[0].from_pair if kept else pairs
    groups = [PairGroup(0, first - 1, "left_out", "over_budget")] if first else []
    for segment in kept:
        disposition: Literal["verbatim", "summarized"] = (
            "verbatim" if segment.summary is None else "summarized"
        )
        last = groups[-1] if groups else None
        if disposition == "verbatim" and last is not None and last.disposition == "verbatim":
            groups[-1] = PairGroup(last.from_pair, segment.to_pair, "verbatim")
        else:
            groups.append(PairGroup(segment.from_pair, segment.to_pair, disposition))
    return tuple(groups)
