"""Summarizers: one module for each adapter behind the port ``domain.ports.Summarizer``.

``extractive`` needs nothing, ``pydantic_ai`` reaches model providers, ``scripted`` is for tests.
"""
