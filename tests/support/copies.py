"""Copies of ledgers, keys and all."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_ledger(path: Path, to: Path) -> Path:
    """A copy of a ledger file and of its folder of keys, at ``to`` or in that folder; the new file."""
    copy = Path(shutil.copy(path, to))
    keys = path.with_name(f"{path.name}.keys")
    if keys.exists():
        folder = copy.with_name(f"{copy.name}.keys")
        shutil.copytree(keys, folder, dirs_exist_ok=True)
        folder.chmod(0o700)  # of what is checked out, everybody may read everything
        for file in folder.iterdir():
            file.chmod(0o600)
    return copy
