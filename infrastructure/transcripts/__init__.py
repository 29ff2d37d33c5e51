"""Where conversations are kept: the embedded stores behind the port ``Transcripts``."""
