"""Telling of the work to whoever watches it."""
