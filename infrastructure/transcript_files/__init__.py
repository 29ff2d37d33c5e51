"""Files of a provider's messages: request bodies, recorded exchanges, logs of agents."""

from compaction_ledger.infrastructure.transcript_files.interface import WireTranscript
from compaction_ledger.infrastructure.transcript_files.reading import read_transcripts

__all__ = ["WireTranscript", "read_transcripts"]
