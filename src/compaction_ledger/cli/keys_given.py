"""Verifier keys as options give them: as they are, or in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer


def keys_given(ctx: typer.Context, values: Sequence[str], option: str) -> list[str]:
    """The keys of an option. ``@FILE`` stands for those in a file, one on each line.

    A file that cannot be read, or has no key, is wrong usage.
    """
    found: list[str] = []
    for value in values:
        found += _in_file(ctx, value[1:], option) if value.startswith("@") else [value]
    return found


def _in_file(ctx: typer.Context, name: str, option: str) -> list[str]:
    try:
        keys = Path(name).read_text("utf-8", "replace").split()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise typer.BadParameter(f"{name}: {why or error}", ctx, param_hint=option) from error
    if not keys:
        raise typer.BadParameter(f"there is no key in {name}", ctx, param_hint=option)
    return keys
