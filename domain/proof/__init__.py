"""Trees, proofs and signed notes (K1, K2): pure, and without a cipher of its own."""
