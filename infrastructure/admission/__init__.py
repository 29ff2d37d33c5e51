"""Admission: how many attempts at once (``local``), and when none at all (``outage``)."""
