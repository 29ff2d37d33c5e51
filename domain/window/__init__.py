"""The window of one running agent: its own aggregate, identity and facts, beside the cross-run ledger."""
