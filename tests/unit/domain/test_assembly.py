"""H1 to H9: the next request against a naive reference, and each promise by itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import naive_assembly
import pytest
import rfc8785
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import from_json, to_json
from scenarios import (
    CONVERSATION,
    CURRENT,
    MIXED,
    MODEL,
    NOW,
    OTHER_MODEL,
    SCOPE,
    SECOND,
    make_pair,
    make_pairs,
    with_text,
)

from compaction_ledger.domain.assembly import Assembly, Candidate, Options, assemble
from compaction_ledger.domain.canonical import tagged_sha256
from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.eligibility import Eligibility, LeftOut
from compaction_ledger.domain.errors import BudgetTooSmall, InvalidInput, InvalidSetting
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion, job_for
from compaction_ledger.domain.manifest import Disposition, PairGroup, RejectionReason, UsedSummary
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY, PromptRegistry, PromptSpec
from compaction_ledger.domain.rendering import SHAPES, SummaryFrame, summary_block
from compaction_ledger.domain.windows import Range

AMPLE = 10_000_000
LONG = "The fund's net asset value was 12.34 on the third of May. " * 4
SHAPE_NAMES = sorted(SHAPES)
UNKNOWN = PromptVersion(CURRENT.name, 9)


def candidate(
    pairs: Sequence[Pair],
    first: int = 0,
    *,
    text: str | None = "In short: 12.34.",
    model: ModelIdentity = MODEL,
    prompt: PromptVersion = CURRENT,
    index: int = 7,
) -> Candidate:
    """A summary of ten of these pairs as the ledger would hand it out."""
    job = job_for(SCOPE, CONVERSATION, pairs[first : first + 10], model, prompt)
    window = Range.at(first)
    return Candidate(window, job.identity, model, prompt, job.source_hash, index, NOW, text)


def assembled(
    pairs: Sequence[Pair],
    candidates: Sequence[Candidate] = (),
    *,
    left_out: Sequence[LeftOut] = (),
    registry: PromptRegistry = DEFAULT_REGISTRY,
    **options: Any,
) -> Assembly:
    """The next request for these pairs."""
    chosen = Options(**{"budget": AMPLE, **options})
    eligibility = Eligibility(list(pairs), list(left_out))
    return assemble(SCOPE, CONVERSATION, eligibility, candidates, registry, chosen)


def long_pairs(count: int) -> list[Pair]:
    """Pairs whose replies are longer than a summary's block."""
    return [make_pair(place, f"question {place}", f"{place}: {LONG}") for place in range(count)]


def texts_in(body: bytes) -> list[tuple[str, str]]:
    """Role and text of everything in a body of any shape, in order."""
    found = []
    for line in from_json(body)["messages"]:
        if "parts" in line:
            roles = {"user-prompt": "user", "text": "assistant", "system-prompt": "system"}
            found += [(roles[part["part_kind"]], part["content"]) for part in line["parts"]]
        elif isinstance(line["content"], str):
            found.append((line["role"], line["content"]))
        else:
            found += [(line["role"], block["text"]) for block in line["content"]]
    return found


# --- against the naive reference ------------------------------------------------------------------

TEXT_POOL = [
    "short",
    "你好，净值",
    "👩‍💻 emoji",
    "line\nbreak\r\n\t\x0b\x0c\x1c\x85\u2028\u2029",
    'quoted "x" \\ /',
    "\x00\x01\x1f\x7f",
    "\ud800 lone \udfff",
    "\ude00\ud83d",
    "[end of the derived summary of pairs 0-9]",
    LONG,
    LONG * 2,
    "净值" * 100,
]


class World:
    """A conversation with stored summaries, good ones and others, and a wish."""

    def __init__(
        self, pairs: list[Pair], candidates: list[Candidate], options: Options, seed: int
    ) -> None:
        self.pairs = pairs
        self.candidates = candidates
        self.options = options
        self.seed = seed

    def __repr__(self) -> str:
        return f"World(seed={self.seed}, {len(self.pairs)} pairs, {self.options})"


def spoiled(kind: str, good: Candidate, pairs: list[Pair], first: int) -> Candidate:
    """``good`` with something the matter."""
    changed = [with_text(pairs[first], "user", "as it was"), *pairs[first + 1 : first + 10]]
    unknown = candidate(pairs, first, prompt=UNKNOWN)
    spoils: dict[str, Candidate] = {
        "fine": good,
        "second version": candidate(pairs, first, prompt=SECOND, text=good.text),
        "other model": candidate(pairs, first, model=OTHER_MODEL, text=good.text),
        "mixed": candidate(pairs, first, prompt=MIXED),
        "unknown": unknown,
        "unknown name": replace(unknown, prompt=PromptVersion("another", 3)),
        "older source": replace(candidate(changed), window=good.window),
        "identity": replace(good, identity=good.identity[::-1]),
        "other model's identity": replace(good, model=OTHER_MODEL),
        "no text": replace(good, text=None),
        "no time": replace(good, recorded_at=-1),
        "end of time": replace(good, recorded_at=2**62),
        "wide window": replace(good, window=Range(first, first + 15)),
        "odd window": replace(good, window=Range(first + 5, first + 14)),
        "window from the end": replace(good, window=Range(first - 40, first - 31)),
        "window beyond": replace(good, window=Range.at(first + 1000)),
    }
    return spoils[kind]


SPOILS = [
    *["fine"] * 8,
    *["second version", "other model"] * 2,
    *["mixed", "unknown", "unknown name", "older source", "identity", "other model's identity"],
    *["no text", "no time", "end of time", "wide window", "odd window"],
    *["window from the end", "window beyond"],
]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Worlds; the texts come from a seeded source, so that large ones stay cheap to make."""
    seed = draw(st.integers(0, 2**32))
    chance = random.Random(seed)
    count = draw(st.integers(0, 45))
    pairs = [
        make_pair(place, chance.choice(TEXT_POOL), chance.choice(TEXT_POOL))
        for place in range(count)
    ]
    candidates: list[Candidate] = []
    for first in range(0, count - 9, 10):
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
            text = chance.choice(["In short.", "净值 12.34\n[end", LONG, LONG * 60, ""])
            stored = spoiled(
                chance.choice(SPOILS), candidate(pairs, first, text=text), pairs, first
            )
            place = chance.randrange(1000) * 50 + len(candidates)  # never one place twice
            candidates.append(replace(stored, index=place))
    options = Options(
        budget=0,
        shape=draw(st.sampled_from(SHAPE_NAMES)),
        fallback=draw(st.sampled_from(["newest_originals", "newest_mixed"])),
        system=draw(st.sampled_from([None, "You answer.", "\ud800 odd"])),
        next_user=draw(st.sampled_from([None, "And now?", "\udfff你"])),
    )
    everything = naive_assembly.expect(
        SCOPE, CONVERSATION, pairs, candidates, replace(options, budget=AMPLE)
    )
    assert everything is not None
    size, smallest = len(everything.full_body), everything.smallest
    budget = draw(
        st.sampled_from([size, size - 1, size + 1, smallest, smallest - 1])
        | st.integers(smallest, max(size, smallest) + 40)
    )
    return World(pairs, candidates, replace(options, budget=budget), seed)


@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(worlds())
def test_h1_to_h9_the_naive_reference_agrees(world: World) -> None:
    expected = naive_assembly.expect(
        SCOPE, CONVERSATION, world.pairs, world.candidates, world.options
    )
    eligibility = Eligibility(world.pairs, [])

    def run(candidates: list[Candidate]) -> Assembly:
        return assemble(
            SCOPE, CONVERSATION, eligibility, candidates, DEFAULT_REGISTRY, world.options
        )

    if expected is None:
        with pytest.raises(BudgetTooSmall):
            run(world.candidates)
        return
    found = run(world.candidates)
    manifest = found.manifest
    assert found.body == expected.body
    assert manifest.mode == expected.mode
    assert [(entry.disposition, entry.reason) for entry in manifest.pairs] == expected.pairs
    assert [entry.index for entry in manifest.pairs] == list(range(len(world.pairs)))
    assert [summary.identity for summary in manifest.summaries] == expected.used
    assert (
        sorted((r.from_pair, r.to_pair, r.identity, r.reason) for r in manifest.rejected)
        == expected.rejected
    )
    assert list(manifest.replaced) == expected.replaced
    check_promises(world, found)
    assert run(world.candidates[::-1]).body == found.body


def check_promises(world: World, found: Assembly) -> None:
    """What must hold of every request, whatever the reference thinks."""
    manifest, options = found.manifest, world.options
    assert manifest.bytes_used == len(found.body) <= options.budget == manifest.bytes_allowed
    assert found.messages == from_json(found.body)["messages"]
    assert found.body == rfc8785.dumps(from_json(found.body))
    assert manifest.request_digest == tagged_sha256(
        b"compaction-ledger/request/v1", options.shape.encode() + b"\x00" + found.body
    )
    check_users(world, found)
    listed = Counter(
        [s.identity for s in manifest.summaries] + [r.identity for r in manifest.rejected]
    )
    assert listed == Counter(c.identity for c in world.candidates)
    dispositions = Counter(entry.disposition for entry in manifest.pairs)
    for kind in get_args(Disposition):
        assert manifest.count(kind) == dispositions[kind]
    groups = manifest.groups
    assert all(a.to_pair + 1 == b.from_pair for a, b in pairwise(groups))


def check_users(world: World, found: Assembly) -> None:
    """Users' texts are verbatim and in order, and nothing else is a user's."""
    sendable = {
        entry.index: world.pairs[entry.index].user.text
        for entry in found.manifest.pairs
        if entry.disposition != "left_out"
    }
    last = [] if world.options.next_user is None else [world.options.next_user]
    users = [text for role, text in texts_in(found.body) if role == "user"]
    assert users == [clean(text) for text in [*sendable.values(), *last]]


def clean(text: str) -> str:
    """As it can be sent."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


# --- H1 to H6, one by one -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_h1_all_ten_user_messages_and_the_summary_of_the_replies(shape: str) -> None:
    pairs = long_pairs(12)
    found = assembled(pairs, [candidate(pairs)], shape=shape)
    texts = texts_in(found.body)
    assert texts[:10] == [("user", f"question {place}") for place in range(10)]
    role, block = texts[10]
    assert role == "assistant"
    assert "| In short: 12.34." in block
    assert texts[11:] == [
        (line.role, line.text) for pair in pairs[10:] for line in (pair.user, pair.assistant)
    ]
    assert found.manifest.groups == (
        PairGroup(0, 9, "summarized"),
        PairGroup(10, 11, "verbatim"),
    )
    assert LONG not in block


def test_h1_without_a_summary_everything_is_original() -> None:
    pairs = make_pairs(35)
    found = assembled(pairs)
    assert [text for _, text in texts_in(found.body)] == [
        line.text for pair in pairs for line in (pair.user, pair.assistant)
    ]
    assert found.manifest.groups == (PairGroup(0, 34, "verbatim"),)


def test_h3_the_budget_counts_bytes() -> None:
    pairs = [make_pair(0, "你好", "👍")]
    asked, replied = '{"content":"你好","role":"user"}', '{"content":"👍","role":"assistant"}'
    exact = len(f'{{"messages":[{asked},{replied}]}}'.encode())
    assert assembled(pairs, budget=exact).manifest.bytes_used == exact
    short = assembled(pairs, budget=exact - 1)
    assert short.body == b'{"messages":[]}'
    assert short.manifest.mode == "newest_originals"


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_h4_the_full_candidate_is_sent_exactly_if_it_fits(shape: str) -> None:
    pairs = long_pairs(31)
    summaries = [candidate(pairs, 0), candidate(pairs, 10)]
    size = assembled(pairs, summaries, shape=shape).manifest.bytes_used
    fits = assembled(pairs, summaries, shape=shape, budget=size)
    assert (fits.manifest.mode, fits.manifest.bytes_used) == ("full", size)
    beyond = assembled(pairs, summaries, shape=shape, budget=size - 1)
    assert beyond.manifest.mode == "newest_originals"
    assert beyond.manifest.summaries == ()


def test_case_c_what_was_not_seen_is_said_pair_by_pair() -> None:
    pairs = long_pairs(31)
    summary = candidate(pairs)
    size = assembled(pairs, [summary]).manifest.bytes_used
    found = assembled(pairs, [summary], budget=size // 2)
    entries = found.manifest.pairs
    left = [entry.index for entry in entries if entry.disposition == "left_out"]
    assert left == list(range(len(left)))
    assert 0 < len(left) < 31
    assert {entry.reason for entry in entries[: len(left)]} == {"over_budget"}
    assert [(r.identity, r.reason) for r in found.manifest.rejected] == [
        (summary.identity, "over_budget")
    ]


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_h4_as_many_pairs_are_kept_as_fit_to_the_byte(shape: str) -> None:
    pairs = long_pairs(6)
    frames: list[dict[str, Any]] = [{}, {"system": "You answer.", "next_user": "And now?"}]
    for around in frames:
        for kept in range(1, 6):
            exact = len(assembled(pairs[-kept:], shape=shape, **around).body)
            for budget, expected in ((exact, kept), (exact - 1, kept - 1)):
                found = assembled(pairs, shape=shape, budget=budget, **around)
                assert found.manifest.count("verbatim") == expected
                assert found.manifest.bytes_used <= budget


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_h5_as_much_of_the_mixed_history_is_kept_as_fits_to_the_byte(shape: str) -> None:
    pairs = long_pairs(31)
    summaries = [candidate(pairs, 0), candidate(pairs, 10)]
    whole = assembled(pairs, summaries, shape=shape, budget=AMPLE)
    without_first = whole.manifest.bytes_used - len(
        assembled(pairs[:10], summaries[:1], shape=shape).body
    )
    exact = without_first + len(assembled([], shape=shape).body) - 1  # one comma less
    for budget, left_out in ((exact, 10), (exact - 1, 20)):
        found = assembled(pairs, summaries, shape=shape, budget=budget, fallback="newest_mixed")
        assert found.manifest.count("left_out") == left_out


def test_h5_the_newest_mixed_history_reaches_further_back() -> None:
    pairs = long_pairs(31)
    summaries = [candidate(pairs, 0), candidate(pairs, 10)]
    size = assembled(pairs, summaries).manifest.bytes_used
    mixed = assembled(pairs, summaries, budget=size - 1, fallback="newest_mixed").manifest
    assert mixed.mode == "newest_mixed"
    assert mixed.groups == (
        PairGroup(0, 9, "left_out", "over_budget"),
        PairGroup(10, 19, "summarized"),
        PairGroup(20, 30, "verbatim"),
    )
    assert [(r.from_pair, r.reason) for r in mixed.rejected] == [(0, "over_budget")]
    originals = assembled(pairs, summaries, budget=size - 1).manifest
    assert originals.count("left_out") > mixed.count("left_out")


def test_h5_is_off_unless_it_is_asked_for_by_name() -> None:
    assert Options(1).fallback == "newest_originals"
    with pytest.raises(InvalidSetting):
        assembled([], fallback="oldest")


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_h6_a_summary_is_used_only_if_it_is_smaller(shape: str) -> None:
    pairs = long_pairs(10)
    low, high = 1, len(LONG) * 20
    while high - low > 1:  # the longest text that is still used
        middle = (low + high) // 2
        found = assembled(pairs, [candidate(pairs, text="x" * middle)], shape=shape)
        low, high = (middle, high) if found.manifest.summaries else (low, middle)
    originals = assembled(pairs, shape=shape)
    smaller = assembled(pairs, [candidate(pairs, text="x" * low)], shape=shape)
    larger = assembled(pairs, [candidate(pairs, text="x" * high)], shape=shape)
    assert smaller.manifest.bytes_used < originals.manifest.bytes_used
    assert larger.body == originals.body
    assert [r.reason for r in larger.manifest.rejected] == ["not_smaller"]
    assert low > 1000


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_h6_the_bytes_are_compared_also_where_the_replies_have_as_many_characters(
    shape: str,
) -> None:
    pairs = [make_pair(place, "asked", "short") for place in range(10)]
    frame = SummaryFrame(Range(0, 9), MODEL, CURRENT, NOW)
    block = len(to_json(SHAPES[shape].assistant(summary_block(frame, LONG * 9)))) - 2
    pairs[0] = with_text(pairs[0], "assistant", "x" * (block - 9 * len("short")))
    assert sum(len(pair.assistant.text) for pair in pairs) == block
    found = assembled(pairs, [candidate(pairs, text=LONG * 9)], shape=shape)
    assert found.manifest.groups == (PairGroup(0, 9, "summarized"),)


# --- H2, V2, V3, H9: what is not believed ---------------------------------------------------------


def reason_of(pairs: Sequence[Pair], *candidates: Candidate, **options: Any) -> list[str]:
    """The reasons for which candidates are rejected; what is sent are the originals."""
    found = assembled(pairs, candidates, **options)
    assert found.body == assembled(pairs).body
    return [rejected.reason for rejected in found.manifest.rejected]


def test_h2_every_check_has_its_reason() -> None:
    pairs = long_pairs(12)
    good = candidate(pairs)
    edited = [*pairs[:3], with_text(pairs[3], "assistant", "edited"), *pairs[4:]]
    withdrawn = PromptRegistry(
        [
            PromptSpec(SECOND, "assistant_only", "plain_text", projectable=False),
            PromptSpec(CURRENT, "assistant_only", "plain_text", True, "Condense."),
        ],
        CURRENT,
    )
    assert reason_of(edited, good) == ["source_changed"]
    assert reason_of(pairs, replace(good, source_hash="0" * 64)) == ["source_changed"]
    assert reason_of(pairs, replace(good, identity="0" * 64)) == ["identity_mismatch"]
    assert reason_of(pairs, replace(good, prompt=SECOND)) == ["identity_mismatch"]
    assert reason_of(pairs, candidate(pairs, prompt=MIXED)) == ["mixed_input"]
    assert reason_of(pairs, candidate(pairs, prompt=UNKNOWN)) == ["unknown_version"]
    assert reason_of(pairs, candidate(pairs, prompt=SECOND), registry=withdrawn) == [
        "not_projectable"
    ]
    assert reason_of(pairs, replace(good, text=None)) == ["damaged"]
    assert reason_of(pairs, replace(good, recorded_at=2**80)) == ["damaged"]
    for edge in (0, 2**53 - 1):
        at_edge = assembled(pairs, [replace(good, recorded_at=edge)])
        assert at_edge.manifest.rejected == ()
    assert reason_of(pairs[:9], good) == ["range_missing"]
    assert reason_of(pairs, replace(good, window=Range(-10, -1))) == ["range_missing"]
    assert reason_of(pairs, candidate(pairs, text=LONG * 20)) == ["not_smaller"]


def test_h8_every_reason_is_reached_by_some_test_above() -> None:
    assert set(get_args(RejectionReason)) == {
        "source_changed",
        "identity_mismatch",
        "mixed_input",
        "unknown_version",
        "not_projectable",
        "damaged",
        "range_missing",
        "not_smaller",
        "superseded",
        "over_budget",
    }


def test_h9_a_damaged_window_from_the_end_is_listed_and_not_lost() -> None:
    pairs = long_pairs(30)
    damaged = replace(candidate(pairs, 10), window=Range(-20, -11))
    assert reason_of(pairs, damaged) == ["range_missing"]


@pytest.mark.parametrize("scope", [("tenant-2", CONVERSATION), (SCOPE, "c-2")])
def test_h2_another_scopes_summary_never_fits(scope: tuple[str, str]) -> None:
    pairs = long_pairs(10)
    job = job_for(*scope, pairs, MODEL, CURRENT)
    foreign = replace(candidate(pairs), identity=job.identity, source_hash=job.source_hash)
    assert reason_of(pairs, foreign) == ["source_changed"]


def test_v3_the_newest_prompt_version_then_the_latest_completion() -> None:
    pairs = long_pairs(10)
    older_version = candidate(pairs, prompt=SECOND, index=99, text="older version")
    first = candidate(pairs, index=3, text="first")
    latest = candidate(pairs, model=OTHER_MODEL, index=5, text="latest")
    for order in ([older_version, first, latest], [latest, first, older_version]):
        found = assembled(pairs, order)
        assert [summary.index for summary in found.manifest.summaries] == [5]
        assert {(r.identity, r.reason) for r in found.manifest.rejected} == {
            (older_version.identity, "superseded"),
            (first.identity, "superseded"),
        }
        assert "| latest" in texts_in(found.body)[10][1]


def test_h9_a_damaged_newest_summary_gives_way_to_the_next() -> None:
    pairs = long_pairs(10)
    older = candidate(pairs, prompt=SECOND, index=1)
    found = assembled(pairs, [replace(candidate(pairs, index=2), text=None), older])
    assert [summary.identity for summary in found.manifest.summaries] == [older.identity]


def test_case_b_an_edit_serves_originals_and_says_why() -> None:
    pairs = long_pairs(31)
    summary = candidate(pairs)
    edited = [*pairs[:3], with_text(pairs[3], "user", "I meant twelve years."), *pairs[4:]]
    found = assembled(edited, [summary])
    assert found.body == assembled(edited).body
    assert [(r.from_pair, r.to_pair, r.reason) for r in found.manifest.rejected] == [
        (0, 9, "source_changed")
    ]


# --- the frame of a request -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_h3_what_must_be_sent_is_never_cut(shape: str) -> None:
    options: dict[str, Any] = {"shape": shape, "system": "You answer.", "next_user": "And now?"}
    needed = len(assembled([], **options).body)
    exact = assembled(make_pairs(3), budget=needed, **options)
    assert len(exact.body) == needed
    assert exact.manifest.groups == (PairGroup(0, 2, "left_out", "over_budget"),)
    with pytest.raises(BudgetTooSmall) as raised:
        assembled(make_pairs(3), budget=needed - 1, **options)
    assert (raised.value.needed, raised.value.allowed) == (needed, needed - 1)
    assert isinstance(raised.value, InvalidInput)


def test_h3_the_system_prompt_stands_where_the_shape_wants_it() -> None:
    systems = {
        shape: (found.system, found.messages[0])
        for shape in SHAPE_NAMES
        for found in [assembled(make_pairs(1), shape=shape, system="You answer.")]
    }
    assert systems["anthropic"][0] == "You answer."
    assert systems["converse"][0] == [{"text": "You answer."}]
    assert systems["openai-chat"] == (None, {"role": "system", "content": "You answer."})
    assert systems["pydantic-ai"][0] is None
    assert systems["pydantic-ai"][1]["parts"][0]["part_kind"] == "system-prompt"


def test_an_unknown_shape_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match="openai-chat"):
        assembled([], shape="smoke-signals")


@pytest.mark.parametrize("shape", ["anthropic", "converse"])
def test_roles_alternate_where_the_provider_asks_for_it(shape: str) -> None:
    pairs = long_pairs(43)
    for summaries in ([], [candidate(pairs, 0)], [candidate(pairs, k) for k in (0, 10, 20, 30)]):
        for budget in (AMPLE, 9_000, 5_000):
            found = assembled(
                pairs,
                summaries,
                shape=shape,
                budget=budget,
                fallback="newest_mixed",
                system="s",
                next_user="n",
            )
            roles = [line["role"] for line in found.messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


# --- E6 -------------------------------------------------------------------------------------------


def test_e6_replacements_are_reported_for_what_is_really_sent() -> None:
    pairs = long_pairs(12)
    pairs[0] = with_text(pairs[0], "user", "\ud800\udfff")
    pairs[1] = with_text(pairs[1], "assistant", "\ud800" + LONG)
    pairs[11] = with_text(pairs[11], "assistant", "a\udfff")
    odd: dict[str, Any] = {"system": "\ud800", "next_user": "x\ud800\ud800"}
    everything = assembled(pairs, **odd)
    assert everything.manifest.replaced == (
        ("system", 1),
        ("u0", 2),
        ("a1", 1),
        ("a11", 1),
        ("next_user", 2),
    )
    everything.body.decode("utf-8")
    summarized = assembled(pairs, [candidate(pairs)], **odd).manifest
    assert [name for name, _ in summarized.replaced] == ["system", "u0", "a11", "next_user"]
    newest = assembled(pairs, budget=len(everything.body) - 1, **odd).manifest
    assert [name for name, _ in newest.replaced] == ["system", "a1", "a11", "next_user"]
    assert assembled(make_pairs(3)).manifest.replaced == ()


def test_h8_the_manifest_says_what_it_is_of_and_which_summaries_stand_in_it() -> None:
    pairs = long_pairs(21)
    used = candidate(pairs, 10, model=OTHER_MODEL, prompt=SECOND, index=9)
    manifest = assembled(pairs, [used], shape="converse").manifest
    assert (manifest.scope, manifest.conversation) == (SCOPE, CONVERSATION)
    assert manifest.shape == "converse"
    assert manifest.summaries == (UsedSummary(10, 19, used.identity, 9, OTHER_MODEL, SECOND, NOW),)


def test_h8_the_lines_that_were_not_eligible_are_handed_on() -> None:
    line = LeftOut(4, "m", "r", "tool")
    assert assembled(make_pairs(1), left_out=[line]).manifest.lines_left_out == (line,)


def test_h8_the_digest_is_reproducible_and_bound_to_shape_and_content() -> None:
    pairs = make_pairs(3)
    digests = [
        assembled(pairs).manifest.request_digest,
        assembled(pairs, shape="anthropic").manifest.request_digest,
        assembled(pairs[:2]).manifest.request_digest,
        assembled(pairs, next_user="n").manifest.request_digest,
    ]
    assert len(set(digests)) == 4
    assert assembled(make_pairs(3)).manifest.request_digest == digests[0]


def test_h9_assembly_changes_nothing_that_it_is_given() -> None:
    pairs = long_pairs(31)
    summaries = [candidate(pairs, 10), candidate(pairs, 0)]
    before = repr((pairs, summaries))
    assembled(pairs, summaries, budget=6_000)
    assert repr((pairs, summaries)) == before
