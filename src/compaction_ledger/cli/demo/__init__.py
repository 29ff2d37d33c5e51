"""The demonstration: a conversation that comes with the package, and a walk through it."""
