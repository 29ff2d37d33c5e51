"""Count mutants by file, from what ``mutmut results --all true`` printed; run by ``make mutate``."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

# For example "    compaction_ledger.domain.windows.x_target_count__mutmut_3: survived".
RESULT = re.compile(r"\s+(?P<mutant>(?P<module>[\w.]+)\.[^.\s]+__mutmut_\d+): (?P<status>[\w ]+)")
NOTICED = ("killed", "timeout")
COLUMNS = (*NOTICED, "survived", "no tests")


def main() -> None:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    survivors: list[str] = []
    for line in Path(sys.argv[1]).read_text("utf-8").splitlines():
        found = RESULT.fullmatch(line)
        if found is None:
            sys.exit(f"this is no line of mutmut's results: {line!r}")
        module = found["module"].rpartition(".")[2]
        counts[f"{module}.py"][found["status"]] += 1
        if found["status"] not in NOTICED:
            survivors.append(line.strip())
    print("\n".join(survivors))
    print()
    print(f"| file | mutants | {' | '.join(COLUMNS)} | other | score |")
    print(f"|{'---|' * (len(COLUMNS) + 4)}")
    for name in sorted(counts):
        print(row(name, counts[name]))
    print(row("**all**", sum(counts.values(), Counter())))


def row(name: str, count: Counter[str]) -> str:
    """One line: the score is the share of mutants that the tests noticed, by a failure or by not ending."""
    total = count.total()
    columns = [count[column] for column in COLUMNS]
    noticed = sum(count[status] for status in NOTICED)
    cells = (name, total, *columns, total - sum(columns), f"{100 * noticed / total:.1f} %")
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
