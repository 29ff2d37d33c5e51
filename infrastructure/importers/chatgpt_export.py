"""ChatGPT's export (``conversations.json``) and shared conversations: trees of messages."""

from __future__ import annotations

from pathlib import Path

from compaction_ledger.infrastructure.importers.branch import chain, only_leaf
from compaction_ledger.infrastructure.importers.chatgpt_parts import message_part
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_text_if_any,
    an_id_if_any,
    an_object,
    the_object,
)
from compaction_ledger.infrastructure.importers.interface import ImportResult, JsonObject, Sample
from compaction_ledger.infrastructure.importers.reading import label, read_document


class ChatGPTExportImporter:
    """Reads the current branch: from ``current_node`` up by ``parent``."""

    name = "chatgpt-export"
    description = "the conversations.json of a ChatGPT export, or one shared conversation"

    def sniff(self, sample: Sample) -> bool:
        """Whether every conversation of the document has a mapping."""
        found = sample.items if isinstance(sample.records[0], list) else sample.objects
        return bool(found) and all(
            isinstance(each.get("mapping"), dict) and "title" in each for each in found
        )

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read every conversation of the file."""
        collector, name = Collector(self.name, path), label(path)
        document = read_document(path)
        if isinstance(document, list):
            for number, value in enumerate(document):
                _read_one(an_object(value, f"{name}[{number}]"), f"{name}[{number}]", collector)
        else:
            _read_one(an_object(document, name), name, collector)
        return collector.result(conversation)


def _read_one(record: JsonObject, place: str, collector: Collector) -> None:
    mapping = the_object(record, "mapping", place)
    nodes = {key: an_object(node, f"{place} mapping[{key!a}]") for key, node in mapping.items()}
    parents = {
        key: a_text_if_any(node, "parent", f"{place} mapping[{key!a}]")
        for key, node in nodes.items()
    }
    leaf = a_text_if_any(record, "current_node", place)
    if leaf is None:
        leaf = only_leaf(parents, place)
    branch = chain(parents, leaf, place)
    on_branch = frozenset(branch)
    found = [
        part
        for key in branch
        for part in message_part(nodes[key], f"{place} mapping[{key!a}]", collector)
    ]
    for key, node in nodes.items():
        if key not in on_branch:
            empty = node.get("message") is None
            detail = "an empty node" if empty else "a message of another branch"
            collector.left_out(f"{place} mapping[{key!a}]", "other_branch", detail)
    own_id = an_id_if_any(record, "conversation_id", place) or an_id_if_any(record, "id", place)
    collector.add_parts(own_id, found, title=a_text_if_any(record, "title", place) or None)
