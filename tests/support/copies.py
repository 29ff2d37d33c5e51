"""Copies of ledgers, keys and all."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_ledger(path: Path, to: Path) -> Path:
    """A copy of a ledger file and of its folder of keys, at ``to`` or in that folder; the new file."""
    copy = Path(shutil.copy(path, to))
    keys = path.with_name(f"{path.name}.keys")
    if keys.exists():
        shutil.copytree(keys, copy.with_name(f"{copy.name}.keys"), dirs_exist_ok=True)
    return copy
