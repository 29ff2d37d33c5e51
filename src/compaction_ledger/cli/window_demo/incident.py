"""The incident of the demonstration: an agent with tools looks for the reason of failing payments, turn by
turn.

Made for it: no such services exist. The agent is a script too, so that no model and no network is needed;
what it does with its messages is what an agent's loop does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

SYSTEM = (
    "You are an operations agent. You look into incidents with the tools you have, "
    "and you change nothing unasked."
)

RULES = (
    "payments-api answers with 502 since 14:05 UTC. Never restart the primary database before 22:00 UTC. "
    "Spend at most 4,000 EUR on extra capacity. Only use the eu-west-1 region."
)
CORRECTION = "Actually, spend at most 2,500 EUR on extra capacity."

_QUESTIONS = (
    ("What do the error rates look like?", "error_rate", "payments-api"),
    ("Did anything get deployed before that?", "deployments", "payments-api"),
    ("Look at the connection pool.", "pool_usage", "payments-db"),
    ("What does the log of the gateway say?", "read_log", "gateway"),
    ("And the log of the API itself?", "read_log", "payments-api"),
    ("Are the queues filling up?", "queue_depth", "settlements"),
    ("Check the replicas as well.", "replica_lag", "payments-db"),
    ("How long do the slow queries take?", "slow_queries", "payments-db"),
    ("Which customers are hit?", "affected_accounts", "payments-api"),
    ("Is the second zone in order?", "zone_health", "eu-west-1b"),
    ("What would two more nodes cost?", "price", "eu-west-1"),
    ("Did the retries make it worse?", "retry_rate", "gateway"),
)

_AGAIN = ("", "Some time has passed: ", "Once more: ", "After the last change: ", "To be sure: ")

_FINDINGS = (
    "The error rate of {service} rose to 31.{minute} % at 14:0{digit} UTC. Ticket INC-20{minute} has it.",
    "Release 4.{digit}.{minute} of {service} went out at 13:5{digit} UTC. It was approved as CHG-77{minute}.",
    "The pool of {service} is full, {minute} wait for it. It was decided to look at the queries next.",
    "{service} logs 'upstream reset' {minute}00 times a minute, always on route /v2/charge.",
    "{service} logs 'deadline exceeded' in trace a1b2c3d4e5f6{minute}: the call of the table is slow.",
    "The queue of {service} has {minute}{minute} entries. Nothing is lost; they are retried every 30 s.",
    "Replica 2 of {service} is {minute} s behind. Should reads be moved away from it?",
    "The slowest query of {service} takes {minute}.{digit} s since the index idx_charge_{digit} is gone.",
    "{minute} accounts see failures; the largest is ACC-90{minute}.",
    "Zone {service} has {digit} of 9 nodes unhealthy.",
    "Two nodes more in {service} come to 1,{minute}0 EUR a month.",
    "Retries of {service} doubled the load to {minute}00 requests a second.",
)


@dataclass(frozen=True, slots=True)
class Step:
    """The messages that come until the model is called again, and what the model then answers."""

    new: list[Json]
    answer: Json


def incident(turns: int) -> Iterator[Step]:
    """So many turns of the user, each with a tool call or two and an answer, as OpenAI Chat messages."""
    yield Step(
        [{"role": "system", "content": SYSTEM}, {"role": "user", "content": RULES}],
        {
            "role": "assistant",
            "content": "Understood. I keep to these three rules.",
        },
    )
    for turn in range(turns):
        question, tool, service = _QUESTIONS[turn % len(_QUESTIONS)]
        again = _AGAIN[turn // len(_QUESTIONS) % len(_AGAIN)]
        asked = f"{again}{question[0].lower()}{question[1:]}" if again else question
        if turn == turns // 2:
            asked = f"{CORRECTION} {asked}"
        calls = [_call(turn, 0, tool, service)]
        if turn % 3 == 0:
            calls.append(_call(turn, 1, "read_log", service))
        yield Step(
            [{"role": "user", "content": asked}],
            {"role": "assistant", "content": None, "tool_calls": calls},
        )
        yield Step(
            [_result(turn, number, call) for number, call in enumerate(calls)],
            {"role": "assistant", "content": _finding(turn, service)},
        )


def _call(turn: int, number: int, tool: str, service: str) -> Json:
    return {
        "id": f"call_{turn:03d}_{number}",
        "type": "function",
        "function": {"name": tool, "arguments": json.dumps({"service": service, "minutes": 30})},
    }


def _result(turn: int, number: int, call: Json) -> Json:
    lines = 90 if call["function"]["name"] == "read_log" and turn % 4 == 3 else 6 + turn % 5
    text = "\n".join(_log_line(turn, number, line) for line in range(lines))
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _log_line(turn: int, number: int, line: int) -> str:
    seed = (turn * 7919 + number * 104_729 + line * 1_299_709) % 999_983
    return (
        f"14:{(turn + line) % 60:02d}:{seed % 60:02d} node-{seed % 9} POST /v2/charge "
        f"{502 if seed % 3 else 200} {seed % 4000} ms trace {seed:06x}"
    )


def _finding(turn: int, service: str) -> str:
    return _FINDINGS[turn % len(_FINDINGS)].format(
        service=service, minute=10 + turn % 50, digit=1 + turn % 8
    )
