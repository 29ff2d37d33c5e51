"""Indexes of the complete transcript (T15): they name places, and can be made anew at any time."""
