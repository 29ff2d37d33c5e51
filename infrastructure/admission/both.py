"""Two bounds on attempts at once, one behind the other (D1)."""

from __future__ import annotations

from collections.abc import Callable

from compaction_ledger.domain.ports import Admission


class BothAdmission:
    """Admits who gets a slot of ``local`` and then one of ``shared``. Thread-safe where both are.

    The local one is asked first: it costs nothing, and nobody takes a place in the shared queue that this
    process could not use.
    """

    def __init__(self, local: Admission, shared: Admission) -> None:
        self.local = local
        self.shared = shared

    def admit(self) -> Callable[[], None] | None:
        """Take a slot of each and return what gives both back; ``None`` means: not now (D2).

        Raises what either raises, and then holds neither.
        """
        leave_local = self.local.admit()
        if leave_local is None:
            return None
        try:
            leave_shared = self.shared.admit()
        except BaseException:
            leave_local()
            raise
        if leave_shared is None:
            leave_local()
            return None

        def leave() -> None:
            try:
                leave_shared()
            finally:
                leave_local()

        return leave
