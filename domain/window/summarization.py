"""What a summarizer of chunks is given and what is made of its answer (T7, T8): originals in, structure
out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

from compaction_ledger.domain.finish import Answer, FailureCode
from compaction_ledger.domain.grounding import Ungrounded
from compaction_ledger.domain.identifiers import replace_surrogates
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion
from compaction_ledger.domain.messages.interface import EntryRole, PartKind


@dataclass(frozen=True, slots=True)
class ChunkLine:
    """One readable part of an original message. ``name`` is the tool's, of calls and results."""

    message_id: str
    role: EntryRole
    kind: PartKind
    name: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """The input of one attempt: a prompt version with its instructions, and a chunk's originals. No
    summaries.
    """

    prompt: PromptVersion
    instructions: str
    lines: tuple[ChunkLine, ...]

    def content(self) -> str:
        """The lines as JSON Lines: whatever stands in them stays inside a JSON string (C5)."""
        return "\n".join(map(_json_line, self.lines))


def _json_line(line: ChunkLine) -> str:
    fields = {
        "message_id": line.message_id,
        "role": line.role,
        "kind": line.kind,
        **({} if line.name is None else {"tool": replace_surrogates(line.name)[0]}),
        "text": replace_surrogates(line.text)[0],
    }
    return json.dumps(fields, ensure_ascii=False)


class ChunkSummarizer(Protocol):
    """A model that condenses chunks of a running agent's transcript."""

    @property
    def model(self) -> ModelIdentity:
        """Provider, name and the settings that change output."""
        ...

    def summarize_chunk(self, request: ChunkRequest) -> Answer:
        """Call the model once. ``Answer.text`` is the JSON it gave, as it gave it. Faults come back as
        answers.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChunkVerdict:
    """What an answer is worth: the codes of its failures (in order, empty for a success), or the accepted
    summary.

    ``text`` is the structured summary as canonical JSON, ``ungrounded`` what it says without its source
    (T13).
    """

    codes: tuple[FailureCode, ...]
    text: str = ""
    ungrounded: tuple[Ungrounded, ...] = ()
