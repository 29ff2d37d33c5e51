"""The generated conversation that the benchmarks run on, and a ledger with all its ranges summarized."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger import (
    Answer,
    FinishFacts,
    Ledger,
    ModelIdentity,
    NewMessage,
    NewRun,
    SummaryRequest,
)

CONVERSATION = "bench"
_QUESTION = (
    "Question {n}: the NAV of fund {fund} was {nav} EUR on 2026-{month:02d}-{day:02d}; its ongoing "
    "charges are {fee} per cent. Please compare it with the share class we looked at before, keep the "
    "investment horizon of seven years in mind, and tell me which documents you used. "
)
_REPLY = (
    "Reply {n}: fund {fund} closed at {nav} EUR on 2026-{month:02d}-{day:02d}. The ongoing charges "
    "of {fee} per cent are those of the key information document; the entry charge is not included. "
    "Over seven years the difference of the two share classes is the charge, compounded. "
)
_CHINESE = (
    "问题 {n}：基金 {fund} 的净值为 {nav} 欧元，日期 2026-{month:02d}-{day:02d}，费用 {fee}%。"
)


class FirstSentences:
    """A summarizer of fixed cost: the first sentence of each reply."""

    model = ModelIdentity.of("bench", "first-sentences")

    def summarize(self, request: SummaryRequest) -> Answer:
        """Answer with one sentence of each reply."""
        text = " ".join(reply.text.split(". ", 1)[0] + "." for reply in request.replies)
        return Answer(text, FinishFacts(("stop",)))


def lines(pairs: int) -> tuple[list[NewMessage], list[NewRun]]:
    """``pairs`` pairs of about 1,300 bytes; every tenth question is in Chinese."""
    messages: list[NewMessage] = []
    runs: list[NewRun] = []
    for n in range(pairs):
        values = {
            "n": n,
            "fund": n % 97,
            "nav": f"{50 + n * 37 % 5000 / 100:.2f}",
            "month": n % 12 + 1,
            "day": n % 28 + 1,
            "fee": f"{n % 190 / 100:.2f}",
        }
        question = _CHINESE if n % 10 == 9 else _QUESTION
        run = f"run-{n:06d}"
        runs.append(NewRun(run))
        messages.append(NewMessage(f"user-{n:06d}", run, "user", question.format(**values) * 2))
        messages.append(
            NewMessage(f"assistant-{n:06d}", run, "assistant", _REPLY.format(**values) * 3)
        )
    return messages, runs


def summarized_ledger(path: Path, pairs: int) -> Ledger:
    """A ledger at ``path`` with one conversation whose ranges are all summarized."""
    ledger = Ledger.open(path, summarizer=FirstSentences())
    ledger.transcripts.append("default", CONVERSATION, *lines(pairs))
    ledger.compact(CONVERSATION)
    return ledger
