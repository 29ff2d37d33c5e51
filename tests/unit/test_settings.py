"""Settings are checked when they are made, and the path of the ledger has an order of sources."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from compaction_ledger import InvalidSetting, LedgerError, Settings
from compaction_ledger.settings import DEFAULT_PATH, ledger_place


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"lease_seconds": 0}, "lease_seconds: Input should be greater than 0"),
        ({"lease_seconds": float("nan")}, "lease_seconds: "),
        ({"lease_seconds": 86_401}, "lease_seconds: "),
        ({"attempts_at_once": 0}, "attempts_at_once: "),
        ({"attempts_at_once": "many"}, "attempts_at_once: "),
        ({"outage_after": 1_001}, "outage_after: "),
        ({"leese_seconds": 5}, "leese_seconds: Extra inputs are not permitted"),
        ({"attempts_at_once": 0, "outage_after": 0}, "attempts_at_once: "),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Settings(**values)
    assert str(refusal.value).startswith(said)
    assert refusal.value.place == said.partition(":")[0]
    assert isinstance(refusal.value, LedgerError)
    assert isinstance(refusal.value, ValueError)


def test_right_values_are_kept() -> None:
    settings = Settings(lease_seconds=1, attempts_at_once=10_000, outage_after=1_000)
    assert (settings.lease_seconds, settings.attempts_at_once, settings.outage_after) == (
        1.0,
        10_000,
        1_000,
    )
    assert Settings() == Settings(lease_seconds=300, attempts_at_once=4, outage_after=3)
    assert set(inspect.signature(Settings).parameters) == set(Settings.model_fields)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().lease_seconds = 5


@pytest.mark.parametrize(
    ("given", "environment", "path"),
    [
        (Path("a.db"), {"COMPACTION_LEDGER": "b.db"}, Path("a.db")),
        (None, {"COMPACTION_LEDGER": "b.db"}, Path("b.db")),
        (None, {"COMPACTION_LEDGER": ""}, DEFAULT_PATH),
        (None, {}, DEFAULT_PATH),
        ("postgresql://host/db", {"COMPACTION_LEDGER": "b.db"}, "postgresql://host/db"),
        (None, {"COMPACTION_LEDGER": "postgres://host/db"}, "postgres://host/db"),
        ("postgresql+driver://u:p@host/db", {}, "postgresql+driver://u:p@host/db"),
        ("postgres.db", {}, Path("postgres.db")),
        ("C:/ledger.db", {}, Path("C:/ledger.db")),
        (Path("postgresql://host/db"), {}, Path("postgresql:/host/db")),
    ],
)
def test_where_the_ledger_is(
    given: str | Path | None, environment: dict[str, str], path: str | Path
) -> None:
    assert ledger_place(given, environment) == path
