"""T7, T12, T13 over the public transcripts: what is copied is grounded, a changed figure is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from compaction_ledger import Ledger
from compaction_ledger.domain.finish import failures
from compaction_ledger.domain.grounding import ungrounded
from compaction_ledger.domain.grounding_items import items
from compaction_ledger.domain.messages.shapes import SHAPES
from compaction_ledger.domain.window.judging import judge
from compaction_ledger.domain.window.prompts import DEFAULT_WINDOW_PROMPTS
from compaction_ledger.domain.window.summarization import ChunkLine, ChunkRequest
from compaction_ledger.infrastructure.summarizers.chunk_extractive import ExtractiveChunkSummarizer
from compaction_ledger.infrastructure.transcript_files import read_transcripts

pytestmark = pytest.mark.corpus

WIRES = [
    "tools_anthropic_messages_cline_session.json",
    "tools_anthropic_messages_recordings.jsonl",
    "tools_bedrock_converse_recordings.jsonl",
    "tools_openai_chat_recordings.jsonl",
    "tools_openai_chat_sweagent_function_calling.traj.json",
    "tools_openai_chat_taubench_airline_4trajectories.json",
    "tools_openai_responses_recordings.jsonl",
    "tools_pydantic_ai_model_messages_thinking.json",
]
CONVERSATIONS = {
    "long_goodai_ltm_mixtral_emoji_175pairs.events.jsonl": 15,
    "long_memorybank_zh_en_5users.json": 12,
    "research_deep_research_reports_gpt-4.1_38pairs.jsonl": 1,
    "tools_pi_session_64user_turns_aborted.jsonl": 2,
}


def requests(path: Path) -> Iterator[ChunkRequest]:
    """Each transcript of a file as if all of it were one chunk."""
    for found in read_transcripts(path):
        shape = SHAPES[found.shape]
        lines = [
            ChunkLine(entry.id, entry.role, part.kind, part.name, part.text)
            for entry in shape.read(found.messages)
            if entry.role != "system"
            for part in shape.parts(entry.wire)
            if part.kind in ("text", "call", "result")
        ]
        yield DEFAULT_WINDOW_PROMPTS.request(DEFAULT_WINDOW_PROMPTS.current, lines)


@pytest.mark.parametrize("name", WIRES)
def test_t7_the_embedded_summarizer_gives_a_sound_and_grounded_structure(
    shared_data: Path, name: str
) -> None:
    seen = 0
    for request in requests(shared_data / name):
        answer = ExtractiveChunkSummarizer().summarize_chunk(request)
        seen += 1
        if failures(answer):  # where nobody said a thing that could be kept
            assert failures(answer) == ("empty",)
            assert sum(len(line.text) for line in request.lines) < 400
            continue
        size = sum(len(line.text.encode()) for line in request.lines)
        verdict = judge(
            answer,
            request,
            replaced_bytes=size,
            rendered_bytes=lambda text: len(text.encode()),
            strict=True,
        )
        # A transcript of a few words cannot be condensed, and that is found.
        assert verdict.codes == () or (verdict.codes == ("not_smaller",) and size < 1_000)
    assert seen


@pytest.mark.parametrize("name", WIRES)
def test_t13_every_line_of_a_transcript_is_grounded_in_it(shared_data: Path, name: str) -> None:
    for request in requests(shared_data / name):
        source = [line.text for line in request.lines]
        assert ungrounded([one for text in source for one in text.splitlines()], source) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_t13_nothing_that_the_embedded_summarizer_says_of_a_range_is_listed(
    shared_data: Path, name: str
) -> None:
    with Ledger.in_memory() as ledger:
        ledger.import_file(shared_data / name)
        ledger.compact_all()
        rows = [
            row
            for known in ledger.transcripts.conversations()
            for row in ledger.summaries(known[1], scope=known[0])
        ]
        assert [ledger.grounding(row) for row in rows] == [()] * CONVERSATIONS[name]


@pytest.mark.slow
def test_t13_a_changed_figure_is_listed(shared_data: Path) -> None:
    name = "tools_openai_chat_taubench_airline_4trajectories.json"
    source = [line.text for request in requests(shared_data / name) for line in request.lines]
    everything = "\n".join(source)
    figures = {item.text for text in source for item in items(text) if item.kind != "quotation"}
    turned = str.maketrans("0123456789", "9876543210")
    changed = (figure.translate(turned) for figure in sorted(figures) if re.search(r"\d", figure))
    invented = list(islice((figure for figure in changed if figure not in everything), 200))

    assert len(invented) > 100
    for figure in invented:
        assert any(figure in found.text for found in ungrounded([f"it is {figure} now"], source))
