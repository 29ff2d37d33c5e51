"""The export of Claude.ai: ``conversations.json``."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.infrastructure.importers.blocks import Envelope, block_parts
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_list,
    a_list_if_any,
    a_text_if_any,
    an_id_if_any,
    an_object,
    iso_time,
    refuse_unknown,
    the_list,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import (
    ImportResult,
    JsonObject,
    JsonValue,
    Sample,
)
from compaction_ledger.infrastructure.importers.reading import label, read_document
from compaction_ledger.infrastructure.importers.turns import Part

_SENDERS = frozenset({"assistant", "human"})
_ATTACHED = ("attachments", "files", "files_v2")


class ClaudeAIExportImporter:
    """One message is one whole turn, tool use included; its last text is the answer."""

    name = "claude-ai-export"
    description = "the conversations.json of a Claude.ai export"

    def sniff(self, sample: Sample) -> bool:
        """Whether every item is a conversation with ``chat_messages``."""
        items = sample.items
        return bool(items) and all({"uuid", "chat_messages"} <= set(item) for item in items)

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read every conversation of the export."""
        collector, name = Collector(self.name, path), label(path)
        for number, value in enumerate(a_list(read_document(path), name)):
            place = f"{name}[{number}]"
            record = an_object(value, place)
            parts: list[Part] = []
            for at, message in enumerate(the_list(record, "chat_messages", place)):
                here = f"{place} chat_messages[{at}]"
                parts += _message_parts(an_object(message, here), here, collector)
                collector.took()
            collector.add_parts(
                the_text(record, "uuid", place),
                parts,
                title=a_text_if_any(record, "name", place) or None,
            )
        return collector.result(conversation)


def _message_parts(message: JsonObject, place: str, collector: Collector) -> list[Part]:
    sender = the_text(message, "sender", place)
    if sender not in _SENDERS:
        raise refuse_unknown(sender, _SENDERS, "sender", place)
    for key in _ATTACHED:
        for at, _ in enumerate(a_list_if_any(message, key, place)):
            collector.left_out_part(f"{place} {key}[{at}]", "attachment", "hangs on the message")
    record = Envelope(
        place,
        "user" if sender == "human" else "assistant",
        id=an_id_if_any(message, "uuid", place),
        created_at=iso_time(message.get("created_at"), f"{place} created_at"),
        ending="ended",
    )
    return block_parts(_content(message, place), record, collector)


def _content(message: JsonObject, place: str) -> JsonValue:
    """The content blocks; exports from before there were any have only ``text``."""
    blocks = a_list_if_any(message, "content", place)
    return blocks or a_text_if_any(message, "text", place)
