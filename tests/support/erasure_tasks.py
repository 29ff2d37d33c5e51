"""Erases a conversation in a process of its own, which kills itself at a step: ``PLACE SCOPE ID STEP``.

A step is one of those that :class:`Eraser` tells of, or the name of a store, whose rows are then deleted when
the process dies. Without a step it completes; with the id ``--resume`` it resumes.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, replace

from compaction_ledger import Ledger
from compaction_ledger.domain.erasure import Purged


def die() -> None:
    """As the power going: nothing is closed, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Dying:
    """A store whose user dies once it has forgotten."""

    store: Purged

    def forget(self, scope: str, conversation: str) -> None:
        self.store.forget(scope, conversation)
        die()


def main(place: str, scope: str, conversation: str, step: str = "") -> None:
    """Erase, or resume."""
    with Ledger.open(place, create=False) as ledger:
        eraser = ledger._parts.eraser
        assert eraser is not None
        if step in eraser.stores:
            stores = {**eraser.stores, step: Dying(eraser.stores[step])}
            ledger._parts = replace(ledger._parts, eraser=replace(eraser, stores=stores))
        if step == "scrubbed":
            eraser = replace(eraser, scrub=die)
            ledger._parts = replace(ledger._parts, eraser=eraser)

        def on_step(reached: str) -> None:
            if reached == step:
                die()

        if conversation == "--resume":
            ledger.resume_erasures(on_step=on_step)
        else:
            ledger.erase(conversation, scope=scope, on_step=on_step)


if __name__ == "__main__":
    main(*sys.argv[1:])
