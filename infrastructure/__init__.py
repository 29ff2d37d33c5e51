"""Adapters: stores, importers, summarizers. Imports ``domain``; never ``projections``."""
