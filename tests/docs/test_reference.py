"""The reference pages say what the code says: events, errors, codes and settings."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from compaction_ledger import Settings, WindowPolicy
from compaction_ledger.domain import errors
from compaction_ledger.domain.conversation import RunState
from compaction_ledger.domain.eligibility import LeftOutReason
from compaction_ledger.domain.errors import (
    DamagedLog,
    InvalidProof,
    LedgerError,
    SigningRefused,
)
from compaction_ledger.domain.events import DeliveredPairs, DeliveredSummary, ReleaseReason
from compaction_ledger.domain.finish import FAILURE_CODES, FinishFacts, FinishSignal, Usage
from compaction_ledger.domain.grounding import Ungrounded
from compaction_ledger.domain.grounding_items import GroundedKind
from compaction_ledger.domain.identity import Job
from compaction_ledger.domain.manifest import Disposition, Mode, RejectionReason
from compaction_ledger.domain.planning import PlanStatus
from compaction_ledger.domain.prompts import Verdict
from compaction_ledger.domain.read_models import AttemptOutcome, RangeStatus, SummaryStatus
from compaction_ledger.domain.window.chunks import ChunkJob
from compaction_ledger.domain.window.events import (
    DeliveredChunk,
    DeliveredMessages,
    DeliveredStub,
    PinProposer,
)
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.policy import BudgetNumbers
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.usecases.claiming import RangeResult

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def _page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def _sections(page: str) -> dict[str, str]:
    """The text below each heading of the second level, by heading."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _first_column(section: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


# --- events -----------------------------------------------------------------------------------------

EVENTS = _sections(_page("events.md"))
STORED = {f"{name}@{schema}": fact for fact, (name, schema) in codec.STORED_NAMES.items()}


def test_every_stored_event_has_a_section_and_nothing_else_has() -> None:
    assert [title.strip("`") for title in EVENTS if "@" in title] == list(STORED)


@pytest.mark.parametrize("topic", STORED)
def test_members_of_an_event(topic: str) -> None:
    listed = _first_column(EVENTS[f"`{topic}`"])
    assert listed == [field.name for field in fields(STORED[topic])]


@pytest.mark.parametrize("topic", STORED)
def test_example_of_an_event_is_one(topic: str) -> None:
    found = re.search(r"```json\n(.+?)\n```", EVENTS[f"`{topic}`"])
    assert found is not None
    example = found[1].encode()
    assert codec.encode(codec.decode(topic, example)) == example


def test_members_of_parts() -> None:
    assert _first_column(EVENTS["Job"]) == [field.name for field in fields(Job)]
    assert _first_column(EVENTS["Chunk job"]) == [field.name for field in fields(ChunkJob)]
    parts = [*fields(FinishFacts), *fields(Usage)]
    assert _first_column(EVENTS["Finish and usage"]) == [field.name for field in parts]
    delivered = EVENTS["`RequestDelivered@2`"]
    for field in (*fields(DeliveredPairs), *fields(DeliveredSummary)):
        assert f"`{field.name}`" in delivered
    delivered = EVENTS["`WindowDelivered@1`"]
    for part in (WindowKey, DeliveredMessages, DeliveredChunk, DeliveredStub):
        assert all(f"`{field.name}`" in delivered for field in fields(part))
    for members, section in ((BudgetNumbers, "ChunkClaimed@1"), (Ungrounded, "ChunkCompleted@1")):
        assert all(f"`{field.name}`" in EVENTS[f"`{section}`"] for field in fields(members))


def test_words_of_pins_and_of_what_is_not_grounded_are_named() -> None:
    assert all(f"`{word}`" in EVENTS["`PinAccepted@1`"] for word in get_args(PinProposer))
    assert all(f"`{word}`" in EVENTS["`ChunkCompleted@1`"] for word in get_args(GroundedKind))


def test_signals_are_named() -> None:
    for signal in get_args(FinishSignal):
        assert f"`{signal}`" in EVENTS["Finish and usage"]


FOUND = (DamagedLog, InvalidProof, SigningRefused)
"""What ends a command with exit code 1."""


# --- errors -----------------------------------------------------------------------------------------


def _tree(kind: type[LedgerError]) -> list[type[LedgerError]]:
    """A class and its kinds, as they stand in the module of errors."""
    below = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    return [kind, *(found for child in below for found in _tree(child))]


def test_every_error_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| .+ \| (\d) \|$", _page("errors.md"), re.MULTILINE)
    expected = [
        (kind.__name__, kind.code, "1" if issubclass(kind, FOUND) else "2")
        for kind in _tree(LedgerError)
    ]
    assert rows == expected


def test_the_tree_is_drawn_as_it_is() -> None:
    drawing = re.search(r"```text\n(LedgerError\n.+?)```", _page("errors.md"), re.DOTALL)
    assert drawing is not None
    drawn = [
        (len(found[1]) // 4, found[2])
        for found in re.finditer(r"^([│├└─ ]*)(\w+)", drawing[1], re.MULTILINE)
    ]
    expected = [(kind.__mro__.index(LedgerError), kind.__name__) for kind in _tree(LedgerError)]
    assert drawn == expected


# --- codes ------------------------------------------------------------------------------------------

CODES = _sections(_page("eligibility-reasons.md"))
LITERALS: dict[str, Any] = {
    "LeftOutReason": LeftOutReason,
    "RejectionReason": RejectionReason,
    "Verdict": Verdict,
    "Disposition": Disposition,
    "Mode": Mode,
    "PlanStatus": PlanStatus,
    "RangeResult": RangeResult,
    "ReleaseReason": ReleaseReason,
    "SummaryStatus": SummaryStatus,
    "RangeStatus": RangeStatus,
    "AttemptOutcome": AttemptOutcome,
    "RunState": RunState,
}


@pytest.mark.parametrize("name", LITERALS)
def test_every_code_has_its_row(name: str) -> None:
    [section] = [text for title, text in CODES.items() if f"`{name}`" in title]
    assert sorted(_first_column(section)) == sorted(get_args(LITERALS[name]))


def test_every_section_of_codes_is_compared() -> None:
    assert {title.split("`")[1] for title in CODES} == set(LITERALS)


def test_finish_codes_in_order() -> None:
    listed = [code for code in _first_column(_page("finish-codes.md")) if code in FAILURE_CODES]
    assert tuple(dict.fromkeys(listed)) == FAILURE_CODES


# --- settings ---------------------------------------------------------------------------------------


_NONE = {"none": "null"}


def test_settings_and_their_defaults() -> None:
    section = _sections(_page("settings.md"))["`Settings`"]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", section, re.MULTILINE)
    fields_of = Settings.model_fields.items()
    defaults = {
        name: list(field.default) if isinstance(field.default, tuple) else field.default
        for name, field in fields_of
    }
    assert {name: json.loads(_NONE.get(value) or value) for name, value in rows} == defaults


def test_policy_and_its_defaults() -> None:
    section = _sections(_page("settings.md"))["`WindowPolicy`"]
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.MULTILINE)
    policy = WindowPolicy()
    expected = {field.name: getattr(policy, field.name) for field in fields(policy)}
    assert {name: int(value) for name, value in rows} == expected
