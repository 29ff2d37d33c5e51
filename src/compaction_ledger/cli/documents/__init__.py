"""The documents that `--json` prints: one model per command, and their JSON Schemas."""
