"""Conversations that are everywhere they can be, for whoever erases them."""

from __future__ import annotations

from histories import SCOPE
from window_runs import BUDGET, RememberingSummarizer, growing, window_on

from compaction_ledger import Ledger
from compaction_ledger.composition import Parts, history_search
from compaction_ledger.domain.history import HistoryQuery
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.settings import Settings

RUN = "run-1"
TURNS = 14
PIN = "Never spend more than 500 euros on {}."


def fill_everything(parts: Parts, conversation: str, word: str) -> Ledger:
    """A conversation in every store, in every kind of row; ``word`` stands in all of its texts.

    Its pairs are summarized, its window has chunks and a pin, it can be found, and it is due for work.
    """
    ledger = Ledger(parts, Settings())
    for number in range(60):
        run = f"{conversation}-r{number}"
        question, reply = f"What of {word} {number}?", f"The {word} costs {number} euros. " * 3
        lines = [
            NewMessage(f"u{number}", run, "user", question),
            NewMessage(f"a{number}", run, "assistant", reply),
        ]
        ledger.transcripts.append(SCOPE, conversation, lines, [NewRun(run, "completed")])
    ledger.transcripts.revise(SCOPE, conversation, "u59", f"And what of {word} now?")
    report = ledger.compact(conversation, scope=SCOPE)
    assert report.completed >= 2
    ledger.record_delivery(ledger.assemble(conversation, scope=SCOPE, budget=10**6))
    place = (SCOPE, conversation, RUN)
    window = window_on(parts, RememberingSummarizer(), place=place, budget=BUDGET, rules=True)
    for messages in growing(TURNS, {0: f"It is about {word}. {PIN.format(word)} "}):
        window.prepare(messages)
        window.compact()
    parts.originals.keep_result(SCOPE, conversation, f"a result about {word}".encode())
    found = history_search(parts, SCOPE, conversation).search(HistoryQuery(word))
    assert found.hits
    ledger.notice([(SCOPE, conversation)])
    ledger.catch_up()
    assert ledger.window_pins(conversation, scope=SCOPE)
    assert ledger.window_chunks(conversation, scope=SCOPE)
    return ledger
