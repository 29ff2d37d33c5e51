"""The same three facts through a stock ``eventsourcing`` application, as its own documentation writes one."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event


class StockRange(Aggregate):
    """An aggregate with the fields of a claim, an attempt and a completion."""

    def __init__(
        self,
        claim_id: str,
        holder: str,
        identity: str,
        messages: list[str],
        source_hash: str,
        expires_at: int,
    ) -> None:
        self.claim_id = claim_id
        self.holder = holder
        self.identity = identity
        self.messages = messages
        self.source_hash = source_hash
        self.expires_at = expires_at
        self.text = ""

    @event("Started")
    def start(self, attempt_id: str, number: int, expires_at: int) -> None:
        """An attempt begins."""
        self.attempt_id = attempt_id
        self.number = number
        self.expires_at = expires_at

    @event("Completed")
    def complete(self, attempt_id: str, source_hash: str, text: str) -> None:
        """The summary is there."""
        self.text = text


def stock_application(path: Path) -> Application[UUID]:
    """A stock application on an SQLite file."""
    return Application({"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)})
