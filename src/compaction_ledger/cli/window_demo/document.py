"""What `window demo` answers."""

from __future__ import annotations

from compaction_ledger.cli.demo.document import Claim
from compaction_ledger.cli.documents.common import Count, Document


class DemoTurn(Document):
    """One request of the run."""

    messages: Count
    """How many messages the run has."""

    tokens_before: Count
    """The tokens of all of them, as they are."""

    tokens_sent: Count
    """The tokens of the request."""

    bytes_sent: Count
    bytes_reused: Count
    """How many of those stood at the same place in the request before."""

    compacted: str | None
    """What became of the chunk that was due, if one was: its messages and the result."""


class DemoPin(Document):
    """A pin, and whether a newer one has replaced it."""

    message: str
    quote: str
    current: bool


class DemoChunk(Document):
    """A chunk whose summary stands in the last request."""

    first: str
    last: str
    bytes_of_originals: Count
    bytes_of_block: Count


class WindowDemoDocument(Document):
    """`compaction-ledger window demo`. ``ledger`` is the file that was kept, if one was."""

    ok: bool
    """Whether every claim holds."""

    ledger: str | None
    limit: Count
    """The window, in tokens as they are counted: one for each byte, which is never too few."""

    turns: list[DemoTurn]
    chunks: list[DemoChunk]
    pins: list[DemoPin]
    tokens_before: Count
    """The tokens of the whole run at its end."""

    tokens_sent: Count
    """The tokens of the last request."""

    prefix_reuse: float
    """The share of all bytes sent that stood at the same place in the request before."""

    found: str
    """What a search of the whole transcript found of a message that is summarized."""

    claims: list[Claim]
