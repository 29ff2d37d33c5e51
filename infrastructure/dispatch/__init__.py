"""Job queues of others, whose jobs say which conversation to look at: a hint, never a decision (W3, A8)."""
