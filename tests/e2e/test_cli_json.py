"""Every document that `--json` prints fits its committed schema, which fits the models."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from archives import write_archive
from backends import everyday_database
from command_line import call
from jsonschema import Draft202012Validator
from pg_servers import fresh_schema

CALLS: dict[str, list[str]] = {
    "plan": ["plan", "fund-research"],
    "compact": ["compact", "fund-research"],
    "assemble": ["assemble", "fund-research", "--budget", "30000"],
    "ranges": ["ranges"],
    "show": ["show", "fund-research", "0"],
    "log": ["log", "--limit", "100"],
    "replay": ["replay", "--at", "12"],
    "diff": ["diff", "--from", "-1", "--to", "12"],
    "status": ["status"],
    "verify": ["verify"],
    "rebuild": ["rebuild"],
    "version": ["version"],
}


@pytest.fixture(scope="session")
def schemas(repo_root: Path) -> dict[str, Any]:
    """The committed schemas by name."""
    folder = repo_root / "docs" / "schemas"
    return {
        path.name.removesuffix(".schema.json"): json.loads(path.read_text("utf-8"))
        for path in folder.glob("*.schema.json")
    }


def check(document: Any, schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)


def test_what_is_committed_is_what_the_models_say(repo_root: Path) -> None:
    path = repo_root / "docs" / "schemas" / "make_schemas.py"
    spec = importlib.util.spec_from_file_location("make_schemas", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    wanted: dict[Path, str] = script.files()
    stale = [file.name for file, text in wanted.items() if file.read_text("utf-8") != text]
    assert stale == [], "run docs/schemas/make_schemas.py"
    assert set(path.parent.glob("*.json")) == {file for file in wanted if file.suffix == ".json"}


@pytest.mark.parametrize("name", CALLS)
def test_a_command_prints_one_document(name: str, ledger: Path, schemas: dict[str, Any]) -> None:
    words = CALLS[name]
    done = call(*words, "--json", *(() if name == "version" else ("--ledger", ledger))).fine()
    check(done.json, schemas[name])


def test_import(transcript: Path, tmp_path: Path, schemas: dict[str, Any]) -> None:
    check(
        call("import", transcript, "--json", ledger=tmp_path / "l.db").fine().json,
        schemas["import"],
    )
    check(
        call("import", transcript, "--update", "--json", ledger=tmp_path / "l.db").fine().json,
        schemas["import"],
    )


@pytest.mark.slow
def test_review(ledger: Path, schemas: dict[str, Any]) -> None:
    words = ("assemble", "fund-research", "--budget", "30000", "--record", "--run", "run-065")
    call(*words, ledger=ledger).fine()
    done = call("delivered", "run-065", "--json", ledger=ledger).fine()
    check(done.json, schemas["delivered"])
    done = call("replay", "--at", "12", "fund-research", "--json", ledger=ledger).fine()
    check(done.json, schemas["replay"])


@pytest.mark.slow
def test_backfill(tmp_path: Path, schemas: dict[str, Any]) -> None:
    write_archive(tmp_path / "archive", 60, each=30)
    (tmp_path / "archive" / "notes.txt").write_text("nothing that could be read")
    for words in (["--import-only"], []):
        done = call(
            "backfill", tmp_path / "archive", *words, "--json", ledger=tmp_path / "ledger.db"
        )
        assert (done.code, done.err) == (1, "")
        check(done.json, schemas["backfill"])


def test_import_summary(ledger: Path, tmp_path: Path, schemas: dict[str, Any]) -> None:
    summary = {
        "conversation": "fund-research",
        "from_pair": 20,
        "bind": "current",
        "model": {"provider": "elsewhere", "name": "m"},
        "prompt": "conversation-compaction@2",
        "text": "Brannock stood at 51.21 EUR on 27 February 2026.",
        "origin": "old-store",
    }
    check(summary, schemas["summary-file"])
    file = tmp_path / "summary.json"
    file.write_text(json.dumps(summary))
    done = call("import-summary", file, "--json", ledger=ledger).fine()
    check(done.json, schemas["import-summary"])


@pytest.mark.slow
def test_migrate(schemas: dict[str, Any]) -> None:
    url = everyday_database()
    with fresh_schema(url) as schema:
        place = f"{url}{'&' if '?' in url else '?'}schema={schema}"
        for words in (["--dry-run"], [], ["--roles", "writer", "reader"]):
            done = call("migrate", *words, "--json", "--ledger", place).fine()
            check(done.json, schemas["migrate"])
        done = call("status", "--json", "--ledger", place).fine()
        check(done.json, schemas["status"])


def test_an_error_is_a_document_too(ledger: Path, schemas: dict[str, Any]) -> None:
    done = call("plan", "nope", "--json", ledger=ledger)
    message = done.failed("unknown_conversation")
    check(done.json, schemas["error"])
    assert done.json == {
        "error": {"code": "unknown_conversation", "message": message, "place": None}
    }


def test_json_may_stand_before_the_command(demo_ledger: Path) -> None:
    before = call("--json", "--ledger", demo_ledger, "--scope", "default", "ranges").fine()
    assert (
        before.out == call("ranges", "--scope", "default", "--json", ledger=demo_ledger).fine().out
    )


def test_every_schema_is_closed(schemas: dict[str, Any]) -> None:
    for schema in schemas.values():
        for part in (schema, *schema.get("$defs", {}).values()):
            assert part["additionalProperties"] is False
            if "summary" not in schema["title"].lower():
                assert sorted(part["required"]) == sorted(part["properties"])
