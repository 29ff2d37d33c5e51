"""B1 and B3 (which exact messages), I1 (which exact job), and the vectors (B2)."""

from __future__ import annotations

import hashlib
import json
import runpy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from scenarios import (
    CONVERSATION,
    CURRENT,
    JOB,
    MODEL,
    OTHER_MODEL,
    SCOPE,
    SECOND,
    make_pair,
    make_pairs,
    message,
    with_text,
)

from compaction_ledger.domain.binding import message_ids, pairs_of, source_bytes, source_hash
from compaction_ledger.domain.conversation import Message, Pair, Role
from compaction_ledger.domain.errors import InvalidId, InvalidInput, InvalidJob
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion, check_job, job_for
from compaction_ledger.domain.windows import Range, WindowPolicy

TEXTS = st.text(st.characters(), max_size=20)


def document(scope: str, conversation: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The source as the specification writes it down, in its order of keys."""
    return {
        "v": 1,
        "scope": scope,
        "conversation": conversation,
        "from": pairs[0].index,
        "to": pairs[-1].index,
        "pairs": [
            {
                "index": pair.index,
                "run": pair.run,
                "user": {"id": pair.user.id, "text": pair.user.text},
                "assistant": {"id": pair.assistant.id, "text": pair.assistant.text},
            }
            for pair in pairs
        ],
    }


def pairs_in(source: dict[str, Any]) -> list[Pair]:
    """The pairs that a vector's source describes."""
    where = {"conversation": source["conversation"], "scope": source["scope"]}

    def side(item: dict[str, Any], role: Role) -> Message:
        return message(item[role]["id"], item["run"], role, item[role]["text"], **where)

    return [
        Pair(item["index"], item["run"], side(item, "user"), side(item, "assistant"))
        for item in source["pairs"]
    ]


def job_in(document: dict[str, Any]) -> Job:
    """The job that a vector describes."""
    model = document["model"]
    return Job(
        document["scope"],
        document["conversation"],
        document["from"],
        document["to"],
        tuple(document["messages"]),
        document["source"],
        ModelIdentity.of(model["provider"], model["name"], model["settings"]),
        PromptVersion.parse(document["prompt"]),
    )


# --- B1 -------------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=20), min_size=20, max_size=20), st.integers(0, 3))
def test_b1_the_source_bytes_are_rfc_8785_of_the_document(texts: list[str], number: int) -> None:
    pairs = [
        make_pair(10 * number + place, texts[2 * place], texts[2 * place + 1])
        for place in range(10)
    ]
    expected = rfc8785.dumps(document("租户", "c/é", pairs))
    assert source_bytes("租户", "c/é", pairs) == expected
    digest = hashlib.sha256(b"compaction-ledger/source/v1\x00" + expected).hexdigest()
    assert source_hash("租户", "c/é", pairs) == digest


# --- B3 -------------------------------------------------------------------------------------------


def swap(pairs: list[Pair]) -> list[Pair]:
    """The messages of pairs 3 and 4 change places, indices and runs stay."""
    third, fourth = pairs[3], pairs[4]
    changed = list(pairs)
    changed[3] = replace(third, user=fourth.user, assistant=fourth.assistant)
    changed[4] = replace(fourth, user=third.user, assistant=third.assistant)
    return changed


def at(place: int, change: Callable[[Pair], Pair]) -> Callable[[list[Pair]], list[Pair]]:
    """A change of one pair."""
    return lambda pairs: [change(pair) if pair.index == place else pair for pair in pairs]


CHANGES: dict[str, Callable[[list[Pair]], list[Pair]]] = {
    "a user's character": at(9, lambda p: with_text(p, "user", p.user.text + "x")),
    "an assistant's character": at(0, lambda p: with_text(p, "assistant", p.assistant.text[:-1])),
    "white space at the end": at(3, lambda p: with_text(p, "user", p.user.text + " ")),
    "one character for another": at(3, lambda p: with_text(p, "user", p.user.text[:-1] + "!")),
    "upper case": at(5, lambda p: with_text(p, "assistant", p.assistant.text.upper())),
    "a user message's id": at(2, lambda p: replace(p, user=p.user._replace(id="u2'"))),
    "an assistant message's id": at(
        2, lambda p: replace(p, assistant=p.assistant._replace(id="a2'"))
    ),
    "a run": at(7, lambda p: replace(p, run="run-7b")),
    "the sides of a pair": at(4, lambda p: replace(p, user=p.assistant, assistant=p.user)),
    "the order": swap,
    "the range": lambda pairs: [replace(pair, index=pair.index + 10) for pair in pairs],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_b3_any_change_breaks_the_binding(change: Callable[[list[Pair]], list[Pair]]) -> None:
    pairs = make_pairs(10)
    changed = change(pairs)
    assert changed != pairs
    assert source_hash(SCOPE, CONVERSATION, changed) != source_hash(SCOPE, CONVERSATION, pairs)


def test_b3_scope_and_conversation_are_bound() -> None:
    pairs = make_pairs(10)
    hashes = {
        source_hash(scope, name, pairs)
        for scope, name in (("s", "c"), ("s", "d"), ("t", "c"), ("c", "s"), ("sc", ""), ("", "sc"))
    }
    assert len(hashes) == 6


def test_e6_nothing_is_normalized_before_it_is_bound() -> None:
    pairs = make_pairs(10)
    looks_alike = ["é", "e\u0301", "é\u200b", "\u202eé", "é\x00", "\ud800é", "é\ud800", "É"]
    hashes = {
        source_hash(SCOPE, CONVERSATION, [with_text(pairs[0], "user", text), *pairs[1:]])
        for text in looks_alike
    }
    assert len(hashes) == len(looks_alike)


@given(TEXTS, TEXTS, st.integers(0, 9), st.sampled_from(["user", "assistant"]))
def test_b3_two_sources_bind_alike_only_if_they_are_alike(
    one: str, other: str, place: int, side: Any
) -> None:
    pairs = make_pairs(10)

    def bound(text: str) -> str:
        changed = [*pairs[:place], with_text(pairs[place], side, text), *pairs[place + 1 :]]
        return source_hash(SCOPE, CONVERSATION, changed)

    assert (bound(one) == bound(other)) == (one == other)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_b3_text_cannot_move_from_one_field_into_another(a: str, b: str, c: str, d: str) -> None:
    def bound(user: str, assistant: str) -> str:
        pairs = [make_pair(0, user, assistant), *make_pairs(9, start=1)]
        return source_hash(SCOPE, CONVERSATION, pairs)

    assert (bound(a, b) == bound(c, d)) == ((a, b) == (c, d))


# --- the ten pairs of a range ---------------------------------------------------------------------


def test_i1_the_twenty_ids_stand_in_order() -> None:
    assert message_ids(make_pairs(2)) == ("u0", "a0", "u1", "a1")


def test_a7_the_pairs_of_a_range() -> None:
    pairs = make_pairs(25)
    assert [pair.index for pair in pairs_of(pairs, Range.at(10))] == list(range(10, 20))
    for window in (
        Range.at(20),
        Range.at(30),
        Range(5, 14),
        Range(0, 19),
        Range(10, 25),
        Range(-10, -1),
        Range(-20, -11),
    ):
        with pytest.raises(InvalidJob):
            pairs_of(pairs, window)
    with pytest.raises(InvalidJob):
        pairs_of(make_pairs(20), Range(10, 25))


# --- I1 -------------------------------------------------------------------------------------------


def test_i1_every_part_of_a_job_is_in_its_identity() -> None:
    others = [
        replace(JOB, scope="s"),
        replace(JOB, conversation="d"),
        replace(JOB, from_pair=10, to_pair=19),
        replace(JOB, to_pair=19),
        replace(JOB, messages=(JOB.messages[1], JOB.messages[0], *JOB.messages[2:])),
        replace(JOB, source_hash="0" * 64),
        replace(JOB, model=OTHER_MODEL),
        replace(JOB, model=replace(MODEL, provider="azure")),
        replace(JOB, model=replace(MODEL, name="tiny")),
        replace(JOB, model=replace(MODEL, settings=())),
        replace(JOB, model=replace(MODEL, settings=(("temperature", "1"),))),
        replace(JOB, model=replace(MODEL, settings=(("top_p", "0"),))),
        replace(JOB, prompt=SECOND),
        replace(JOB, prompt=PromptVersion("another", 3)),
    ]
    assert len({job.identity for job in [JOB, *others]}) == len(others) + 1


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=5),
        st.text(max_size=5),
        max_size=5,
    ),
    st.randoms(use_true_random=False),
)
def test_i1_the_digest_is_rfc_8785s_in_whatever_order_the_settings_come(
    settings: dict[str, str], chance: Any
) -> None:
    mixed = list(settings.items())
    chance.shuffle(mixed)
    job = replace(JOB, model=ModelIdentity.of("p", "n", dict(mixed)))
    expected = rfc8785.dumps(
        {
            "v": 1,
            "scope": SCOPE,
            "conversation": CONVERSATION,
            "from": 0,
            "to": 9,
            "messages": list(job.messages),
            "source": job.source_hash,
            "model": {"provider": "p", "name": "n", "settings": settings},
            "prompt": "conversation-compaction@3",
        }
    )
    digest = hashlib.sha256(b"compaction-ledger/job/v1\x00" + expected).hexdigest()
    assert job.identity == digest
    check_job(job)


def test_i1_settings_are_ordered_by_utf_16_units() -> None:
    model = ModelIdentity.of("p", "n", {"\ufb33": "1", "😀": "2"})
    assert [key for key, _ in model.settings] == ["😀", "\ufb33"]


@pytest.mark.parametrize(
    ("provider", "name", "settings"),
    [
        ("", "n", {}),
        ("p", "", {}),
        ("p", "n\n", {}),
        ("p", "n", {"": "x"}),
        ("p", "n", {"\ud800": "x"}),
    ],
)
def test_i1_a_models_names_are_ids(provider: str, name: str, settings: dict[str, str]) -> None:
    with pytest.raises(InvalidId):
        ModelIdentity.of(provider, name, settings)


@pytest.mark.parametrize("value", ["\ud800", 0, 0.0, None, True])
def test_i1_settings_are_strings(value: Any) -> None:
    with pytest.raises(InvalidInput):
        ModelIdentity.of("p", "n", {"temperature": value})


def test_i1_a_model_reads_as_provider_and_name() -> None:
    assert str(MODEL) == "openai/small"


def test_i2_new_jobs_use_the_current_prompt_version() -> None:
    assert str(CURRENT) == "conversation-compaction@3"
    assert PromptVersion.parse("conversation-compaction@3") == CURRENT
    assert job_for(SCOPE, CONVERSATION, make_pairs(10), MODEL, CURRENT) == JOB


@pytest.mark.parametrize(
    "text", ["", "a", "@1", "a@", "a@0", "a@01", "a@-1", "a@1.0", "a@b", "a b@1", "a@1@2", "a@1\n"]
)
def test_i1_a_prompt_version_is_name_at_number(text: str) -> None:
    with pytest.raises(InvalidInput):
        PromptVersion.parse(text)


# --- B2: the vectors that we publish, and those that are shared -----------------------------------


def load(path: Path) -> dict[str, Any]:
    """A file of vectors."""
    loaded: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return loaded


@pytest.fixture(scope="module")
def published(repo_root: Path) -> dict[str, Any]:
    """The vectors under docs/."""
    return load(repo_root / "docs" / "vectors" / "vectors.json")


@pytest.fixture(scope="module")
def shared(repo_root: Path) -> dict[str, Any]:
    """The vectors of the specification, where they lie beside the repository."""
    path = repo_root.parent / "shared" / "spec" / "vectors.json"
    if not path.is_file():
        pytest.skip("the specification's vectors do not lie beside this repository")
    return load(path)


def check_vectors(vectors: dict[str, Any]) -> None:
    """Recompute every vector of a file."""
    for vector in vectors["source_binding"]:
        source = vector["source"]
        pairs = pairs_in(source)
        assert source_hash(source["scope"], source["conversation"], pairs) == vector["source_hash"]
        assert document(source["scope"], source["conversation"], pairs) == source
    for vector in vectors["job_identity"]:
        job = job_in(vector["job"])
        check_job(job)
        assert job.identity == vector["digest"], vector["name"]
    for pairs_count, ranges in vectors["windows"].items():
        assert WindowPolicy().count(int(pairs_count)) == ranges


def test_b2_the_published_vectors_are_ours(published: dict[str, Any]) -> None:
    check_vectors(published)
    assert len(published["source_binding"]) >= 4
    assert len(published["job_identity"]) >= 4


def test_b2_the_published_bytes_are_the_source_bytes(published: dict[str, Any]) -> None:
    for vector in published["source_binding"]:
        source = vector["source"]
        data = source_bytes(source["scope"], source["conversation"], pairs_in(source))
        assert hashlib.sha256(data).hexdigest() == vector["bytes_sha256"]
        assert len(data) == vector["bytes_length"]


def test_b2_the_published_vectors_are_what_their_program_makes(
    repo_root: Path, published: dict[str, Any]
) -> None:
    folder = repo_root / "docs" / "vectors"
    program = runpy.run_path(str(folder / "make_vectors.py"))
    text: str = program["render"]()
    assert (folder / "vectors.json").read_text("utf-8") == text
    assert json.loads(text) == published
    assert "compaction_ledger" not in (folder / "make_vectors.py").read_text("utf-8")


def test_b2_the_shared_vectors_hold(shared: dict[str, Any]) -> None:
    check_vectors(shared)
    assert shared["source_binding"]
    assert shared["job_identity"]


def test_b2_the_example_in_the_reference_recomputes_a_binding(
    repo_root: Path, published: dict[str, Any]
) -> None:
    page = (repo_root / "docs" / "reference" / "vectors.md").read_text("utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(compile(example, "vectors.md", "exec"), names)
    for vector in published["source_binding"]:
        assert names["source_hash"](vector["source"]) == vector["source_hash"]
