"""Keys: who wraps them, where the wrapped ones are, and what is encrypted with them (S1 to S4)."""
