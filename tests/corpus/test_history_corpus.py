"""T15 over the public transcripts: what stands in a message is found in it, and quoted as it stands."""

from __future__ import annotations

import random
import re
from itertools import islice
from pathlib import Path

import pytest

from compaction_ledger import HistoryQuery, Ledger
from compaction_ledger.domain.messages.interface import Part
from compaction_ledger.domain.messages.shapes import SHAPES
from compaction_ledger.domain.terms import is_unspaced, search_terms
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import NewOriginal, message_digest, wire_bytes
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
CONVERSATIONS = [
    "long_memorybank_zh_en_5users.json",
    "long_goodai_ltm_mixtral_emoji_175pairs.events.jsonl",
]
WORDS = re.compile(r"\S+")


def phrase_of(text: str, chance: random.Random) -> str | None:
    """A few neighboring words of the text, as they stand; of unspaced script, a few characters."""
    words = list(WORDS.finditer(text))
    if not words:
        return None
    first = chance.randrange(len(words))
    last = min(first + chance.randrange(4), len(words) - 1)
    phrase = text[words[first].start() : words[last].end()][:60]
    if len(words) == 1 or len(phrase) == 60:
        phrase = phrase[:12]
    terms = search_terms(phrase)
    fine = '"' not in phrase and 0 < len(terms.sequence) <= 20
    return phrase if fine else None


@pytest.mark.slow
@pytest.mark.parametrize("name", WIRES)
def test_every_word_of_a_run_can_be_found_and_is_quoted_exactly(
    shared_data: Path, tmp_path: Path, name: str
) -> None:
    chance = random.Random(name)
    checked = 0
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        for number, found in enumerate(islice(read_transcripts(shared_data / name), 20)):
            shape = SHAPES[found.shape]
            entries = shape.read(found.messages)
            key = WindowKey("default", "corpus", f"run-{number}")
            kept = [
                NewOriginal(
                    entry.role,
                    0,
                    number,
                    wire_bytes(entry.wire),
                    message_digest(shape.settled(entry.wire)),
                )
                for entry in entries
            ]
            ledger._parts.originals.append(key, found.shape, 0, kept)
            texts = {
                (entry.id, part.part): part
                for entry in entries
                for part in shape.parts(entry.wire)
                if part.kind in ("text", "call", "result")
            }
            checked += check(ledger, key.run, texts, chance)
    assert checked >= 4


def check(
    ledger: Ledger,
    run: str,
    texts: dict[tuple[str, int], Part],
    chance: random.Random,
) -> int:
    """Look for phrases of one run; how many were looked for."""
    history = ledger.history_search("corpus", run=run)
    checked = 0
    for message, part in chance.sample(sorted(texts), min(60, len(texts))):
        text = texts[message, part].text
        phrase = phrase_of(text, chance)
        if phrase is None:
            continue
        # From a middle of a word nothing is found: the last word may have been cut.
        whole = phrase.rsplit(" ", 1)[0] if " " in phrase else phrase
        if not search_terms(whole).sequence:
            continue
        place = history.search(HistoryQuery(f'"{whole}"', limit=50))
        for hit in place.hits:
            if hit.run == run:
                original = texts[hit.message_id, hit.part].text
                assert original[hit.start : hit.end] == hit.quote
        if text.find(whole) >= 0 and is_bounded(text, whole) and place.next_offset is None:
            assert (run, message, part) in {(h.run, h.message_id, h.part) for h in place.hits}, (
                whole
            )
            checked += 1
        read = history.read_message(message, run, length=20_000)
        if read.next_start is None:
            assert text in [piece.text for piece in read.parts] or not text
    return checked


def is_bounded(text: str, phrase: str) -> bool:
    """Whether it stands there between characters that are of no word."""
    at = text.find(phrase)
    before, after = text[at - 1 : at] if at else "", text[at + len(phrase) : at + len(phrase) + 1]
    return not any(sign.isalnum() and not is_unspaced(sign) for sign in (before, after))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_sentence_of_a_conversation_can_be_found(
    shared_data: Path, tmp_path: Path, name: str
) -> None:
    chance = random.Random(name)
    checked = 0
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.import_file(shared_data / name)
        for scope, conversation in islice(ledger.conversations(), 5):
            history = ledger.history_search(conversation, scope=scope)
            lines = ledger.transcripts.conversation(scope, conversation).messages
            texts = {line.id: line.text for line in lines}
            for line in chance.sample(list(lines), min(60, len(lines))):
                phrase = phrase_of(line.text, chance)
                if phrase is None or not is_bounded(line.text, phrase):
                    continue
                found = history.search(HistoryQuery(f'"{phrase}"', limit=50))
                for hit in found.hits:
                    assert texts[hit.message_id][hit.start : hit.end] == hit.quote
                if found.next_offset is None:
                    assert line.id in {hit.message_id for hit in found.hits}, phrase
                    checked += 1
    assert checked >= 20
