"""What somebody meets who has only cloned the repository."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

MADE_HERE = ("build", "dist", "mutants", "__pycache__")


def make(folder: Path, *words: str, timeout: int = 60) -> subprocess.CompletedProcess[str]:
    # MAKEFLAGS: these tests may themselves have been started by make.
    outside = {"MAKEFLAGS", "MAKELEVEL", "PYTHONPATH", "VIRTUAL_ENV", "PYTHON"}
    return subprocess.run(
        ["make", *words],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key not in outside},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture
def clone(repo_root: Path, tmp_path: Path) -> Path:
    """The tree as it is now, without anything that was made from it."""
    fresh = tmp_path / "clone"
    ignore = shutil.ignore_patterns(".git", ".venv", ".*cache", ".hypothesis", *MADE_HERE)
    shutil.copytree(repo_root, fresh, symlinks=True, ignore=ignore)
    return fresh


def test_make_alone_explains_every_target(repo_root: Path) -> None:
    told = make(repo_root)
    assert told.returncode == 0, told.stderr
    makefile = (repo_root / "Makefile").read_text("utf-8")
    [phony] = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    explained = re.findall(r"^  ([a-z-]+) +\S", told.stdout, re.MULTILINE)
    assert sorted(explained) == sorted(phony.split())


@pytest.mark.slow
@pytest.mark.parametrize("target", ["demo", "test", "check"])
def test_an_old_python_is_refused_in_one_sentence(clone: Path, target: str) -> None:
    old = clone / "python3.9"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.1\nexit 1\n', "utf-8")
    old.chmod(0o755)
    told = make(clone, target, f"PYTHON={old}")
    assert told.returncode != 0
    assert "needs Python 3.11 or newer" in told.stderr
    assert "Python 3.9.1" in told.stderr
    assert not (clone / ".venv").exists()


def test_the_project_asks_for_the_python_that_make_asks_for(repo_root: Path) -> None:
    project = tomllib.loads((repo_root / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
    assert "sys.version_info < (3, 11)" in (repo_root / "Makefile").read_text("utf-8")


@pytest.mark.slow
def test_the_demo_runs_in_a_fresh_clone(clone: Path) -> None:
    told = make(clone, "demo", timeout=280)
    assert told.returncode == 0, told.stdout + told.stderr
    assert (clone / ".venv" / "core.stamp").exists()
    for case in ("Case A", "Case B", "Case C"):
        assert case in told.stdout
    again = make(clone, "demo")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "Installing" not in again.stdout
