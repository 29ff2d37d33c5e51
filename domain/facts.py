"""Every fact that the log holds, of ranges and of windows, and of what was erased."""

from __future__ import annotations

from compaction_ledger.domain.erasure import ErasedFact, ErasureFact
from compaction_ledger.domain.events import RangeFact, RequestDelivered
from compaction_ledger.domain.window.events import ChunkFact, PinAccepted, WindowDelivered

Delivery = RequestDelivered | WindowDelivered
"""What one request was really given. Each has a stream of its own."""

StreamFact = RangeFact | ChunkFact | PinAccepted
"""What stands in the stream of a range or of a window."""

Fact = StreamFact | Delivery | ErasureFact | ErasedFact
"""What reading the log gives: what was recorded, or that it was erased since (S3)."""
