"""The public transcripts through the whole pipeline: import, compact, assemble, verify.

The long conversations are summarized by the embedded summarizer. For each the promises are checked on
what really comes out: the user's words stand verbatim (H1), the budget is never exceeded (H3), every
pair is in the manifest (H8), and the log verifies (L1).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from compaction_ledger import Ledger, WindowPolicy
from compaction_ledger.domain.assembly import Assembly
from compaction_ledger.domain.conversation import Pair
from compaction_ledger.domain.identifiers import replace_surrogates
from compaction_ledger.domain.rendering import SHAPES
from compaction_ledger.usecases.compaction import CompactionReport

pytestmark = pytest.mark.corpus

FILES = [
    "chatgpt_export_code_interpreter.json",
    "chatgpt_share_web_browsing.json",
    "claude_ai_export_thinking_artifacts.json",
    "long_goodai_ltm_gpt4turbo_194pairs.events.jsonl",
    "long_goodai_ltm_mixtral_emoji_175pairs.events.jsonl",
    "long_memorybank_zh_en_5users.json",
    "research_deep_research_reports_gpt-4.1_38pairs.jsonl",
    "tools_anthropic_messages_cline_session.json",
    "tools_claude_code_session_todo_app.jsonl",
    "tools_openai_chat_taubench_airline_4trajectories.json",
    "tools_pi_session_64user_turns_aborted.jsonl",
]

# Conversations long enough for the reference policy, and how many ranges it names in each (W1).
LONG = {
    "long_goodai_ltm_gpt4turbo_194pairs.events.jsonl": [17],
    "long_goodai_ltm_mixtral_emoji_175pairs.events.jsonl": [15],
    "long_memorybank_zh_en_5users.json": [2, 3, 2, 2, 3],
    "research_deep_research_reports_gpt-4.1_38pairs.jsonl": [1],
    "tools_pi_session_64user_turns_aborted.jsonl": [2],
}

AMPLE = 1 << 40


@pytest.fixture(params=FILES)
def imported(request: pytest.FixtureRequest, shared_data: Path, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with the conversations of one public file."""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.import_file(shared_data / request.param).conversations
        yield ledger


def test_the_public_transcripts_go_through_the_whole_pipeline(
    imported: Ledger, request: pytest.FixtureRequest
) -> None:
    reports = [imported.compact(name, scope=scope) for scope, name in imported.conversations()]
    assert all(outcome.result == "completed" for report in reports for outcome in report.outcomes)
    name = request.node.callspec.params["imported"]
    if name in LONG:
        assert sorted(report.completed for report in reports) == sorted(LONG[name])
    for report in reports:
        _check_requests(imported, report)
    verification = imported.verify()
    assert verification.ok, verification.findings
    assert verification.events == 3 * sum(report.completed for report in reports)


def _check_requests(ledger: Ledger, report: CompactionReport) -> None:
    """Every shape, with ample and with little room."""
    pairs = report.plan.eligibility.pairs
    conversation = report.conversation
    for shape in SHAPES:
        full = ledger.assemble(conversation, budget=AMPLE, shape=shape)
        assert full.manifest.mode == "full"
        assert full.manifest.count("left_out") == 0
        _check_users(full, pairs)
        for share in (3, 10):
            budget = max(len(full.body) // share, 100)
            for fallback in ("newest_originals", "newest_mixed"):
                cut = ledger.assemble(conversation, budget=budget, shape=shape, fallback=fallback)
                _check_cut(cut, pairs, budget)


def _check_users(assembly: Assembly, pairs: Sequence[Pair]) -> None:
    """H1: every user message stands in the request, verbatim and in order."""
    body = assembly.body
    at = 0
    for pair in pairs:
        text = json.dumps(replace_surrogates(pair.user.text)[0], ensure_ascii=False).encode()
        at = body.index(text, at) + len(text)


def _check_cut(assembly: Assembly, pairs: Sequence[Pair], budget: int) -> None:
    """H3, H4, H8: within the budget, the newest without gaps, and every pair accounted for."""
    manifest = assembly.manifest
    assert len(assembly.body) == manifest.bytes_used <= budget
    entries = manifest.pairs
    assert [entry.index for entry in entries] == list(range(len(pairs)))
    seen = [entry.disposition != "left_out" for entry in entries]
    assert seen == sorted(seen)
    first = seen.index(True) if any(seen) else len(pairs)
    _check_users(assembly, pairs[first:])


def test_a_policy_of_their_own_for_short_conversations(shared_data: Path, tmp_path: Path) -> None:
    """The tool-using dialogs of tau-bench are short: with a smaller policy they have ranges too (W2)."""
    policy = WindowPolicy(minimum_pairs=10, keep_newest=0)
    with Ledger.open(tmp_path / "ledger.db", policy=policy) as ledger:
        ledger.import_file(shared_data / "tools_openai_chat_taubench_airline_4trajectories.json")
        run = ledger.compact_all()
        assert sorted(report.completed for report in run.reports) == [1, 1, 1, 2]
        for report in run.reports:
            _check_requests(ledger, report)
        assert ledger.verify().ok
