"""Who proposes pins, beside the rules (T9): a provider's model. Nobody is believed; quotes are proven."""
