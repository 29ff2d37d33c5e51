"""The next request, computed the slow and obvious way from section 9 of the specification.

Shares nothing with the package's assembly but the records that go in and the wording of a summary's
block: own JSON, own hashes, and every possible cut tried one after the other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compaction_ledger.domain.assembly import Candidate, Options
from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.rendering import SummaryFrame, summary_block

PROJECTABLE = {"conversation-compaction@2", "conversation-compaction@3"}
NOT_PROJECTABLE = {"conversation-compaction@1": "mixed_input"}

Rejection = tuple[int, int, str, str]
Disposition = tuple[str, str | None]


@dataclass(frozen=True)
class Unit:
    """What is sent whole or not at all: a pair, or a range with its summary."""

    pairs: Sequence[Pair]
    summary: Candidate | None

    def messages(self, shape: str) -> list[Any]:
        if self.summary is None:
            pair = self.pairs[0]
            return [*user(shape, [pair.user.text]), *assistant(shape, pair.assistant.text)]
        users = user(shape, [pair.user.text for pair in self.pairs])
        return [*users, *assistant(shape, block_of(self.summary))]


@dataclass(frozen=True)
class Expected:
    """What the assembly must come to."""

    body: bytes
    mode: str
    pairs: list[Disposition]
    used: list[str]
    rejected: list[Rejection]
    replaced: list[tuple[str, int]]
    full_body: bytes
    smallest: int


def expect(
    scope: str,
    conversation: str,
    pairs: Sequence[Pair],
    candidates: Iterable[Candidate],
    options: Options,
) -> Expected | None:
    """The request that section 9 asks for, or ``None`` if not even the frame fits."""
    smallest = len(render([], options))
    chosen, rejected = choose(scope, conversation, pairs, candidates)
    units: list[Unit] = []
    while sum(len(unit.pairs) for unit in units) < len(pairs):
        place = sum(len(unit.pairs) for unit in units)
        summary = chosen.get(place)
        ten = pairs[place : place + 10]
        if summary is not None and not smaller(summary, ten, options.shape):
            rejected.append(rejection(summary, "not_smaller"))
            summary = None
        units.append(Unit(ten, summary) if summary else Unit(pairs[place : place + 1], None))
    mode, kept = "full", units
    if len(render(units, options)) > options.budget:
        mode = options.fallback
        whole = units if mode == "newest_mixed" else [Unit([pair], None) for pair in pairs]
        fitting = [
            whole[start:]
            for start in range(len(whole) + 1)
            if len(render(whole[start:], options)) <= options.budget
        ]
        if not fitting:
            return None
        kept = max(fitting, key=len)
    if smallest > options.budget:
        return None
    sent = [unit.summary for unit in kept if unit.summary]
    rejected += [
        rejection(unit.summary, "over_budget")
        for unit in units
        if unit.summary and unit.summary not in sent
    ]
    return Expected(
        body=render(kept, options),
        mode=mode,
        pairs=dispositions(kept, len(pairs)),
        used=[summary.identity for summary in sent],
        rejected=sorted(rejected),
        replaced=replacements(kept, options),
        full_body=render(units, options),
        smallest=smallest,
    )


# --- choosing -------------------------------------------------------------------------------------


def choose(
    scope: str, conversation: str, pairs: Sequence[Pair], candidates: Iterable[Candidate]
) -> tuple[dict[int, Candidate], list[Rejection]]:
    """By first pair, the newest of the candidates that hold; and the others."""
    valid: dict[int, list[Candidate]] = {}
    rejected: list[Rejection] = []
    for candidate in candidates:
        reason = invalid(scope, conversation, pairs, candidate)
        if reason is None:
            valid.setdefault(candidate.window.from_pair, []).append(candidate)
        else:
            rejected.append(rejection(candidate, reason))
    chosen: dict[int, Candidate] = {}
    for first, rivals in valid.items():
        best = max(rivals, key=lambda rival: (rival.prompt.version, rival.index))
        chosen[first] = best
        rejected += [rejection(rival, "superseded") for rival in rivals if rival is not best]
    return chosen, rejected


def invalid(
    scope: str, conversation: str, pairs: Sequence[Pair], candidate: Candidate
) -> str | None:
    prompt = str(candidate.prompt)
    if prompt not in PROJECTABLE:
        return NOT_PROJECTABLE.get(prompt, "unknown_version")
    first, last = candidate.window.from_pair, candidate.window.to_pair
    if first < 0 or first % 10 or last != first + 9 or last >= len(pairs):
        return "range_missing"
    ten = pairs[first : first + 10]
    source = {
        "v": 1,
        "scope": scope,
        "conversation": conversation,
        "from": first,
        "to": last,
        "pairs": [
            {
                "index": first + place,
                "run": pair.run,
                "user": {"id": pair.user.id, "text": pair.user.text},
                "assistant": {"id": pair.assistant.id, "text": pair.assistant.text},
            }
            for place, pair in enumerate(ten)
        ],
    }
    source_hash = digest(b"compaction-ledger/source/v1", source)
    if source_hash != candidate.source_hash:
        return "source_changed"
    model = candidate.model
    job = {
        "v": 1,
        "scope": scope,
        "conversation": conversation,
        "from": first,
        "to": last,
        "messages": [line.id for pair in ten for line in (pair.user, pair.assistant)],
        "source": source_hash,
        "model": {
            "provider": model.provider,
            "name": model.name,
            "settings": dict(model.settings),
        },
        "prompt": prompt,
    }
    if digest(b"compaction-ledger/job/v1", job) != candidate.identity:
        return "identity_mismatch"
    if candidate.text is None or not 0 <= candidate.recorded_at < 2**53:
        return "damaged"
    return None


def rejection(candidate: Candidate, reason: str) -> Rejection:
    return candidate.window.from_pair, candidate.window.to_pair, candidate.identity, reason


def smaller(summary: Candidate, ten: Sequence[Pair], shape: str) -> bool:
    """H6, in bytes as they are sent."""
    replies = [line for pair in ten for line in assistant(shape, pair.assistant.text)]
    return len(dumps(assistant(shape, block_of(summary)))) < len(dumps(replies))


def dispositions(kept: Sequence[Unit], total: int) -> list[Disposition]:
    sent: list[Disposition] = []
    for unit in kept:
        sent += [("summarized" if unit.summary else "verbatim", None)] * len(unit.pairs)
    return [("left_out", "over_budget")] * (total - len(sent)) + sent


def replacements(kept: Sequence[Unit], options: Options) -> list[tuple[str, int]]:
    texts = [("system", options.system or "")]
    for unit in kept:
        for pair in unit.pairs:
            texts.append((pair.user.id, pair.user.text))
            if unit.summary is None:
                texts.append((pair.assistant.id, pair.assistant.text))
    texts.append(("next_user", options.next_user or ""))
    counted = [(name, len(text) - len(re.sub("[\ud800-\udfff]", "", text))) for name, text in texts]
    return [(name, count) for name, count in counted if count]


# --- rendering ------------------------------------------------------------------------------------


def render(units: Sequence[Unit], options: Options) -> bytes:
    shape = options.shape
    messages = [line for unit in units for line in unit.messages(shape)]
    if options.next_user is not None:
        messages += user(shape, [options.next_user])
    request: dict[str, Any] = {"messages": messages}
    if options.system is not None:
        text = options.system
        match shape:
            case "openai-chat":
                messages.insert(0, {"role": "system", "content": text})
            case "pydantic-ai":
                part = {"part_kind": "system-prompt", "content": text}
                messages.insert(0, {"kind": "request", "parts": [part]})
            case "anthropic":
                request["system"] = text
            case "converse":
                request["system"] = [{"text": text}]
    return dumps(request)


def user(shape: str, texts: Sequence[str]) -> list[Any]:
    match shape:
        case "openai-chat":
            return [{"role": "user", "content": text} for text in texts]
        case "anthropic" if len(texts) == 1:
            return [{"role": "user", "content": texts[0]}]
        case "anthropic":
            blocks = [{"type": "text", "text": text} for text in texts]
            return [{"role": "user", "content": blocks}]
        case "converse":
            return [{"role": "user", "content": [{"text": text} for text in texts]}]
        case _:
            parts = [{"part_kind": "user-prompt", "content": text} for text in texts]
            return [{"kind": "request", "parts": parts}]


def assistant(shape: str, text: str) -> list[Any]:
    match shape:
        case "openai-chat" | "anthropic":
            return [{"role": "assistant", "content": text}]
        case "converse":
            return [{"role": "assistant", "content": [{"text": text}]}]
        case _:
            return [{"kind": "response", "parts": [{"part_kind": "text", "content": text}]}]


def block_of(summary: Candidate) -> str:
    frame = SummaryFrame(
        summary.window,
        summary.model,
        summary.prompt,
        summary.recorded_at,
        summary.origin,
        summary.made_at,
    )
    return summary_block(frame, summary.text or "")


def dumps(value: Any) -> bytes:
    """Canonical JSON as it is sent: lone surrogates replaced."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


def digest(tag: bytes, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(tag + b"\x00" + text.encode("utf-8", "surrogatepass")).hexdigest()
