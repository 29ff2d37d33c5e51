"""The notes and the tree of npm's ``@sigstore/verify``, pinned with its dependencies: not our own (K6)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "crosscheck" / "sigstore"
_AWAY = re.compile(
    "ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|E404"
)


def installed(folder: Path) -> tuple[str, Path]:
    """The command that runs it, installed into ``folder``; the test is skipped where that cannot be."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None or not _is_supported(node):
        pytest.skip("needs npm and Node.js 20.17 or newer")
    for name in ("package.json", "package-lock.json", "check.js"):
        shutil.copy(SOURCE / name, folder)
    options = [
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--fetch-retries=0",
        "--fetch-timeout=30000",
    ]
    # What has not the hash that the lock file names is not installed, and is an error.
    done = subprocess.run(
        [npm, "ci", *options], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode and _AWAY.search(done.stderr):
        pytest.skip("no registry of npm packages can be reached")
    assert done.returncode == 0, done.stderr
    return node, folder / "check.js"


def _is_supported(node: str) -> bool:
    said = subprocess.run(
        [node, "--version"], capture_output=True, text=True, timeout=30, check=True
    )
    major, minor = map(int, said.stdout.removeprefix("v").split(".")[:2])
    return (major, minor) >= (22, 9) or (major == 20 and minor >= 17)
