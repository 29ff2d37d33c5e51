"""Writing audit bundles: one file, in one form (K5)."""
