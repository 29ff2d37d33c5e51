"""What is found in a file of a provider's messages."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_ledger.infrastructure.importers.interface import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class WireTranscript:
    """One list of messages as the file has it, and the name of its shape (T1).

    ``place`` is the file's name with line or path: ``calls.jsonl:3.request.messages``. ``system`` is what
    stands beside the messages as their instructions (``system``, ``instructions`` or ``system_prompt`` of
    the request's body), as it is; ``None`` where nothing does.
    """

    shape: str
    place: str
    messages: list[JsonObject]
    system: JsonValue = None
