"""Verify a ledger: the seal of the whole log, and the read models against the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction_ledger.domain.errors import DamagedLog
from compaction_ledger.domain.log import Finding
from compaction_ledger.domain.ports import Log, Progress

Records = Mapping[str, Sequence[tuple[object, ...]]]


class Inspectable(Protocol):
    """Read models whose rows can be compared as plain values."""

    def position(self) -> int: ...
    def registry_fingerprint(self) -> str: ...
    def records(self) -> Records: ...


class Expected(Protocol):
    """Read models that can be folded from the log, to compare with."""

    def catch_up(self, log: Log, progress: Progress | None = None) -> int: ...
    def registry_fingerprint(self) -> str: ...
    def records(self) -> Records: ...


@dataclass(frozen=True, slots=True)
class Verification:
    """What verification found, and how much it looked at. ``lag`` counts facts not yet projected."""

    events: int
    findings: tuple[Finding, ...]
    lag: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify(
    log: Log, read_models: Inspectable, expected: Expected | None, progress: Progress | None = None
) -> Verification:
    """Check the seal; where it holds, also compare every read-model row with the log it came from.

    ``expected`` are empty read models that stop at the position of ``read_models``; ``None`` leaves
    the comparison out.
    """
    size = log.size()
    findings = list(log.verify(progress))
    position = read_models.position()
    if not findings and expected is not None:
        findings += _compare(log, read_models, expected, position, size)
    return Verification(size, tuple(findings), max(0, size - position))


def _compare(
    log: Log, read_models: Inspectable, expected: Expected, position: int, size: int
) -> Iterator[Finding]:
    if position > size:
        yield Finding("read_models", f"they reflect {position} events, the log has {size}")
        return
    if read_models.registry_fingerprint() not in ("", expected.registry_fingerprint()):
        yield Finding("registry", "the read models were built under another prompt registry: rebuild them")
        return
    try:
        expected.catch_up(log)
    except DamagedLog as error:
        yield Finding(error.code, str(error), error.index)
        return
    except LookupError as error:
        yield Finding("history", str(error))
        return
    should, rows = expected.records(), read_models.records()
    for table, wanted in should.items():
        there = set(rows[table])
        for row in wanted:
            if row not in there:
                yield Finding("read_model", f"table {table} does not hold what the log says: {_short(row)}")
        for row in sorted(there - set(wanted), key=repr):
            yield Finding("read_model", f"table {table} holds what the log does not say: {_short(row)}")


def _short(row: tuple[object, ...]) -> str:
    return ", ".join(str(value)[:16] for value in row[:5])
