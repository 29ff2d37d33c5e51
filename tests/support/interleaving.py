"""What another process or thread does at the worst moment, made to happen in one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def just_before(
    patch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]
) -> None:
    """``act`` happens once, when ``name`` of ``owner`` is called next, before it does anything."""
    real = getattr(owner, name)

    def late(*arguments: Any, **named: Any) -> Any:
        patch.setattr(owner, name, real)
        act()
        return real(*arguments, **named)

    patch.setattr(owner, name, late)


def just_after(patch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    """``act`` happens once, when ``name`` of ``owner`` has been called next, before its answer is used."""
    real = getattr(owner, name)

    def late(*arguments: Any, **named: Any) -> Any:
        patch.setattr(owner, name, real)
        found = real(*arguments, **named)
        act()
        return found

    patch.setattr(owner, name, late)
