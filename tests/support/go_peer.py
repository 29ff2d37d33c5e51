"""The tree and the notes of Go's ``golang.org/x/mod``, from Debian's packages: not our own (K6)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GOPATH = Path("/usr/share/gocode")
SOURCE = Path(__file__).parent / "crosscheck" / "main.go"
PACKAGE = GOPATH / "src" / "golang.org" / "x" / "mod" / "sumdb" / "tlog"


def built(folder: Path) -> Path:
    """The program, built from the source beside this file; the test is skipped where that cannot be."""
    go = shutil.which("go")
    if go is None or not PACKAGE.is_dir():
        pytest.skip("needs Go and golang.org/x/mod: golang-go, golang-golang-x-mod-dev")
    program = folder / "crosscheck"
    environment = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": str(GOPATH),
        "GOFLAGS": "",
        "GOPROXY": "off",
        "GOCACHE": str(folder / "cache"),
        "CGO_ENABLED": "0",
    }
    subprocess.run(
        [go, "build", "-o", program, SOURCE],
        env=environment,
        check=True,
        timeout=240,
        stdout=sys.stderr,
    )
    return program
