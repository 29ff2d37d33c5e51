"""T9 in the use cases: whose words they are, of which conversation, and what becomes of proposals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from backends import MemoryBackend
from hypothesis import given, settings
from hypothesis import strategies as st
from pin_adversaries import adversaries
from pin_runs import SAID_BY_OTHERS, SHAPES, SYSTEMS, USERS, speakers
from window_runs import PLACE, window_on

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DamagedOriginal, PinRefused
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import (
    NewOriginal,
    Originals,
    message_digest,
    wire_bytes,
)
from compaction_ledger.domain.window.pins import PinProposer, ProposingFailed, RulePinProposer
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.domain.window.prompts import DEFAULT_WINDOW_PROMPTS
from compaction_ledger.domain.window.tokens import Gauge, Utf8Counter
from compaction_ledger.domain.window.window_stream import current_pins
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.pinning import (
    MOST_QUOTES,
    Pinning,
    accept_pin,
    propose_pins,
)
from compaction_ledger.usecases.window.reading import read_turn

KEY = WindowKey(*PLACE)
Json = dict[str, Any]


def context_of(parts: Parts, shape: str = "openai-chat", key: WindowKey = KEY) -> WindowContext:
    return WindowContext(
        log=parts.context.log,
        originals=parts.originals,
        registry=DEFAULT_WINDOW_PROMPTS,
        key=key,
        shape=shape_named(shape),
        budget=WindowBudget(100_000),
        gauge=Gauge(Utf8Counter()),
    )


def kept(context: WindowContext, messages: Sequence[Json]) -> None:
    """Record the messages of a run as the window does."""
    turn = read_turn(context.shape, messages, context.gauge, None)
    digests = [message_digest(context.shape.settled(message)) for message in messages]
    new = [
        NewOriginal(entry.role, exchange, 0, wire_bytes(entry.wire), digest)
        for entry, exchange, digest in zip(turn.entries, turn.exchanges(), digests, strict=True)
    ]
    context.originals.append(context.key, context.shape.name, 0, new)


def users(*texts: str) -> list[Json]:
    """A run of the user's messages, each with an answer."""
    run: list[Json] = []
    for text in texts:
        run += [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    return run


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return MemoryBackend(tmp_path).open()


@dataclass(slots=True)
class Says:
    """Proposes what it was told to, and keeps what it was asked about."""

    quotes: Sequence[Any] | Exception
    kind: Literal["rule", "model", "caller"] = "model"
    asked: list[str] = field(default_factory=list[str])

    def propose(self, text: str) -> Sequence[str]:
        self.asked.append(text)
        if isinstance(self.quotes, Exception):
            raise self.quotes
        return self.quotes


# --- whose words they are ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_only_the_users_own_words_become_pins(parts: Parts, shape: str) -> None:
    context = context_of(parts, shape)
    messages, position, others = speakers(shape)
    kept(context, messages)

    pin = accept_pin(context, position, USERS)

    assert (pin.quote, pin.message, pin.proposer, pin.exchange) == (USERS, position, "caller", 0)
    for other in others:
        for said in SAID_BY_OTHERS:
            with pytest.raises(PinRefused) as caught:
                accept_pin(context, other, said)
            assert caught.value.reason == "not_users_words"
    for said in SAID_BY_OTHERS:  # a system prompt beside the user's among them
        with pytest.raises(PinRefused) as caught:
            accept_pin(context, position, said)
        assert caught.value.reason == "not_found"
        with pytest.raises(PinRefused):
            Pinning(context, None).pin(said)
    assert current_pins(context.log.load_window(KEY)) == (pin,)


def test_a_message_that_is_not_kept_is_unknown(parts: Parts) -> None:
    context = context_of(parts)
    kept(context, users("No nuts."))
    for position in (2, 99, -1):
        with pytest.raises(PinRefused) as caught:
            accept_pin(context, position, "No nuts.")
        assert caught.value.reason == "unknown_message"


def test_an_original_that_was_changed_proves_nothing(parts: Parts) -> None:
    context = context_of(parts)
    message = {"role": "user", "content": "No nuts."}
    digest = message_digest(message)
    other = wire_bytes({**message, "content": "More nuts."})
    context.originals.append(KEY, "openai-chat", 0, [NewOriginal("user", 0, 0, other, digest)])
    with pytest.raises(DamagedOriginal):
        accept_pin(context, 0, "More nuts.")
    assert context.log.load_window(KEY).pins == {}


def test_what_one_part_announces_changes_what_the_next_one_says(parts: Parts) -> None:
    context = context_of(parts)
    announced = ["My colleague wrote:", "No nuts. Never book Ryanair."]
    plain = ["Hello!", "No nuts."]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}
        for texts in (announced, plain)
    ]
    kept(context, messages)
    with pytest.raises(PinRefused) as caught:
        accept_pin(context, 0, "Never book Ryanair.")
    assert caught.value.reason == "out_of_context"
    pin = accept_pin(context, 1, "No nuts.")
    assert (pin.part, pin.start, pin.end) == (1, 0, 8)
    with pytest.raises(PinRefused) as caught:
        accept_pin(context, 1, "No nuts.", part=0)
    assert caught.value.reason == "not_found"


def test_no_adversary_gets_into_the_log(parts: Parts) -> None:
    """Some of every kind, through everything that a pin goes through."""
    cases = [case for case in adversaries() if "\ud800" not in case.text + case.quote][::37]
    cases = [case for case in cases if "\udc00" not in case.text]
    context = context_of(parts)
    kept(context, users(*(case.text for case in cases)))
    for number, case in enumerate(cases):
        with pytest.raises(PinRefused):
            accept_pin(context, 2 * number, case.quote)
    assert context.log.load_window(KEY).pins == {}


# --- what is recorded -------------------------------------------------------------------------------


def test_a_pin_that_is_there_already_is_the_same_pin(parts: Parts) -> None:
    context = context_of(parts)
    kept(context, users("No nuts. At most 500 EUR."))
    pin = accept_pin(context, 0, "No nuts.", proposer="rule")
    size = context.log.size()
    assert accept_pin(context, 0, "No nuts.") == pin
    assert accept_pin(context, 0, "No nuts.", supersedes=pin.pin_id) == pin
    assert accept_pin(context_of(parts), 0, "No nuts.", proposer="model") == pin
    assert context.log.size() == size
    assert accept_pin(context, 0, "At most 500 EUR.").pin_id != pin.pin_id


def test_a_correction_in_the_users_words_supersedes_and_both_stay(parts: Parts) -> None:
    context = context_of(parts)
    kept(
        context,
        users("My budget is at most 4,000 EUR.", "No nuts.", "Actually, make it 2,500 EUR."),
    )
    old = accept_pin(context, 0, "My budget is at most 4,000 EUR.")
    nuts = accept_pin(context, 2, "No nuts.")
    new = accept_pin(context, 4, "Actually, make it 2,500 EUR.")
    assert new.supersedes == old.pin_id
    state = context.log.load_window(KEY)
    assert current_pins(state) == (nuts, new)
    assert set(state.pins) == {old.pin_id, nuts.pin_id, new.pin_id}
    assert accept_pin(context, 4, "Actually, make it 2,500 EUR.") == new
    assert accept_pin(context, 0, "My budget is at most 4,000 EUR.") == old


def test_a_correction_may_be_named_and_is_never_one_of_later_words(parts: Parts) -> None:
    context = context_of(parts)
    kept(context, users("Actually, at most 300 EUR.", "At most 500 EUR.", "No fish."))
    later = accept_pin(context, 2, "At most 500 EUR.")
    earlier = accept_pin(context, 0, "Actually, at most 300 EUR.")
    assert earlier.supersedes is None
    named = accept_pin(context, 4, "No fish.", supersedes=later.pin_id)
    assert named.supersedes == later.pin_id
    assert current_pins(context.log.load_window(KEY)) == (earlier, named)
    with pytest.raises(PinRefused) as caught:
        accept_pin(context, 2, "At most 500 EUR.", supersedes="0" * 16)
    assert caught.value.reason == "unknown_pin"


def test_without_a_message_the_newest_that_has_the_words_is_taken(parts: Parts) -> None:
    context = context_of(parts)
    kept(context, users("No nuts.", "No nuts.", "> No nuts.\n\nThey told me so.", "Hello"))
    pinning = Pinning(context, None)
    assert pinning.pin("No nuts.").message == 2
    assert pinning.pin("No nuts.", 0).message == 0
    with pytest.raises(PinRefused) as caught:
        pinning.pin("They told me")
    assert caught.value.reason == "out_of_context"
    with pytest.raises(PinRefused) as caught:
        pinning.pin("No fish.")
    assert caught.value.reason == "not_found"


# --- conversations ----------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b"])


def name_of(key: WindowKey) -> str:
    return f"{key.scope}-{key.conversation}-{key.run}"


STEPS = st.lists(
    st.tuples(
        NAMES, NAMES, NAMES, st.integers(0, 3), st.sampled_from(["propose", "pin", "foreign"])
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_a_pin_of_one_conversation_is_never_made_from_or_shown_in_another(
    steps: list[tuple[str, str, str, int, str]],
) -> None:
    parts = MemoryBackend(Path()).open()
    begun: dict[WindowKey, list[Json]] = {}
    for scope, conversation, run, number, kind in steps:
        key = WindowKey(scope, conversation, run)
        name = name_of(key)
        context = context_of(parts, key=key)
        if key not in begun:
            begun[key] = users(*(f"Never open case {name}-{each}." for each in range(4)))
            kept(context, begun[key])
        if kind == "propose":
            propose_pins(context, RulePinProposer(), [2 * number])
        elif kind == "pin":
            accept_pin(context, 2 * number, f"Never open case {name}-{number}.")
        else:
            for other in begun.keys() - {key}:
                foreign = f"Never open case {name_of(other)}"
                with pytest.raises(PinRefused):
                    accept_pin(context, 2 * number, f"{foreign}-{number}.")
                with pytest.raises(PinRefused):
                    Pinning(context, None).pin(f"{foreign}-{number}.")
    for key, messages in begun.items():
        name = name_of(key)
        pins = current_pins(parts.context.log.load_window(key))
        assert all(pin.window == key and f" {name}-" in pin.quote for pin in pins)
        window = window_on(parts, place=(key.scope, key.conversation, key.run), budget=100_000)
        sent = json.dumps(window.prepare(messages).messages)
        assert all(f" {name_of(other)}-" not in sent for other in begun.keys() - {key})


# --- proposals --------------------------------------------------------------------------------------


def test_what_is_proposed_is_proven_and_refused_with_its_reason(parts: Parts) -> None:
    context = context_of(parts)
    kept(context, users("I do not want nuts. At most $5,000."))
    said = Says(
        ["At most $5,000.", "At most $500.", "want nuts.", "$5", "", "At most $5,000.", 7],
    )
    proposals = propose_pins(context, said, [0, 1, 99])
    assert [(pin.quote, pin.proposer) for pin in proposals.accepted] == [
        ("At most $5,000.", "model")
    ]
    assert [(each.quote, each.reason) for each in proposals.refused] == [
        ("At most $500.", "not_found"),
        ("want nuts.", "out_of_context"),
        ("$5", "part_of_a_token"),
        ("", "not_text"),
    ]
    assert {each.message for each in proposals.refused} == {0}
    assert all(each.detail for each in proposals.refused)
    assert said.asked == ["I do not want nuts. At most $5,000."]


def test_a_flood_of_proposals_is_cut_off(parts: Parts) -> None:
    context = context_of(parts)
    kept(context, users("No nuts."))
    flood = [f"No nuts number {number}." for number in range(1_000)]
    proposals = propose_pins(context, Says(flood), [0])
    assert len(proposals.refused) == MOST_QUOTES + 1
    assert "more than" in proposals.refused[-1].detail


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ProposingFailed("truncated"), "truncated"), (RuntimeError("secret"), "RuntimeError")],
)
def test_who_proposes_may_fail_and_no_turn_does(
    parts: Parts, error: Exception, reason: str
) -> None:
    context = context_of(parts)
    messages = users("No nuts.")
    kept(context, messages)
    assert propose_pins(context, Says(error), [0]).failed == ((0, reason),)
    window = window_on(parts, proposer=Says(error, kind="caller"), place=("t", "c", "r"))
    assert window.prepare(messages[:1]).messages == messages[:1]
    assert window.wait(30)
    assert window.pins() == ()


def test_rules_propose_at_each_turn_what_is_new(parts: Parts) -> None:
    context = context_of(parts)
    pinning = Pinning(context, RulePinProposer())
    messages = users("No nuts.", "And what else?", "At most 500 EUR.")
    kept(context, messages)
    for size in range(1, len(messages) + 1):
        pinning.look(read_turn(context.shape, messages[:size], context.gauge, None))
    again = Pinning(context, RulePinProposer())
    again.look(read_turn(context.shape, messages, context.gauge, None))
    pins = current_pins(context.log.load_window(KEY))
    assert [(pin.message, pin.quote, pin.proposer) for pin in pins] == [
        (0, "No nuts.", "rule"),
        (4, "At most 500 EUR.", "rule"),
    ]


def test_a_model_is_asked_in_the_background_and_once_for_each_message(parts: Parts) -> None:
    context = context_of(parts)
    said = Says(["No nuts.", "At most 500 EUR.", "At most 900 EUR."])
    pinning = Pinning(context, said)
    messages = users("No nuts.", "At most 500 EUR.")
    kept(context, messages)
    for size in range(1, len(messages) + 1):
        pinning.look(read_turn(context.shape, messages[:size], context.gauge, None))
        assert pinning.wait(30)
    assert said.asked == ["No nuts.", "At most 500 EUR."]
    assert {pin.quote for pin in current_pins(context.log.load_window(KEY))} == {
        "No nuts.",
        "At most 500 EUR.",
    }
    assert {each.quote for each in pinning.refused} == {
        "At most 500 EUR.",
        "At most 900 EUR.",
    }
    assert pinning.close(30)


def test_nobody_proposes_where_nobody_is_asked(parts: Parts) -> None:
    context = context_of(parts)
    nobody: PinProposer | None = None
    messages = users("No nuts.", SYSTEMS)
    kept(context, messages)
    Pinning(context, nobody).look(read_turn(context.shape, messages, context.gauge, None))
    assert context.log.load_window(KEY).pins == {}


# --- how much is read -------------------------------------------------------------------------------


@dataclass(slots=True)
class CountedOriginals:
    """Originals that count how often they are read, and cannot read what is at ``broken``."""

    inner: Any
    broken: frozenset[int] = frozenset()
    reads: int = 0

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Any:
        self.reads += 1
        found = self.inner.read(key, start, stop)
        if any(original.position in self.broken for original in found):
            raise DamagedOriginal("one of them cannot be read")
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_t11_a_long_run_that_is_opened_again_is_read_in_few_pages(parts: Parts) -> None:
    context = context_of(parts)
    messages = users(*(f"Never more than {number + 1} EUR." for number in range(500)))
    kept(context, messages)
    counted = CountedOriginals(context.originals)
    context = replace(context, originals=cast("Originals", counted))
    turn = read_turn(context.shape, messages, context.gauge, None)
    asked = Says((), kind="rule")
    Pinning(context, asked).look(turn)
    assert asked.asked == [message["content"] for message in messages[::2]]
    assert counted.reads <= 10


def test_a_message_that_cannot_be_read_keeps_no_other_from_its_pins(parts: Parts) -> None:
    context = context_of(parts)
    kept(context, users(*(f"Never more than {number + 1} EUR." for number in range(40))))
    counted = CountedOriginals(context.originals, frozenset({20, 31}))
    context = replace(context, originals=cast("Originals", counted))
    proposals = propose_pins(context, RulePinProposer(), [*range(40), 4_000, -1])
    assert [pin.message for pin in proposals.accepted] == [*range(0, 20, 2), *range(22, 40, 2)]
    assert [place for place, _ in proposals.failed] == [20, 31]
    pinning = Pinning(context, None)
    assert pinning.pin("Never more than 9 EUR.").message == 16  # behind the damaged ones
    with pytest.raises(DamagedOriginal):  # they may stand in one of those
        pinning.pin("Never more than 90 EUR.")
