"""The reference page of the command line says all that there is."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import call

from compaction_ledger.domain.errors import LedgerError

EVERYWHERE = {"--ledger", "--scope", "--json", "--help"}


@pytest.fixture(scope="module")
def page(repo_root: Path) -> str:
    """The page."""
    return (repo_root / "docs" / "reference" / "cli.md").read_text("utf-8")


def commands() -> list[str]:
    """The commands, as the help lists them."""
    listed = call("--help").fine().out.partition("Commands:\n")[2]
    return [line.split()[0] for line in listed.splitlines()]


def kinds(error: type[LedgerError]) -> Iterator[type[LedgerError]]:
    """An error and all its kinds."""
    yield error
    for kind in error.__subclasses__():
        yield from kinds(kind)


@pytest.mark.parametrize("command", commands())
def test_each_command_has_a_section_with_its_options(command: str, page: str) -> None:
    (section,) = re.findall(rf"^## {command}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert f"`compaction-ledger {command}" in section
    help_text = call(command, "--help").fine().out
    options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", help_text, re.MULTILINE))
    # The model options are told under compact.
    told = page if command in ("plan", "backfill", "work") else section
    assert {option for option in options - EVERYWHERE if f"{option}" not in told} == set()


def test_each_error_code_is_told(page: str) -> None:
    ours = [kind for kind in kinds(LedgerError) if kind.__module__.startswith("compaction_ledger.")]
    assert len(ours) > 20
    codes = {kind.code for kind in ours} | {
        "usage",
        "os_error",
        "interrupted",
        "internal",
    }
    assert {code for code in codes if f"`{code}`" not in page} == set()
