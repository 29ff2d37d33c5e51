"""How documents are shown to people."""
