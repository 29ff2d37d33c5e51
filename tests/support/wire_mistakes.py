"""Mistakes in transcripts that are made of a writer's messages: :mod:`wire_mutations` lists them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from wire_values import Draw, Wire, pick
from wire_writers import Writer


class Broken(NamedTuple):
    """A list that a provider refuses: with exactly these codes, the first of them at ``place``."""

    messages: list[Wire]
    codes: frozenset[str]
    code: str
    place: str


# Ids that no writer makes.
_ONE, _OTHER = "call_fresh1", "call_fresh2"
_TWO = (_ONE, _OTHER)

Mutation = Callable[[Draw, Writer, list[Wire]], Broken]


def _broken(messages: Sequence[Wire], code: str, place: object, *others: str) -> Broken:
    return Broken(list(messages), frozenset({code, *others}), code, str(place))


# --- calls and results, in every shape ----------------------------------------------------------------


def _lost_call(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    """Two results, and only one of them was asked for."""
    ids = list(_TWO)
    found = [*before, *writer.user(draw), *writer.calls(draw, ids[:1])]
    results = writer.results(draw, ids)
    place = _place_of(found, results, ids[1])
    return _broken(
        [*found, *results, *writer.answer(draw), *_more(draw, writer)], "orphan_result", place
    )


def _result_alone(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    """What a transcript begins with that was cut between a call and its result."""
    ids = writer.ids(draw, 1)
    results = writer.results(draw, ids)
    rest = [*writer.answer(draw), *writer.user(draw)]
    return _broken([*results, *rest], "orphan_result", _place_of([], results, ids[0]))


def _lost_result(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    """Two calls, one result, and then the next response."""
    ids = list(_TWO)
    found = [*before, *writer.user(draw)]
    calls = writer.calls(draw, ids)
    place = _place_of(found, calls, ids[1])
    found += [*calls, *writer.results(draw, ids[:1])]
    return _broken([*found, *writer.answer(draw), *_more(draw, writer)], "unanswered_call", place)


def _result_first(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    """A result, and then its call."""
    ids = [_ONE]
    found = [*before] if writer.alternates else [*before, *writer.user(draw)]
    results = writer.results(draw, ids)
    place = _place_of(found, results, ids[0])
    found += [*results, *writer.calls(draw, ids), *_more(draw, writer, answer=True)]
    return _broken(found, "result_before_call", place, "unanswered_call")


def _two_calls_one_id(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    one = _ONE
    found = [*before, *writer.user(draw)]
    calls = writer.calls(draw, [one, one])
    place = _place_of(found, calls, one, last=True)
    found += [*calls, *writer.results(draw, [one]), *writer.answer(draw), *_more(draw, writer)]
    return _broken(found, "duplicate_call", place)


def _two_results(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    one = _ONE
    found = [*before, *writer.user(draw), *writer.calls(draw, [one])]
    results = writer.results(draw, [one, one])
    place = _place_of(found, results, one, last=True)
    return _broken(
        [*found, *results, *writer.answer(draw), *_more(draw, writer)], "duplicate_result", place
    )


def _pending(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    ids = list(_TWO)
    found = [*before, *writer.user(draw)]
    calls = writer.calls(draw, ids)
    results = writer.results(draw, ids[1:]) if pick(draw, st.booleans()) else []
    return _broken([*found, *calls, *results], "pending_call", _place_of(found, calls, ids[0]))


# --- what a message is, in every shape ----------------------------------------------------------------


def _nothing(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    return _broken([], "no_messages", "message 0")


def _no_object(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    strange = pick(draw, st.sampled_from([None, "text", 7, ["a"], True]))
    found: list[object] = [*before, *writer.user(draw), strange]
    return Broken(found, frozenset({"not_an_object"}), "not_an_object", f"message {len(found) - 1}")  # type: ignore[arg-type]


def _strange_role(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    role: object = pick(draw, st.sampled_from(["narrator", "", None, 3, ["user"], {}]))
    found = [*before, *writer.user(draw)]
    message: Wire = {"role": role, "kind": role, "content": "Hello.", "parts": []}
    return _broken([*found, message], "unknown_role", f"message {len(found)}")


# --- order of roles ------------------------------------------------------------------------------------


def _two_users(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    found = [*before, *writer.user(draw)]
    message = {"role": "user", "content": [_text(writer, "And one more thing.")]}
    rest = [message, *writer.answer(draw)]
    return _broken([*found, *rest], "roles_alternate", f"message {len(found)}")


def _two_answers(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    found = [*before, *writer.user(draw), *writer.answer(draw)]
    rest = [*writer.answer(draw), *writer.user(draw)]
    return _broken([*found, *rest], "roles_alternate", f"message {len(found)}")


def _answer_first(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    found = [*writer.answer(draw), *before, *writer.user(draw)]
    return _broken(found, "first_role", "message 0")


def _answer_last(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    found = [*before, *writer.user(draw), *writer.answer(draw)]
    return _broken(found, "last_role", f"message {len(found) - 1}")


def _instructions_first(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    message: Wire = {"role": "system", "content": [_text(writer, "Be brief.")]}
    return _broken([message, *before, *writer.user(draw)], "system_placement", "message 0")


# --- single messages -----------------------------------------------------------------------------------


def said(code: str, message: Wire, part: str = "", *others: str) -> Mutation:
    """A user's message that is refused as it stands, at the end of the list."""

    def mutation(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
        place = f"message {len(before)} {part}".rstrip()
        return _broken([*before, message], code, place, *others)

    return mutation


def replied(code: str, message: Wire, part: str = "", *others: str) -> Mutation:
    """A response that is refused as it stands; then the conversation goes on."""

    def mutation(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
        found = [*before, *writer.user(draw)]
        place = f"message {len(found)} {part}".rstrip()
        return _broken([*found, message, *writer.user(draw)], code, place, *others)

    return mutation


def ended(code: str, message: Wire, part: str = "", *others: str) -> Mutation:
    """A response that is refused at the end of a list."""

    def mutation(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
        found = [*before, *writer.user(draw)]
        place = f"message {len(found)} {part}".rstrip()
        return _broken([*found, message], code, place, *others)

    return mutation


def _late_result(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    """A user's text in front of the result."""
    ids = writer.ids(draw, 1)
    found = [*before, *writer.user(draw), *writer.calls(draw, ids)]
    (message,) = writer.results(draw, ids)
    message = message | {"content": [_text(writer, "Well."), *message["content"]]}
    return _broken([*found, message], "misplaced_result", f"message {len(found)} content[1]")


def _late_thinking(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    ids = writer.ids(draw, 1)
    found = [*before, *writer.user(draw)]
    (message,) = writer.calls(draw, ids)
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    thinking = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}
    content = [_text(writer, "I look it up."), thinking, *calls]
    rest = [{"role": "assistant", "content": content}, *writer.results(draw, ids)]
    return _broken([*found, *rest], "thinking_order", f"message {len(found)} content[0]")


def _same_item(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    item: Wire = {"type": "message", "role": "assistant", "id": "msg_twice", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": "Yes.", "annotations": []}]
    found = [*before, *writer.user(draw), item, *writer.user(draw)]
    return _broken([*found, item], "duplicate_item", f"message {len(found)}")


def _lone_reasoning(draw: Draw, writer: Writer, before: list[Wire]) -> Broken:
    found = [*before, *writer.user(draw)]
    rest = [{"type": "reasoning", "id": "rs_alone", "summary": []}]
    rest += writer.user(draw) if pick(draw, st.booleans()) else []
    return _broken([*found, *rest], "orphan_reasoning", f"message {len(found)}")


# --- helpers -------------------------------------------------------------------------------------------


def _text(writer: Writer, text: str) -> Wire:
    """A block of text of an alternating shape."""
    return (
        {"text": text}
        if type(writer).__name__ == "ConverseWriter"
        else {"type": "text", "text": text}
    )


def _more(draw: Draw, writer: Writer, *, answer: bool = False) -> list[Wire]:
    """How the conversation goes on."""
    again = [*writer.answer(draw), *writer.user(draw)] if answer else []
    return [*writer.user(draw), *again]


def _place_of(
    before: Sequence[Wire], messages: Sequence[Wire], one: str, *, last: bool = False
) -> str:
    """Where in ``messages``, which follow ``before``, the call or the result with this id stands."""
    places: list[str] = []
    for position, message in enumerate(messages, start=len(before)):
        for member in ("tool_calls", "content", "parts"):
            blocks = message.get(member)
            for index, block in enumerate(blocks if isinstance(blocks, list) else []):
                if one in _ids_of(block):
                    places.append(f"message {position} {member}[{index}]")
        if one in _ids_of(message):
            places.append(f"message {position}")
    return places[-1 if last else 0]


def _ids_of(block: Wire) -> list[object]:
    inner = [block.get("toolUse"), block.get("toolResult")]
    found = [*(value for value in inner if isinstance(value, dict)), block]
    members = ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId")
    return [value[member] for value in found for member in members if member in value]


# --- by shape --------------------------------------------------------------------------------------

COMMON: dict[str, Mutation] = {
    "lost_call": _lost_call,
    "result_alone": _result_alone,
    "lost_result": _lost_result,
    "result_first": _result_first,
    "two_calls_one_id": _two_calls_one_id,
    "two_results": _two_results,
    "pending": _pending,
    "nothing": _nothing,
    "no_object": _no_object,
    "strange_role": _strange_role,
}
"""Mistakes that every shape knows."""

ALTERNATING: dict[str, Mutation] = {
    "two_users": _two_users,
    "two_answers": _two_answers,
    "answer_first": _answer_first,
    "instructions_first": _instructions_first,
    "late_result": _late_result,
}
"""Mistakes of the shapes whose sides take turns."""

ANTHROPIC: dict[str, Mutation] = {"late_thinking": _late_thinking}
RESPONSES: dict[str, Mutation] = {"same_item": _same_item, "lone_reasoning": _lone_reasoning}
PYDANTIC_AI: dict[str, Mutation] = {"answer_first": _answer_first, "answer_last": _answer_last}
