"""`window demo`: an agent's run that is compacted while it goes on."""
