"""The use cases: one module each, over the domain and its ports."""
