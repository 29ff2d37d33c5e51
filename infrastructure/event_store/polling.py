"""A subscription of ``eventsourcing`` that looks at the index again and again (L2).

Whatever happens to a connection, a poll finds what is there: notifications have gaps, a listening connection
that is killed ends, and one that is frozen goes silent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event, Thread
from typing import Any

from eventsourcing.persistence import ApplicationRecorder, ListenNotifySubscription

from compaction_ledger.domain.errors import StoreError

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2


class PolledSubscription(ListenNotifySubscription[ApplicationRecorder]):
    """Follows a recorder by polling. A store that is away for a while is asked again; damage ends it."""

    def __init__(
        self,
        recorder: ApplicationRecorder,
        gt: int | None = None,
        topics: Sequence[str] = (),
        *,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._poll_seconds = poll_seconds
        self._ended = Event()
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._ticker = Thread(target=self._tick, name="compaction-ledger-poll", daemon=True)
        self._ticker.start()

    def stop(self) -> None:
        """Stop the subscription."""
        self._ended.set()
        super().stop()

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        try:
            super().__exit__(*args, **kwargs)
        finally:
            self._ticker.join()

    def _tick(self) -> None:
        while not self._ended.wait(self._poll_seconds):
            self._has_been_notified.set()

    def _pull(self) -> None:
        try:
            super()._pull()
        except StoreError as error:
            logger.warning("a subscription waits for its store: %s", error)
