"""The generated run of an agent with tools that the window is measured on, and the same in other wire shapes.

A turn of the user is about 5.5 KB of JSON: a question, one or two rounds of tool calls whose results are
between 0.4 and 4.4 KB, and an answer. A message is about 1 KB on average; where the results are short, about
300 bytes. Fifteen constraints are said once each, all in the first half of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]

LONG, SHORT = 70, 1
"""How much the lines of a tool's result vary; six is the fewest."""

SYSTEM = "You look into incidents with the tools you have, and you change nothing unasked."

CONSTRAINTS = (
    "Never restart the primary database before 22:00 UTC.",
    "Spend at most 4,000 EUR on extra capacity.",
    "Only use the eu-west-1 region.",
    "Do not delete any queue, not even an empty one.",
    "Every answer to a customer must name the ticket INC-20417.",
    "The error budget of checkout must not fall below 0.2 percent.",
    "Don't open port 5432 to the internet.",
    "No schema change without a review by the storage team.",
    "At most two nodes may be drained at the same time.",
    "Never print a card number into a log.",
    "All times in the report must be in UTC.",
    "Rollbacks go through release train R-118 only.",
    "Leave at least 30 percent of the disk of node-7 free.",
    "Do not page the search team between 02:00 and 06:00.",
    "The status page must be updated every 30 minutes.",
)

_SERVICES = ("payments-api", "gateway", "settlements", "payments-db", "checkout", "ledger-writer")
_TOOLS = ("read_log", "error_rate", "deployments", "slow_queries", "queue_depth", "zone_health")
_QUESTIONS = (
    "What does {tool} say of {service} now? Compare it with what we saw an hour ago, please.",
    "Look at {service} with {tool}. Did anything change since the release of this morning?",
    "Check {service} again; one customer still sees failures on the second attempt.",
    "Which of the nodes of {service} is it, and since when does {tool} show it?",
)
_ANSWERS = (
    (
        "{service} shows {n} failures a minute on node-{digit} since 14:{minute}. The trace {trace} is one "
        "of them; it ends in the call of payments-db. Release 4.{digit}.{minute} went out shortly before, "
        "approved as CHG-{n}. I would look at the pool next: the slow calls began three minutes earlier."
    ),
    (
        "Nothing new on {service}: the rate is {minute}.{digit} percent, as an hour ago. The queue holds {n} "
        "entries, all retried every 30 s. Node-{digit} is the only one that is slower than the others."
    ),
    (
        "The slowest query of {service} takes {minute}.{digit} s; its index idx_charge_{digit} is gone since "
        "CHG-{n}. It was decided to compare the plans first. Ticket INC-{n} has the figures."
    ),
)


class Step(NamedTuple):
    """The messages that come until the model is called again, and what the model then answers."""

    new: list[Json]
    answer: Json


def steps(turns: int, vary: int = LONG) -> Iterator[Step]:
    """So many turns of the user, as OpenAI Chat messages; two or three calls of the model for each."""
    said = _said_at(turns)
    new: list[Json] = [{"role": "system", "content": SYSTEM}]
    for turn in range(turns):
        new.append({"role": "user", "content": " ".join([*said.get(turn, ()), _question(turn)])})
        for number in range(1 + turn % 2):
            calls = [_call(turn, number, side) for side in range(1 + (turn + number) % 3 // 2)]
            yield Step(new, {"role": "assistant", "content": None, "tool_calls": calls})
            new = [_result(turn, number, call, vary) for call in calls]
        yield Step(new, {"role": "assistant", "content": _filled(_ANSWERS, turn)})
        new = []


def _said_at(turns: int) -> dict[int, list[str]]:
    """By turn: the constraints that the user says there; three with the first, then one after the other."""
    said: dict[int, list[str]] = {0: list(CONSTRAINTS[:3])}
    for number, constraint in enumerate(CONSTRAINTS[3:], start=1):
        said.setdefault(number * turns // 26, []).append(constraint)
    return said


def transcript(messages: int, vary: int = LONG) -> list[Json]:
    """The first so many messages of a run that is long enough."""
    found: list[Json] = []
    for step in steps(messages // 4 + 2, vary):
        found += [*step.new, step.answer]
        if len(found) >= messages:
            break
    return found[:messages]


def _question(turn: int) -> str:
    return _filled(_QUESTIONS, turn) + f" (check {turn + 1})"


def _filled(texts: Sequence[str], turn: int) -> str:
    return texts[turn % len(texts)].format(
        service=_SERVICES[turn % len(_SERVICES)],
        tool=_TOOLS[turn % len(_TOOLS)],
        n=1_000 + turn * 37 % 9_000,
        digit=1 + turn % 8,
        minute=10 + turn % 50,
        trace=f"{turn * 7919 % 999_983:06x}",
    )


def _call(turn: int, number: int, side: int) -> Json:
    arguments = {"service": _SERVICES[(turn + side) % len(_SERVICES)], "minutes": 30 + number}
    return {
        "id": f"call_{turn:05d}_{number}_{side}",
        "type": "function",
        "function": {
            "name": _TOOLS[(turn + number) % len(_TOOLS)],
            "arguments": json.dumps(arguments),
        },
    }


def _result(turn: int, number: int, call: Json, vary: int) -> Json:
    lines = 6 + (turn * 13 + number * 29) % vary
    text = "\n".join(_line(turn * 4 + number, line) for line in range(lines))
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _line(turn: int, line: int) -> str:
    seed = (turn * 7919 + line * 1_299_709) % 999_983
    return (
        f"14:{(turn + line) % 60:02d}:{seed % 60:02d} node-{seed % 9} POST /v2/charge "
        f"{502 if seed % 3 else 200} {seed % 4000} ms trace {seed:06x}"
    )


# --- the same in other shapes -----------------------------------------------------------------------


def in_shape(shape: str, messages: Sequence[Json]) -> list[Json]:
    """OpenAI Chat messages as those of another shape; results that follow each other stand together where
    the shape wants that. Instructions are left out where they stand apart.
    """
    if shape == "openai-chat":
        return list(messages)
    if shape == "openai-responses":
        return [item for message in messages for item in _items(message)]
    blocks = _anthropic if shape == "anthropic" else _converse
    found: list[Json] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        content = blocks(message)
        if not content:
            continue
        if message["role"] == "tool" and found and found[-1]["role"] == "user":
            found[-1]["content"] += content
        else:
            found.append({"role": role, "content": content})
    return found


def _calls(message: Json) -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call."""
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]


def _items(message: Json) -> Iterator[Json]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        call_id = message["tool_call_id"]
        yield {"type": "function_call_output", "call_id": call_id, "output": content}
        return
    if content:
        kind = "output_text" if role == "assistant" else "input_text"
        yield {"type": "message", "role": role, "content": [{"type": kind, "text": content}]}
    for call_id, name, arguments in _calls(message):
        yield {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def _anthropic(message: Json) -> list[Json]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        call_id = message["tool_call_id"]
        return [{"type": "tool_result", "tool_use_id": call_id, "content": content}]
    if role == "system":
        return []
    return [
        *([{"type": "text", "text": content}] if content else []),
        *(
            {"type": "tool_use", "id": call_id, "name": name, "input": json.loads(arguments)}
            for call_id, name, arguments in _calls(message)
        ),
    ]


def _converse(message: Json) -> list[Json]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        result = {"toolUseId": message["tool_call_id"], "content": [{"text": content}]}
        return [{"toolResult": result}]
    if role == "system":
        return []
    return [
        *([{"text": content}] if content else []),
        *(
            {"toolUse": {"toolUseId": call_id, "name": name, "input": json.loads(arguments)}}
            for call_id, name, arguments in _calls(message)
        ),
    ]
