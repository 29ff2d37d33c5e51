"""Write a made-up archive: ``python tests/benchmarks/archive.py PAIRS FOLDER``.

It is for ``compaction-ledger backfill FOLDER --scope-from file``. The same words give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from archives import SCOPES, write_archive


def main() -> int:
    """Write the archive and say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", type=int, default=500, help="pairs of each conversation")
    parser.add_argument("--mixed", action="store_true", help="conversations of 1 to 1,500 pairs")
    parser.add_argument("--scopes", type=int, default=len(SCOPES), choices=range(1, 4))
    parser.add_argument("--layout", choices=("ndjson", "files"), default="ndjson")
    given = parser.parse_args()
    began = time.perf_counter()
    made = write_archive(
        given.folder,
        given.pairs,
        each=None if given.mixed else given.each,
        scopes=SCOPES[: given.scopes],
        layout=given.layout,
    )
    print(
        f"{made.pairs:,} pairs in {made.conversations:,} conversations, {made.bytes:,} bytes in "
        f"{len(made.files):,} files; {made.ranges:,} ranges are due. "
        f"{time.perf_counter() - began:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
