"""The use cases of a running agent's window (window.md), beside those of the cross-run ledger."""
