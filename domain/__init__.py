"""The rules, pure: no I/O, no clock, no randomness. Imports only the standard library and pydantic."""
