"""The requests that are assembled from a ledger, and whether they say what they said before (H2, H9)."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

from histories import SCOPE
from manipulated import GOOD, LATE, OTHER, RUN, TURNS
from manipulation_rows import Requests as Outcome
from manipulations import Victim
from window_runs import BUDGET, RememberingSummarizer, window_on

from compaction_ledger import Ledger
from compaction_ledger.domain.errors import LedgerError

CONVERSATIONS = (GOOD, OTHER, LATE)
_NOTICE = "do not stand here and are not summarized"


@dataclass(frozen=True)
class Requests:
    """Of each request its messages as text, or the error's code; and whatever may stand in one: what stood
    in it before, and the originals."""

    messages: dict[str, list[str] | str]
    originals: dict[str, set[str]]

    def compared_with(self, before: Requests) -> Outcome:
        """What became of them, the worst first."""
        outcomes = {self._one(name, before) for name in before.messages}
        worst: tuple[Outcome, ...] = ("changed", "refused", "without it", "as they were")
        return next(outcome for outcome in worst if outcome in outcomes)

    def _one(self, name: str, before: Requests) -> Outcome:
        now, then = self.messages[name], before.messages[name]
        if isinstance(now, str):
            return "refused"
        if now == then:
            return "as they were"
        may_stand = {*then, *before.originals[name]}
        return "without it" if all(one in may_stand or _NOTICE in one for one in now) else "changed"


def requests_from(victim: Victim) -> Requests:
    """Three requests from conversations, and one from a window; what is in the log may be projected first."""
    with victim.opened() as ledger:
        with suppress(LedgerError):
            ledger.catch_up()
        messages = {name: _assembled(ledger, name) for name in CONVERSATIONS}
        messages["window"] = _prepared(ledger)
        originals = {name: _originals(ledger, name) for name in CONVERSATIONS}
        originals["window"] = {json.dumps(message) for message in TURNS[-1]}
    return Requests(messages, originals)


def _originals(ledger: Ledger, conversation: str) -> set[str]:
    try:
        messages = ledger.transcripts.conversation(SCOPE, conversation).messages
    except LedgerError:
        return set()
    return {_text(one.role, one.text) for one in messages}


def _assembled(ledger: Ledger, conversation: str) -> list[str] | str:
    try:
        assembly = ledger.assemble(conversation, scope=SCOPE, budget=10**6)
    except LedgerError as error:
        return error.code
    return [_text(one["role"], one["content"]) for one in assembly.messages]


def _prepared(ledger: Ledger) -> list[str] | str:
    window = window_on(ledger._parts, RememberingSummarizer(), place=RUN, budget=BUDGET, rules=True)
    try:
        return [json.dumps(message) for message in window.prepare(TURNS[-1]).messages]
    except LedgerError as error:
        return error.code


def _text(role: str, text: str) -> str:
    return json.dumps({"role": role, "content": text})
