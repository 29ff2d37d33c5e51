"""Read models: the rows that the log implies. Imports ``domain``; never ``infrastructure``."""
