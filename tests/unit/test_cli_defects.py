"""A defect is one readable line too; where it is shows only when asked for."""

from __future__ import annotations

import json

import pytest
import typer

from compaction_ledger.cli.failing import DEBUG_VARIABLE, run


def failing_app() -> typer.Typer:
    app = typer.Typer()

    @app.command()
    def fail(as_json: bool = typer.Option(False, "--json")) -> None:
        raise ZeroDivisionError("by nothing")

    return app


def test_a_defect_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    assert run(failing_app(), ["--json"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error[internal]: ZeroDivisionError: by nothing")
    assert printed.err.count("\n") == 1
    assert json.loads(printed.out)["error"]["code"] == "internal"


def test_where_a_defect_is_shows_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    with pytest.raises(ZeroDivisionError):
        run(failing_app(), ["--json"])
