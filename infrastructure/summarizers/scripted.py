"""A summarizer for tests: it answers what it was told to and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import Answer, FinishFacts
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.summarization import SummaryRequest

SCRIPTED = ModelIdentity.of("compaction-ledger", "scripted")


def plain(text: str) -> Answer:
    """An answer that ended normally with ``text``."""
    return Answer(text=text, finish=FinishFacts(signals=("stop",)))


class ScriptedSummarizer:
    """Gives the ``answers`` in order; ``requests`` holds every request it got.

    Running out of answers is an error, so that a test notices a call it did not expect. For your
    own tests; it may be used from several threads.
    """

    def __init__(self, answers: Iterable[Answer | str], *, model: ModelIdentity = SCRIPTED) -> None:
        self._answers = [plain(given) if isinstance(given, str) else given for given in answers]
        self._model = model
        self._lock = Lock()
        self.requests: list[SummaryRequest] = []

    @property
    def model(self) -> ModelIdentity:
        """The identity it was given."""
        return self._model

    def summarize(self, request: SummaryRequest) -> Answer:
        """The next answer. Raises :class:`InvalidSetting` when there is none left."""
        with self._lock:
            self.requests.append(request)
            if len(self.requests) > len(self._answers):
                raise InvalidSetting(
                    f"call {len(self.requests)}, but only {len(self._answers)} were scripted",
                    place="scripted summarizer",
                )
            return self._answers[len(self.requests) - 1]
