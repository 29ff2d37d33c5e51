"""A conversation of 50,000 pairs goes through every step, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PAIRS = 50_000
RANGES = (PAIRS - 20) // 10
MEBIBYTES = 700
"""More than this is a defect: the texts alone are about 130 MiB."""

PROGRAM = """
import re, sys
from pathlib import Path
from compaction_ledger import Answer, FinishFacts, Ledger, ModelIdentity, NewMessage, NewRun

class First:
    model = ModelIdentity.of("test", "first-words")
    def summarize(self, request):
        return Answer(" ".join(r.text[:40] for r in request.replies), FinishFacts(("stop",)))

pairs, path = int(sys.argv[1]), Path(sys.argv[2])
with Ledger.open(path, summarizer=First()) as ledger:
    for start in range(0, pairs, 10_000):
        numbers = range(start, start + 10_000)
        ledger.transcripts.append(
            "default",
            "long",
            [
                NewMessage(f"{side[0]}{n}", f"r{n}", side, f"{side} {n}: " + "net asset value " * 40)
                for n in numbers
                for side in ("user", "assistant")
            ],
            [NewRun(f"r{n}") for n in numbers],
        )
    print(ledger.compact("long").completed)
    whole = ledger.assemble("long", budget=1 << 40).manifest
    print(whole.count("summarized"), whole.count("verbatim"), whole.count("left_out"))
    cut = ledger.assemble("long", budget=100_000).manifest
    print(cut.mode, cut.bytes_used <= 100_000)
    print(ledger.verify().ok, ledger.rebuild(), ledger.verify().ok)
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_conversation_of_50_000_pairs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(PAIRS), str(tmp_path / "ledger.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    *lines, peak = done.stdout.splitlines()
    assert lines == [
        str(RANGES),
        f"{10 * RANGES} {PAIRS - 10 * RANGES} 0",
        "newest_originals True",
        f"True {3 * RANGES} True",
    ]
    assert int(peak) < MEBIBYTES
