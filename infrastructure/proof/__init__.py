"""Ed25519 keys, and where checkpoints are kept (K1, K2)."""
