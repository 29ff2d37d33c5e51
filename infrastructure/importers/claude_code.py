"""Session files of Claude Code: JSON Lines that form a tree by ``uuid`` and ``parentUuid``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compaction_ledger.infrastructure.importers.blocks import is_tool_result_only
from compaction_ledger.infrastructure.importers.branch import chain
from compaction_ledger.infrastructure.importers.claude_code_parts import line_parts
from compaction_ledger.infrastructure.importers.collector import Collector
from compaction_ledger.infrastructure.importers.fields import (
    a_text_if_any,
    an_id_if_any,
    an_object,
    peek,
    the_object,
    the_text,
)
from compaction_ledger.infrastructure.importers.interface import ImportResult, JsonObject, Sample
from compaction_ledger.infrastructure.importers.reading import read_lines
from compaction_ledger.infrastructure.importers.turns import Part

_MESSAGE_TYPES = frozenset({"assistant", "user"})
_Line = tuple[str, JsonObject]


class ClaudeCodeImporter:
    """Reads the main conversation of a session: the way from its last message up to the root.

    One answer of the API is written as several lines with the same ``message.id``; each line is a
    message of its own here, named by its ``uuid``.
    """

    name = "claude-code"
    description = "session files of Claude Code"

    def sniff(self, sample: Sample) -> bool:
        """Whether a line is a message as Claude Code writes it."""
        return any(
            peek(line, "type") in _MESSAGE_TYPES
            and {"uuid", "parentUuid", "sessionId", "message"} <= set(line)
            for line in sample.objects
        )

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the file line by line; the session's id names the conversation."""
        collector = Collector(self.name, path)
        lines = [(place, an_object(value, place)) for place, value in read_lines(path)]
        branch = _branch(lines, collector.source)
        parts: list[Part] = []
        session: str | None = None
        for place, line in lines:
            if _left_out(line, place, branch, collector):
                continue
            session = session or an_id_if_any(line, "sessionId", place)
            parts += line_parts(line, place, collector)
            collector.took()
        collector.add_parts(session, parts)
        return collector.result(conversation)


def _branch(lines: Sequence[_Line], source: str) -> frozenset[str]:
    """The uuids on the way from the last message up. A compaction's logical parent continues it."""
    parents: dict[str, str | None] = {}
    last: str | None = None
    for place, line in lines:
        uuid = a_text_if_any(line, "uuid", place)
        if uuid is None or line.get("isSidechain") is True:
            continue
        parents[uuid] = a_text_if_any(line, "parentUuid", place) or a_text_if_any(
            line, "logicalParentUuid", place
        )
        if peek(line, "type") in _MESSAGE_TYPES:
            last = uuid
    return frozenset() if last is None else frozenset(chain(parents, last, source))


def _left_out(line: JsonObject, place: str, branch: frozenset[str], collector: Collector) -> bool:
    kind = the_text(line, "type", place)
    if line.get("isSidechain") is True:
        collector.left_out(place, "sidechain", "a sub-agent's line")
    elif kind not in _MESSAGE_TYPES:
        collector.left_out(place, "control_event", f"line of type {kind!a}")
    elif the_text(line, "uuid", place) not in branch and not _is_parallel_result(
        line, place, branch
    ):
        collector.left_out(place, "other_branch", "not on the way to the last message")
    else:
        return False
    return True


def _is_parallel_result(line: JsonObject, place: str, branch: frozenset[str]) -> bool:
    """Results of calls made at once hang beside the way, each on its own call."""
    content = the_object(line, "message", place).get("content")
    return peek(line, "parentUuid") in branch and is_tool_result_only(content)
