"""The current branch of a conversation that is stored as a tree."""

from __future__ import annotations

from collections.abc import Mapping

from compaction_ledger.domain.errors import MalformedRecord


def chain(parents: Mapping[str, str | None], leaf: str, place: str) -> list[str]:
    """The ids from the root to ``leaf``. A parent that is not in the file ends the way up."""
    if leaf not in parents:
        raise MalformedRecord(f"has no node {leaf!a}, which it calls the current one", place=place)
    found: dict[str, None] = {}
    current: str | None = leaf
    while current is not None and current in parents:
        if current in found:
            raise MalformedRecord(f"the parents of {leaf!a} go round in a circle", place=place)
        found[current] = None
        current = parents[current]
    return list(reversed(found))


def only_leaf(parents: Mapping[str, str | None], place: str) -> str:
    """The one id that is no other's parent; refused if there are several: nothing is guessed."""
    inner = set(parents.values())
    leaves = [node for node in parents if node not in inner]
    if len(leaves) != 1:
        raise MalformedRecord(f"names no current node and has {len(leaves)} branches", place=place)
    return leaves[0]
