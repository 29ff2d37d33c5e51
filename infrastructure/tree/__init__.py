"""The tree over the log, in each store (K1)."""
