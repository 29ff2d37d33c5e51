"""What keeps secrets out of errors, logs and copies (S4), and what is authenticated with a wrapped key."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, cast

_LABEL = b"compaction-ledger/wrapped/1\x00"


def bound(epoch: str, context: bytes) -> bytes:
    """What is authenticated with a wrapped key: the epoch that it is under, and whose key it is (S1)."""
    return _LABEL + epoch.encode() + b"\x00" + context


class Unpicklable:
    """Holds secrets: it is not to be pickled or copied (S4)."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} holds secrets and is not pickled or copied")


def parsed(data: bytes) -> Any:
    """The value of a JSON text, or ``None`` where it is none or names a member twice.

    No error: those of the parser hold the text that they could not read, and it holds secrets (S4).
    """
    try:
        return json.loads(data.decode(), object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        return None


def members_of(value: object) -> dict[str, Any] | None:
    """``value`` where it is an object of JSON."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def items_of(value: object) -> list[object] | None:
    """``value`` where it is an array of JSON."""
    return cast("list[object]", value) if isinstance(value, list) else None


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


_secret_call: ContextVar[bool] = ContextVar("compaction_ledger_secret_call", default=False)


class _NoDetails(logging.Filter):
    """Lets nothing pass that a library says at the level ``DEBUG`` during a call with secrets in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG or not _secret_call.get()


_NO_DETAILS = _NoDetails()


@contextmanager
def unlogged(library: str) -> Generator[None]:
    """Around a call with secrets in it: what a client logs of it at the level ``DEBUG`` is kept back."""
    for name in list(logging.root.manager.loggerDict):
        if name == library or name.startswith(f"{library}."):
            logging.getLogger(name).addFilter(_NO_DETAILS)
    token = _secret_call.set(True)
    try:
        yield
    finally:
        _secret_call.reset(token)
