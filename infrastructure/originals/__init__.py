"""Stores of originals: the transcripts of running agents, and large tool results by content (T14, T15)."""
