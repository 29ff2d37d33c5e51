"""``make bench``: print the table and write ``build/bench.json`` (one flat object, name to number).

Every figure is a ratio of two things measured in turns in this one run. ``docs/benchmarks.md`` holds a
table with its machine and date.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import history
import measures
import pg_measures
import sealing
import signing
import verify_measures
import window_measures
import window_reuse
from timing import median, ratio

MARKS = {
    "read_path_over_floor": ("<=", 2.5),
    "read_path_over_peers": ("<=", 1.0),
    "lifecycle_over_stock": ("<=", 1.0),
    "rebuild_events_per_s_over_decode": (">=", 0.5),
    "verify_over_floor": ("<=", 2.0),
    "verify_stream_over_floor": (">=", 0.5),
    "import_over_dependencies": ("<=", 1.3),
    "help_over_typer": ("<=", 2.0),
    "growth": ("<=", 1.15),
    "pg_lifecycle_over_stock": (">=", 3.0),
    "pg_lifecycle_over_bare": (">=", 0.75),
    "pg_concurrent": (">=", 1.0),
    "pg_concurrent_reader_missed": ("<=", 0.0),
    "pg_rebuild_over_stock": (">=", 20.0),
    "pg_assemble_over_floor": ("<=", 3.0),
    "pg_growth": ("<=", 1.15),
    "window_over_floor": ("<=", 3.0),
    "window_growth": ("<=", 1.15),
    "window_prefix_reuse": (">=", 0.9),
    "window_constraints_kept": (">=", 15),
    "seal_and_encrypt_overhead_sqlite": ("<=", 0.25),
    "seal_and_encrypt_overhead_postgres": ("<=", 0.25),
    "checkpoint_signing_growth": ("<=", 2.0),  # as the logarithm grows
    "inclusion_proof_ms": ("<=", 10.0),
    "history_sqlite_p99_ms": ("<=", 50.0),
    "history_postgres_p99_ms": ("<=", 50.0),
}
PARTS = ("files", "verify", "postgres", "window", "history", "signing", "sealing")


def main() -> int:
    """Measure everything, print the table, write the JSON file. Missed marks are shown, not hidden."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="counted rounds of each comparison")
    parser.add_argument("--only", choices=PARTS, help="measure one part alone")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"))
    given = parser.parse_args()
    figures: dict[str, float] = {}
    parts = PARTS if given.only is None else (given.only,)
    if "files" in parts:
        with tempfile.TemporaryDirectory() as folder:
            figures |= measure(Path(folder), given.rounds)
    if "verify" in parts:
        with tempfile.TemporaryDirectory() as folder:
            figures |= verify_measures.verify_stream(Path(folder))
    if "postgres" in parts:
        figures |= pg_measures.measure(given.rounds)
    if "window" in parts:
        figures |= window_measures.over_floor(given.rounds, max(5, given.rounds // 2))
        figures |= window_reuse.prefix_reuse() | window_reuse.small_window()
    if "history" in parts:
        figures |= history.figures(100_000, 200)
    if "signing" in parts:
        figures |= signing.figures(given.rounds)
    if "sealing" in parts:
        with tempfile.TemporaryDirectory() as folder:
            figures |= sealing.figures(Path(folder), given.rounds)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    show(figures)
    return 0


def measure(folder: Path, rounds: int) -> dict[str, float]:
    """All figures on SQLite, at 1,000 pairs and at ten times that."""
    few = max(5, rounds // 3)
    small, large = (
        measures.read_path(folder, 1_000, rounds),
        measures.read_path(folder, 10_000, few),
    )
    figures = {
        "read_path_over_floor": ratio(small, "ours", "floor"),
        "read_path_over_peers": ratio(small, "ours", "peers"),
        "read_path_over_peers_untrimmed": ratio(small, "ours", "peers_untrimmed"),
        "read_path_ms": median(small["ours"]) * 1e3,
        "read_path_floor_ms": median(small["floor"]) * 1e3,
        "read_path_peers_ms": median(small["peers"]) * 1e3,
        "growth_read_path": growth(small["ours"], large["ours"]),
        "floor_growth_read_path": growth(small["floor"], large["floor"]),
        "read_path_over_floor_10000_pairs": ratio(large, "ours", "floor"),
    }
    small, large = measures.lifecycle(folder, 98, rounds), measures.lifecycle(folder, 980, few)
    figures |= {
        "lifecycle_over_stock": ratio(small, "ours", "stock"),
        "lifecycle_over_stock_loading": ratio(small, "ours", "stock_loading"),
        "lifecycle_us": median(small["ours"]) / 98 * 1e6,
        "growth_lifecycle": growth(small["ours"], large["ours"]),
    }
    with measures.log_with(folder, 1_000) as log, measures.log_with(folder, 10_000) as longer:
        small, large = measures.rebuild(log, few), measures.rebuild(longer, few)
        figures |= {
            "rebuild_events_per_s_over_decode": ratio(small, "decode", "rebuild"),
            "rebuild_events_per_s": 3_000 / median(small["rebuild"]),
            "growth_rebuild": growth(small["rebuild"], large["rebuild"]),
        }
        small = measures.verify(log, folder / "log-1000.db", few)
        large = measures.verify(longer, folder / "log-10000.db", few)
        figures |= {
            "verify_over_floor": ratio(small, "verify", "floor"),
            "verify_events_per_s": 3_000 / median(small["verify"]),
            "growth_verify": growth(small["verify"], large["verify"]),
        }
    figures |= measures.start_up(rounds)
    for pairs in (1_000, 10_000):
        for name, peak in measures.memory(folder / f"read-{pairs}.db").items():
            figures[f"peak_mib_{name}_{pairs}_pairs"] = peak
    figures["growth"] = max(value for name, value in figures.items() if name.startswith("growth_"))
    return figures


def growth(small: list[float], large: list[float]) -> float:
    """The cost at ten times the size over ten times the cost."""
    return median(large) / (10 * median(small))


def show(figures: dict[str, float]) -> None:
    """The table, with what was aimed for."""
    print(
        f"{platform.machine()}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, ",
        end="",
    )
    print(f"{datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f}")
    print(", ".join(f"{name} {version}" for name, version in window_reuse.versions().items()))
    for name in sorted(figures, key=lambda name: (name not in MARKS, name)):
        mark = ""
        if name in MARKS:
            sign, bound = MARKS[name]
            met = figures[name] <= bound if sign == "<=" else figures[name] >= bound
            mark = f"  {sign} {bound:<5} {'met' if met else 'MISSED'}"
        print(f"{name:<55} {figures[name]:>12.3f}{mark}")


if __name__ == "__main__":
    sys.exit(main())
