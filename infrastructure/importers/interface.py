"""The port of the importers, what they hand back, and the report of what they left out.

An importer turns a file that another program wrote into conversations of messages and runs. Text is
kept exactly as the file has it (E6), and nothing is dropped silently: each record of the file is
either in ``ImportResult.conversations`` or named in the report with one of the ``REASONS``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from compaction_ledger.domain.transcript import NewMessage, NewRun

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

ReasonCode = Literal[
    "attachment",
    "control_event",
    "duplicate",
    "media",
    "metadata",
    "no_message",
    "no_request",
    "other_branch",
    "other_choice",
    "provider_error",
    "sidechain",
    "unsupported_block",
    "unsupported_body",
]

REASONS: Mapping[ReasonCode, str] = MappingProxyType(
    {
        "attachment": "a file or document that hangs on a message",
        "control_event": "an event that steers the program and says nothing",
        "duplicate": "a copy of what another record says",
        "media": "an image, sound or video",
        "metadata": "a member or line about the conversation, none of its messages",
        "no_message": "a node of the tree without a message",
        "no_request": "a recorded exchange whose request holds no messages",
        "other_branch": "a message that is not on the current branch",
        "other_choice": "a further answer to the same request; the first was taken",
        "provider_error": "a recorded response that is an error",
        "sidechain": "a line of a sub-agent's own conversation",
        "unsupported_block": "a content block of a type that this importer does not know",
        "unsupported_body": "a recorded response that is no JSON object, such as raw stream events",
    }
)


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """One conversation as the file has it. The scope is the caller's to give."""

    conversation: str
    runs: tuple[NewRun, ...]
    messages: tuple[NewMessage, ...]
    title: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOutRecord:
    """What did not become a message. ``part``: only a part of a record whose rest was imported."""

    place: str
    reason: ReasonCode
    detail: str
    part: bool = False


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was read and what of it was left out.

    ``records`` is what the format counts (messages, lines, nodes, events); each of them became one
    or more messages (``imported``) or is in ``left_out``.
    """

    importer: str
    source: str
    records: int
    imported: int
    conversations: int
    runs: int
    messages: int
    messages_by_kind: Mapping[str, int]
    left_out: tuple[LeftOutRecord, ...]

    @property
    def left_out_by_reason(self) -> dict[ReasonCode, int]:
        """How many records and parts were left out, by reason, in the order of ``REASONS``."""
        counts: Counter[ReasonCode] = Counter(record.reason for record in self.left_out)
        return {reason: counts[reason] for reason in REASONS if counts[reason]}

    @property
    def left_out_records(self) -> int:
        """How many whole records were left out."""
        return sum(not record.part for record in self.left_out)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The conversations of one file, in the file's order, and the report."""

    conversations: tuple[ImportedConversation, ...]
    report: ImportReport


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a file, from which an importer tells whether it is its own.

    ``records``: the first lines of a JSON Lines file, or the one document of a JSON file.
    """

    records: tuple[JsonValue, ...]

    @property
    def objects(self) -> list[JsonObject]:
        """The records that are JSON objects."""
        return [record for record in self.records if isinstance(record, dict)]

    @property
    def items(self) -> list[JsonObject]:
        """The objects in the list that a JSON document is, if it is one."""
        if len(self.records) != 1 or not isinstance(self.records[0], list):
            return []
        return [item for item in self.records[0] if isinstance(item, dict)]


class Importer(Protocol):
    """Reads one format. Stateless: one instance serves every file."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""
        ...

    @property
    def description(self) -> str:
        """One line for people."""
        ...

    def sniff(self, sample: Sample) -> bool:
        """Whether the file is of this format beyond doubt."""
        ...

    def read(self, path: Path, *, conversation: str | None = None) -> ImportResult:
        """Read the whole file. ``conversation`` is the id for a file that holds exactly one.

        Raises :class:`MalformedRecord`, :class:`DuplicateMessageId` or :class:`InvalidId`, each
        naming the place; :class:`InvalidSetting` if ``conversation`` is given for several.
        """
        ...
