"""`backfill`: take over an archive, then summarize everything that is due."""
