"""How a command ends: exit codes, one readable line for an error, and never a stack trace."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from compaction_ledger.domain.errors import LedgerError

PROGRAM = "compaction-ledger"
GROUPS = frozenset({"keys", "window", "witness"})

FINDING = 1
BAD_INPUT = 2
BROKEN_PIPE = 141
INTERRUPTED = 130

# Typer's base of all errors in what was typed. Not every version that we allow names it in public.
USAGE_ERRORS: type[Exception] = getattr(typer, "TyperException", typer.BadParameter.__mro__[2])


class CommandGroup(TyperGroup):
    """Hands a broken pipe on to :func:`run`."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderLeft from error


class _ReaderLeft(Exception):
    """Whoever read our output has closed it: not an error of ours, and nobody is left to tell."""


DEBUG_VARIABLE = "COMPACTION_LEDGER_DEBUG"


def run(app: typer.Typer, words: Sequence[str]) -> int:
    """Run ``app`` with ``words`` and return the exit code."""
    _write_whatever_comes()
    try:
        code = _run(app, words)
        sys.stdout.flush()
    except (_ReaderLeft, BrokenPipeError):
        # So that the interpreter's own flush at the end has somewhere to write to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


def _run(app: typer.Typer, words: Sequence[str]) -> int:
    from compaction_ledger.domain.errors import (
        DamagedLog,
        InvalidProof,
        LedgerError,
        SigningRefused,
    )

    as_json = "--json" in words
    if _is_group_alone(words):  # it says what there is, as the program alone does
        words = [*words, "--help"]
    try:
        code = app(list(words) or ["--help"], prog_name=PROGRAM, standalone_mode=False)
    except USAGE_ERRORS as error:
        tell(as_json, "usage", _with_help(error))
        return BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        tell(as_json, "interrupted", "interrupted")
        return INTERRUPTED
    except LedgerError as error:
        tell(as_json, error.code, _message(error), getattr(error, "place", None))
        found = isinstance(error, DamagedLog | InvalidProof | SigningRefused)
        return FINDING if found else BAD_INPUT
    except (_ReaderLeft, BrokenPipeError):
        raise
    except OSError as error:
        tell(as_json, "os_error", error.strerror or str(error), _place(error))
        return BAD_INPUT
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        message = f"{type(error).__name__}: {error} (a defect; {DEBUG_VARIABLE}=1 shows where)"
        tell(as_json, "internal", message)
        return BAD_INPUT
    return code if isinstance(code, int) else 0


def _is_group_alone(words: Sequence[str]) -> bool:
    """Whether the words are a group's name and nothing behind it: no conversation or folder is meant."""
    at = 0
    while at < len(words) and words[at].startswith("--"):
        at += 2 if words[at] in ("--ledger", "--scope") else 1
    return at == len(words) - 1 and words[at] in GROUPS


def tell(as_json: bool, code: str, message: str, place: str | None = None) -> None:  # noqa: FBT001
    """Say what went wrong: one line on stderr and, if JSON was asked for, a document on stdout."""
    where = f"{place}: " if place else ""
    sys.stderr.write(f"error[{code}]: {_one_line(where + message)}\n")
    if as_json:
        document = {"error": {"code": code, "message": message, "place": place}}
        sys.stdout.write(json.dumps(document) + "\n")


def _with_help(error: Any) -> str:
    """What is wrong with the words, and where to read what is right."""
    ctx = getattr(error, "ctx", None)
    command = PROGRAM if ctx is None else ctx.command_path
    return f"{error.format_message().removesuffix('.')} (see {command} --help)"


def _message(error: LedgerError) -> str:
    """The error's own words, without the place, which is told apart."""
    place = getattr(error, "place", None)
    return str(error).removeprefix(f"{place}: ") if place else str(error)


def _place(error: OSError) -> str | None:
    name = error.filename
    return (
        None if name is None else os.fsdecode(name) if isinstance(name, (str, bytes)) else str(name)
    )


def _one_line(text: str) -> str:
    from compaction_ledger.cli.plain import visible

    return visible(" ".join(text.split()))


def _write_whatever_comes() -> None:
    """What the terminal's encoding cannot carry is written as an escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
