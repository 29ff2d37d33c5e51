"""Where conversations are kept: the embedded stores behind :class:`compaction_ledger.domain.ports.Transcripts`."""
