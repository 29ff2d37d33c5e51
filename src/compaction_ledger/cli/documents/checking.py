"""What `check` answers."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_ledger.cli.documents.common import Count, Document
from compaction_ledger.domain.messages.interface import Wire
from compaction_ledger.domain.messages.validity import CHECKERS

_UNFINISHED = frozenset({"pending_call", "last_role"})


class TranscriptProblem(Document):
    """Something for which the provider would refuse the messages (T2, T5)."""

    code: str
    """Stable; see the table in check-a-transcript.md."""

    place: str
    """The message, by its number from 0, and the part of it."""

    message: str


class CheckedTranscript(Document):
    """One list of messages of the file."""

    place: str
    """File and line, or file and path inside the document."""

    shape: str
    """The wire shape that it was checked as."""

    messages: Count
    """How many messages it has."""

    problems: list[TranscriptProblem]
    """In the order of the messages."""

    @classmethod
    def of(
        cls, shape: str, place: str, messages: Sequence[Wire], *, unfinished: bool
    ) -> CheckedTranscript:
        """``unfinished``: what only says how far the conversation has come is no problem."""
        problems = [
            TranscriptProblem(code=one.code, place=one.place, message=one.message)
            for one in CHECKERS[shape](messages)
            if not (unfinished and one.code in _UNFINISHED)
        ]
        return cls(place=place, shape=shape, messages=len(messages), problems=problems)


class CheckDocument(Document):
    """`compaction-ledger check`."""

    ok: bool
    """Whether nothing was found."""

    transcripts: list[CheckedTranscript]
