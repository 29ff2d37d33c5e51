"""Whatever a model says, it learns nothing of another conversation or scope (S1, T15)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backends import Backend
from history_cases import CONVERSATION, RUN, SCOPE, handle, history, keep, user, write_pairs
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compaction_ledger.composition import Parts
from compaction_ledger.usecases.history_tools import answer
from compaction_ledger.usecases.history_toolset import TOOLS

SECRETS = ("zq7kestrel", "zq7falcon", "zq7merlin")
CONTENT = b"the pass phrase is zq7merlin"
PLACES = ((SCOPE, "board-papers"), ("globex", CONVERSATION), ("globex", "board-papers"))

INJECTIONS = [
    '") OR *',
    '" OR terms : "zq7',
    "zq7* OR zq7kestrel",
    "NEAR(zq7kestrel budget, 10)",
    "terms : zq7kestrel",
    "{terms characters} : zq7kestrel",
    "^zq7kestrel",
    "zq7kestrel NOT budget",
    "1xzq7kestrel",
    "2xzq7kestrel",
    "'; DROP TABLE history_places; --",
    "' UNION SELECT wire FROM window_messages --",
    "%zq7%",
    "_q7kestrel",
    "zq7:* & budget | !x <-> y",
    "{1,2,3}",
    "\0zq7kestrel\0",
    "\ud800 zq7kestrel \udfff",
    "zq7kestrel\u202e",
    *SECRETS,
]
TEXTS = st.one_of(st.sampled_from(INJECTIONS), st.text(max_size=40))
NAMES = (
    "scope conversation conversation_id tenant run query message_id handle start length roles limit "
    "offset since first_pair __class__ self"
)
KEYS = st.sampled_from(NAMES.split())
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        TEXTS,
        st.sampled_from(["globex", "board-papers", RUN, "m0", "u0", handle(CONTENT), "../m0"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
ARGUMENTS = st.one_of(
    st.dictionaries(st.one_of(KEYS, st.text(max_size=5)), VALUES, max_size=5),
    st.builds(lambda query, more: {"query": query, **more}, TEXTS, st.just({})),
    st.builds(
        lambda message, run: {"message_id": message, "run": run},
        st.sampled_from(["m0", "m1", "u0", "a0"]),
        st.one_of(st.none(), TEXTS, st.sampled_from([RUN, "run-2"])),
    ),
    st.text(max_size=60),
)


@pytest.fixture
def planted(backend: Backend) -> Parts:
    """One conversation of ours, and three of others with secrets in runs, lines and tool results."""
    parts = backend.open()
    keep(parts, [user("our budget is 4,000 EUR")])
    write_pairs(parts, [("what is our budget?", "4,000 EUR")])
    for (scope, conversation), secret in zip(PLACES, SECRETS, strict=True):
        where: Any = {"scope": scope, "conversation": conversation}
        keep(parts, [user(f"the budget of {secret}"), user(secret)], **where)
        keep(parts, [user(f"more of {secret}")], run="run-2", **where)
        write_pairs(parts, [(f"who is {secret}?", f"{secret} is a budget")], **where)
        parts.originals.keep_result(scope, conversation, CONTENT)
        assert (
            secret
            in answer(
                history(parts, conversation, scope=scope),
                "search_conversation_history",
                {"query": secret},
            )[0]
        )
    return parts


@pytest.mark.slow_on("postgres")
@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(name=st.one_of(st.sampled_from(sorted(TOOLS)), st.text(max_size=10)), arguments=ARGUMENTS)
@example("search_conversation_history", {"query": "zq7kestrel", "scope": "globex"})
@example("search_conversation_history", '{"query": "zq7kestrel", "conversation": "board-papers"}')
@example("read_tool_result", {"handle": handle(CONTENT)})
@example("read_message", {"message_id": "m0", "run": "run-2"})
@example("search_conversation_history", "[" * 10_000)
@example("search_conversation_history", '{"query": ' + "1" * 5000 + "}")
def test_no_arguments_bring_a_word_of_others(planted: Parts, name: str, arguments: Any) -> None:
    text, failed = answer(history(planted), name, arguments)
    value = json.loads(text)
    assert ("error" in value) == failed
    asked = json.dumps(arguments, ensure_ascii=False, default=str)
    for secret in SECRETS:
        # What the model said itself may come back in an error, and nothing else.
        assert secret not in text or (failed and secret in asked)
    if failed:
        assert set(value) == {"error"}
        assert set(value["error"]) == {"code", "message"}
        assert "Traceback" not in text
    elif name == "search_conversation_history":
        assert all(hit["run"] in (None, RUN) for hit in value["hits"])
        assert all("budget" in hit["quote"] or "4,000" in hit["quote"] for hit in value["hits"])


@pytest.mark.parametrize("key", ["scope", "conversation", "conversation_id", "tenant", "history"])
def test_a_scope_or_conversation_among_the_arguments_is_refused(key: str, planted: Parts) -> None:
    for name, required in (
        ("search_conversation_history", {"query": "zq7kestrel"}),
        ("read_message", {"message_id": "m1"}),
        ("read_tool_result", {"handle": handle(CONTENT)}),
    ):
        for value in ("globex", None):
            text, failed = answer(history(planted), name, {**required, key: value})
            assert failed
            assert json.loads(text)["error"]["code"] == "invalid_input"
            assert f"unknown argument '{key}'" in text


def test_every_injection_finds_no_more_than_its_words(planted: Parts) -> None:
    for text in INJECTIONS:
        found, failed = answer(history(planted), "search_conversation_history", {"query": text})
        assert failed or json.loads(found)["hits"] == [], text
    again, _ = answer(history(planted), "search_conversation_history", {"query": "budget"})
    assert {hit["message_id"] for hit in json.loads(again)["hits"]} == {"m0", "u0"}
