"""Verify a ledger: the seal of the whole log, and the read models against the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction_ledger.domain.erasure import WasErased
from compaction_ledger.domain.errors import (
    DamagedLog,
    KeyMissing,
    KeysUnavailable,
    StoreError,
    WrongKey,
)
from compaction_ledger.domain.log import Finding, Recorded
from compaction_ledger.domain.ports import Log, Progress
from compaction_ledger.usecases.checking_heads import HeadCheck
from compaction_ledger.usecases.checking_jobs import JobCheck

Records = Mapping[str, Sequence[tuple[object, ...]]]
Snapshot = tuple[int, str, Records]


def never_erased(_scope: str, _conversation: str) -> bool:
    """Where nobody erases."""
    return False


class Inspectable(Protocol):
    """Read models whose rows can be compared as plain values."""

    def position(self) -> int:
        """How many facts of the log they reflect."""
        ...

    def snapshot(self) -> Snapshot:
        """Position, registry fingerprint and rows, as they were at one moment."""
        ...


class Expected(Protocol):
    """Read models that can be folded from the log, to compare with."""

    def follow_to(
        self,
        log: Log,
        stop: int,
        progress: Progress | None = None,
        on_fact: Callable[[Recorded], None] | None = None,
    ) -> int: ...
    def conversation_of(self, table: str, row: Sequence[object]) -> tuple[str, str]: ...
    def registry_fingerprint(self) -> str: ...
    def records(self) -> Records: ...


@dataclass(frozen=True, slots=True)
class Verification:
    """What verification found, and how much it looked at. ``lag`` counts facts not yet projected.

    ``heads`` counts the signed heads that the log was compared with; the first ``signed`` events are those
    that were signed. ``witnesses`` are the names of those that were asked.
    """

    events: int
    findings: tuple[Finding, ...]
    lag: int
    heads: int = 0
    signed: int = 0
    witnesses: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify(
    log: Log,
    read_models: Inspectable,
    expected: Callable[[int], Expected] | None,
    progress: Progress | None = None,
    heads: HeadCheck | None = None,
    was_erased: WasErased = never_erased,
) -> Verification:
    """Check the seal; where it holds, also compare every read-model row with the log it came from.

    With ``heads`` the log is compared with what was signed of it, too, in the same pass.

    ``expected`` makes empty read models that stop at a position; ``None`` leaves the comparison out, and
    the rows unread.
    Others may write meanwhile: the rows are taken first, at one moment, and the log only grows. And they may
    erase: ``was_erased`` says of which conversations nothing can be compared any more.
    """
    findings: list[Finding] = []
    seen: Snapshot = (0, "", {})
    size = 0
    try:
        seen = (read_models.position(), "", {}) if expected is None else read_models.snapshot()
    except (StoreError, DamagedLog) as error:
        findings.append(Finding("read_models", f"they cannot be read: {error}"))
    try:
        findings.extend(  # what is found before an error stays found
            one
            for one in log.verify(progress, None if heads is None else heads.on_leaves)
            if expected is not None or one.code != "keys"  # the seal alone needs none
        )
        size = log.size()
        if not findings and expected is not None:
            findings += _compare(log, expected, seen, size, was_erased)
    except DamagedLog as error:
        findings.append(Finding(error.code, str(error), error.index))
    except (KeyMissing, WrongKey, KeysUnavailable) as error:
        findings.append(
            Finding(
                "keys",
                f"the seal was checked, and the rows could not be compared with the log: {error}",
            )
        )
    lag = max(0, size - seen[0])
    if heads is None:
        return Verification(size, tuple(findings), lag)
    findings += heads.finish()
    return Verification(size, tuple(findings), lag, heads.compared, heads.signed, heads.witnesses)


def _compare(
    log: Log,
    expected: Callable[[int], Expected],
    seen: Snapshot,
    size: int,
    was_erased: WasErased,
) -> Iterator[Finding]:
    position, fingerprint, rows = seen
    models = expected(position)
    if position > size:
        yield Finding("read_models", f"they reflect {position} events, the log has {size}")
        return
    if fingerprint not in ("", models.registry_fingerprint()):
        yield Finding(
            "registry", "the read models were built under another prompt registry: rebuild them"
        )
        return
    jobs = JobCheck()
    models.follow_to(log, position, on_fact=jobs.on_fact)
    records = models.records()
    # What is behind must be possible to project (A10).
    models.follow_to(log, size, on_fact=jobs.on_fact)
    for table, wanted in records.items():
        there = set(rows[table])
        missing = [row for row in wanted if row not in there]
        more = sorted(there - set(wanted), key=repr)
        for what, differing in (
            ("does not hold what the log says", missing),
            ("holds what the log does not say", more),
        ):
            for row in differing:
                if not was_erased(*models.conversation_of(table, row)):
                    yield Finding("read_model", f"table {table} {what}: {_short(row)}")


def _short(row: tuple[object, ...]) -> str:
    return ", ".join(str(value)[:16] for value in row[:5])
