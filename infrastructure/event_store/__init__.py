"""The sealed log on ``eventsourcing``: stored names, envelopes, recorders, the application."""
