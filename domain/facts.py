"""Every fact that the log holds, of ranges and of windows."""

from __future__ import annotations

from compaction_ledger.domain.events import RangeFact, RequestDelivered
from compaction_ledger.domain.window.events import ChunkFact, PinAccepted, WindowDelivered

Delivery = RequestDelivered | WindowDelivered
"""What one request was really given. Each has a stream of its own."""

StreamFact = RangeFact | ChunkFact | PinAccepted
"""What stands in the stream of a range or of a window."""

Fact = StreamFact | Delivery
