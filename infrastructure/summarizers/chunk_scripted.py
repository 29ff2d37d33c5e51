"""A summarizer of chunks for tests: it answers what it was told to and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.window.structure import StructuredSummary
from compaction_ledger.domain.window.summarization import ChunkRequest
from compaction_ledger.infrastructure.summarizers.scripted import SCRIPTED, plain


class ScriptedChunkSummarizer:
    """Gives the ``answers`` in order; ``requests`` holds every request it got.

    A :class:`StructuredSummary` is given as its JSON, a text as it stands; both end normally. Running out of
    answers is an error, so that a test notices a call it did not expect. For your own tests; it may be used
    from several threads.
    """

    def __init__(
        self,
        answers: Iterable[Answer | StructuredSummary | str],
        *,
        model: ModelIdentity = SCRIPTED,
    ) -> None:
        self._answers = list(map(_answer, answers))
        self._model = model
        self._lock = Lock()
        self.requests: list[ChunkRequest] = []

    @property
    def model(self) -> ModelIdentity:
        """The identity it was given."""
        return self._model

    def summarize_chunk(self, request: ChunkRequest) -> Answer:
        """The next answer. Raises :class:`InvalidSetting` when there is none left."""
        with self._lock:
            self.requests.append(request)
            if len(self.requests) > len(self._answers):
                raise InvalidSetting(
                    f"call {len(self.requests)}, but only {len(self._answers)} were scripted",
                    place="scripted summarizer",
                )
            return self._answers[len(self.requests) - 1]


def _answer(given: Answer | StructuredSummary | str) -> Answer:
    if isinstance(given, Answer):
        return given
    return plain(given if isinstance(given, str) else given.canonical())
