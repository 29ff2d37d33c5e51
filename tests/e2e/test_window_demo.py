"""The demonstration of the window computes what it shows, and checks what it says."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, call, run
from jsonschema import Draft202012Validator


@pytest.fixture(scope="module")
def document() -> Any:
    return call("window", "demo", "--json").fine().json


@pytest.fixture(scope="module")
def told() -> Done:
    return run("window", "demo").fine()


@pytest.mark.slow
def test_every_claim_holds(document: Any) -> None:
    assert document["ok"]
    assert len(document["claims"]) >= 11
    assert [claim for claim in document["claims"] if not claim["holds"]] == []


def test_the_document_fits_its_schema(document: Any, repo_root: Path) -> None:
    schema = json.loads((repo_root / "docs/schemas/window-demo.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)


def test_the_run_is_compacted_live(document: Any) -> None:
    compacted = [turn["compacted"] for turn in document["turns"] if turn["compacted"]]
    assert len(compacted) >= 10
    assert all(said.endswith(": completed") for said in compacted)
    assert document["tokens_before"] > 4 * document["limit"]
    assert max(turn["tokens_sent"] for turn in document["turns"]) <= document["limit"]
    assert document["prefix_reuse"] > 0.8
    assert all(c["bytes_of_block"] < c["bytes_of_originals"] / 2 for c in document["chunks"])


def test_pins_are_the_users_words(document: Any) -> None:
    current = [pin["quote"] for pin in document["pins"] if pin["current"]]
    replaced = [pin["quote"] for pin in document["pins"] if not pin["current"]]
    assert replaced == ["Spend at most 4,000 EUR on extra capacity."]
    assert len(current) == 3


@pytest.mark.slow
def test_before_and_after_are_shown_in_a_terminal(told: Done, document: Any) -> None:
    for said in ("Before: ", "After: ", "reused", "The first block:", "All 11 claims hold."):
        assert said in told.out
    assert f"{document['tokens_before']:,}" in told.out
    assert "FAILED" not in told.out


@pytest.mark.slow
def test_the_ledger_can_be_kept_and_looked_at(tmp_path: Path) -> None:
    kept = tmp_path / "kept.db"
    call("window", "demo", "--keep", str(kept), "--json").fine()
    call("--ledger", str(kept), "verify").fine()
    found = call(
        *("--ledger", str(kept), "window", "search", "CHG-7711", "--conversation", "incident")
    ).fine()
    assert "CHG-7711" in found.out
    shown = call("--ledger", str(kept), "window", "show", "incident", "--json").fine().json
    assert len([chunk for chunk in shown["chunks"] if chunk["stands"]]) >= 3
    assert [pin["quote"] for pin in shown["pins"] if not pin["current"]] == [
        "Spend at most 4,000 EUR on extra capacity."
    ]
    told = call("--ledger", str(kept), "window", "show", "incident", "--run", "night-shift").fine()
    assert f"{len(shown['chunks'])} chunks, 4 pins, 0 requests." in told.out
    again = call("window", "demo", "--keep", str(kept))
    assert again.code == 2
