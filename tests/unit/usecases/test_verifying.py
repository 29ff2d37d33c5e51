"""Verification of the seal alone does not look at the rows."""

from __future__ import annotations

from histories import fill

from compaction_ledger import Ledger, composition
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.settings import Settings
from compaction_ledger.usecases.verifying import Snapshot, Verification, verify


class Unread:
    """Read models that must not be asked for their rows."""

    def position(self) -> int:
        return 1

    def snapshot(self) -> Snapshot:
        raise AssertionError("the rows were read")


def test_the_seal_alone_is_verified_without_reading_the_rows() -> None:
    parts = composition.open_memory(
        policy=WindowPolicy(), registry=DEFAULT_REGISTRY, settings=Settings()
    )
    fill(parts)
    with Ledger(parts, Settings()) as ledger:
        assert ledger.compact("c-1", scope="tenant-1").completed == 1
        assert verify(parts.context.log, Unread(), None) == Verification(3, (), 2)
        assert ledger.verify(seal_only=True) == ledger.verify() == Verification(3, (), 0)
