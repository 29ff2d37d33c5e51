"""Time stamps of checkpoints (RFC 3161, K3)."""
