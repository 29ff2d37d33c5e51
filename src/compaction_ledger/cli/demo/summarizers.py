"""Two summarizers: one that remembers what it was given, and one that misbehaves."""

from __future__ import annotations

from compaction_ledger.domain.finish import Answer, FinishFacts
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.ports import Summarizer
from compaction_ledger.domain.summarization import SummaryRequest


class Remembering:
    """Hands every request on to another summarizer and keeps it."""

    def __init__(self, summarizer: Summarizer) -> None:
        self._summarizer = summarizer
        self.requests: list[SummaryRequest] = []

    @property
    def model(self) -> ModelIdentity:
        """The identity of the summarizer behind it."""
        return self._summarizer.model

    def summarize(self, request: SummaryRequest) -> Answer:
        """As the summarizer behind it."""
        self.requests.append(request)
        return self._summarizer.summarize(request)

    @property
    def given(self) -> str:
        """Every text that it was given."""
        return "\n".join(reply.text for request in self.requests for reply in request.replies)


class ToolCaller:
    """Answers with an excellent summary, and calls a tool beside it."""

    model = ModelIdentity.of("demo", "calls-a-tool")
    text = (
        "Aldwyn World Index costs 0.22 % a year and once fell by 33.6 %; Brannock Euro Short Bond"
        " costs 0.35 % and once fell by 4.8 %. Aldwyn stood at 112.40 EUR on 2 January 2026."
    )

    def summarize(self, request: SummaryRequest) -> Answer:
        """The same answer each time, whatever it is given."""
        del request
        return Answer(self.text, FinishFacts(signals=("stop",), tool_calls=1))
