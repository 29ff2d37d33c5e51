"""Who may import whom, and under which name."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

LAYERS = {"domain", "infrastructure", "projections"}
DOMAIN_MAY_USE = {"compaction_ledger", "pydantic", "pydantic_core", *sys.stdlib_module_names}
# What the optional extras bring: only these may be missing where a module is imported.
OF_EXTRAS = {
    "anthropic",
    "boto3",
    "botocore",
    "google",
    "mcp",
    "openai",
    "opentelemetry",
    "procrastinate",
    "psycopg",
    "pydantic_ai",
}
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"

IMPORT_EVERYTHING = """
import importlib, json, pkgutil, sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # as if these were not installed
import compaction_ledger

missing = []
for found in pkgutil.walk_packages(compaction_ledger.__path__, "compaction_ledger."):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
        except ImportError as error:
            # An extra may put words of its own in place of the error that names the package.
            while error.name is None and isinstance(error.__cause__, ImportError):
                error = error.__cause__
            missing.append(error.name)
json.dump({"modules": sorted(sys.modules), "missing": missing}, sys.stdout)
"""

# One breach of each contract: what is added, and to which file.
BREACHES = {
    "layers": ("infrastructure/__init__.py", "import compaction_ledger.projections"),
    "domain-dependencies": ("domain/__init__.py", "import sqlite3"),
    "domain-purity": ("domain/__init__.py", "import time"),
    "use-cases": ("usecases/__init__.py", "import compaction_ledger.infrastructure"),
    "faces": ("cli/__init__.py", "import compaction_ledger.projections"),
    "bundle-verifier": ("bundle_verifier.py", "import compaction_ledger.domain"),
    "screen": ("projections/__init__.py", "import rich"),
}


def run(code: str, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "absent",
    [
        "",
        "pydantic_ai",
        pytest.param("opentelemetry", marks=pytest.mark.slow),
        pytest.param("boto3", marks=pytest.mark.slow),
        pytest.param("openai", marks=pytest.mark.slow),
    ],
)
def test_the_layers_are_never_imported_under_a_bare_name(repo_root: Path, absent: str) -> None:
    # At the top of the repository `import domain` would work, so that is where a slip would show.
    done = run(IMPORT_EVERYTHING, repo_root, *filter(None, [absent]))
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert set(seen["modules"]) >= {f"compaction_ledger.{layer}" for layer in LAYERS}
    assert LAYERS.isdisjoint(seen["modules"])
    missing = {name if name is None else name.split(".")[0] for name in seen["missing"]}
    assert missing <= OF_EXTRAS
    assert absent in {"", "openai"} or absent in missing


@pytest.mark.slow
def test_telemetry_is_imported_with_the_first_ledger_and_not_before(repo_root: Path) -> None:
    code = """
import sys, compaction_ledger
from compaction_ledger import AsyncLedger, Ledger, cli, composition, dispatch
before = "opentelemetry" in sys.modules
Ledger.in_memory().close()
print(before, "opentelemetry" in sys.modules)
"""
    done = run(code, repo_root)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_nor_by_the_tests_themselves() -> None:
    assert LAYERS.isdisjoint(sys.modules)


def test_the_domain_uses_the_standard_library_and_pydantic_only() -> None:
    graph = grimp.build_graph("compaction_ledger", include_external_packages=True, cache_dir=None)
    inside = {"compaction_ledger.domain", *graph.find_descendants("compaction_ledger.domain")}
    imported = set[str]().union(*map(graph.find_modules_directly_imported_by, inside))
    assert len(inside) > 1
    assert {name.split(".")[0] for name in imported} - DOMAIN_MAY_USE == set()
    assert {name for name in imported if name.startswith("compaction_ledger")} <= inside


@pytest.mark.slow
def test_the_import_contracts_hold(repo_root: Path) -> None:
    done = run(LINT_IMPORTS, repo_root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(BREACHES)} kept, 0 broken" in done.stdout


@pytest.fixture
def breached_copy(repo_root: Path, tmp_path: Path) -> Path:
    """The package with real folders in place of the links, and one breach of each contract."""
    shutil.copy(repo_root / "pyproject.toml", tmp_path)
    package = tmp_path / "src" / "compaction_ledger"
    shutil.copytree(repo_root / "src" / "compaction_ledger", package)
    for file, line in BREACHES.values():
        with (package / file).open("a", encoding="utf-8") as module:
            module.write(f"\n{line}\n")
    return tmp_path


@pytest.mark.slow
def test_each_contract_notices_a_breach(breached_copy: Path) -> None:
    done = run(LINT_IMPORTS, breached_copy, PYTHONPATH=str(breached_copy / "src"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"0 kept, {len(BREACHES)} broken" in done.stdout
    told = re.sub(r"\s+", " ", done.stdout)
    for file, line in BREACHES.values():
        importer = "compaction_ledger." + file.removesuffix(".py").removesuffix("/__init__")
        assert f"{importer} -> {line.removeprefix('import ')} " in told
