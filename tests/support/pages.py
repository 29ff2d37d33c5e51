"""The pages of the documentation: their fenced blocks, run in order as a reader would run them.

A block marked ``python`` or ``console`` runs, unless its fence says ``no-run``. All blocks of a page share
one folder, and its Python blocks one namespace. A ``text`` block right behind a Python block is what
that block prints; in a ``console`` block, what stands below a ``$ command`` is what it prints. ``…``
stands for anything within a line, and alone on a line for any lines.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```(?P<info>\S.*)$")
_EXPORT = re.compile(r"export ([A-Z_]+)=(\S*)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it begins, the words behind its fence, and its text."""

    page: Path
    line: int
    words: tuple[str, ...]
    text: str
    expected: str | None = None

    @property
    def runs(self) -> bool:
        """Whether a reader is meant to run it."""
        return self.words[0] in ("python", "console") and "no-run" not in self.words


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, and what it prints if the block shows it."""

    line: str
    expected: str | None


def markdown(root: Path) -> list[Path]:
    """Every page of the repository."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order; each Python block with the output shown behind it."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    at, last = 0, -1
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            at += 1
            continue
        end = next(n for n in range(at + 1, len(lines)) if lines[n].rstrip() == "```")
        block = Block(page, at + 1, tuple(fence["info"].split()), "\n".join(lines[at + 1 : end]))
        follows = last >= 0 and not any(line.strip() for line in lines[last + 1 : at])
        if block.words[0] == "text" and follows and found[-1].words[0] == "python":
            before = found.pop()
            block = Block(page, before.line, before.words, before.text, block.text)
        found.append(block)
        at, last = end + 1, end
    return found


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block. A line that ends with a backslash goes on in the next."""
    pieces = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    for piece in pieces[1:]:
        line, _, rest = re.sub(r"\\\n\s*", "", piece).partition("\n")
        yield Command(line, rest.rstrip("\n") or None)


def links(page: Path) -> list[str]:
    """The targets of a page's links, without those in its code."""
    return _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings have."""
    headings = re.findall(
        r"^#+ (.+)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


@dataclass(slots=True)
class Reader:
    """Somebody who runs the blocks of one page in ``folder``, which is the working folder."""

    folder: Path
    environment: dict[str, str]
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    code: int = 0
    printed: str = ""

    def run(self, block: Block) -> None:
        """Run a block; raises :class:`AssertionError` where it does not print what the page shows."""
        if block.words[0] == "python":
            self._python(block)
        else:
            for command in commands(block):
                self._command(block, command)
            assert self.code == 0, f"{place(block)}: code {self.code} is not shown: {self.printed}"

    def _python(self, block: Block) -> None:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(block.text, place(block), "exec"), self.namespace)
        if block.expected is not None:
            compare(printed.getvalue(), block.expected, place(block))

    def _command(self, block: Block, command: Command) -> None:
        set_to = _EXPORT.fullmatch(command.line)
        if set_to is not None:
            self.environment[set_to[1]] = set_to[2]
            return
        where = f"{place(block)}: {command.line}"
        shows_code = "$?" in command.line
        assert self.code == 0 or shows_code, (
            f"{where}: code {self.code} is not shown: {self.printed}"
        )
        done = subprocess.run(
            ["sh", "-c", f"(exit {self.code}); {command.line}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        self.code = done.returncode
        printed = done.stdout.decode()
        self.printed = printed
        if command.expected is not None:
            compare(printed, command.expected, where)


def compare(printed: str, shown: str, where: str) -> None:
    """Raise :class:`AssertionError` unless ``printed`` is what the page shows."""
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    patterns = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*?") + r"\n"
        for line in (line.rstrip() for line in shown.splitlines())
    ]
    found = re.fullmatch("".join(patterns), "".join(f"{line}\n" for line in lines))
    assert found, f"{where} prints:\n{printed}\nand the page shows:\n{shown}"


def place(block: Block) -> str:
    """Page and line, for messages."""
    return f"{block.page.name}:{block.line}"


def environment(shims: Path) -> dict[str, str]:
    """The environment of a reader: this interpreter as ``python``, and the command on the path."""
    shims.mkdir()
    for name, words in (
        ("python", ""),
        ("compaction-ledger", "-m compaction_ledger"),
        ("compaction-ledger-verify-bundle", "-m compaction_ledger.bundle_verifier"),
    ):
        shim = shims / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
    installed = Path(sys.executable).with_name("compaction-ledger")
    if installed.exists():
        (shims / "compaction-ledger").unlink()
    kept = {
        name: os.environ[name]
        for name in ("HOME", "LANG", "TMPDIR", "PYTHONPATH")
        if name in os.environ
    }
    path = os.pathsep.join([str(shims), str(installed.parent), os.environ.get("PATH", os.defpath)])
    return kept | {"PATH": path, "COLUMNS": "80", "TERM": "dumb", "PYTHONUTF8": "1"}
