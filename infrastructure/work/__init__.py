"""The work list: which conversations to look at next, in memory, in an SQLite file, on PostgreSQL."""
