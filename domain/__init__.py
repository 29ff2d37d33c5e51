"""The rules, pure: no I/O, no clock, no source of randomness. Imports only the standard library and pydantic."""
