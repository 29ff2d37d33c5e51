"""What a summary says that its source does not (T13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.events import Stored

GroundedKind = Literal["number", "date", "amount", "identifier", "url", "quotation"]


@dataclass(frozen=True, slots=True)
class Ungrounded(Stored):
    """Something of a summary that does not occur in its source, word for word as the summary has it."""

    kind: GroundedKind
    text: str
