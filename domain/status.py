"""What a store says of itself, to whoever operates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StoreKind = Literal["memory", "sqlite", "postgresql"]


@dataclass(frozen=True, slots=True)
class Slots:
    """The bound on attempts among processes (D1): slots that are taken, and processes that wait for one."""

    taken: int
    waiting: int


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Where a ledger is and how large. ``name`` shows no password (S4).

    ``version`` is that of SQLite or of the server, ``layout`` the format of the file or the newest migration,
    ``size`` the bytes of the file, or of the tables with their indexes. ``slots`` where there are any.
    """

    kind: StoreKind
    name: str
    version: str
    layout: int
    size: int | None
    slots: Slots | None
