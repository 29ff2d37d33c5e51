"""The verdicts that the rows of a generation are judged by: those of one registry, kept with them (P4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol, cast, get_args

from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.domain.identity import PromptVersion
from compaction_ledger.domain.prompts import PromptRegistry, Verdict, fingerprint_of

_VERDICTS = frozenset(get_args(Verdict))


class Judge(Protocol):
    """What says of a prompt version whether its summaries may be projected (V1)."""

    def verdict(self, prompt: PromptVersion) -> Verdict: ...


class Verdicts:
    """A registry's verdicts as they were when a generation of rows was begun. Closed by default (V2)."""

    def __init__(self, table: Mapping[str, Verdict]) -> None:
        self._table = table

    @property
    def fingerprint(self) -> str:
        """As that of the registry they were taken from."""
        return fingerprint_of(self._table)

    def verdict(self, prompt: PromptVersion) -> Verdict:
        """What the registry said of ``prompt``."""
        return self._table.get(str(prompt), "unknown_version")


def written(registry: PromptRegistry) -> str:
    """The verdicts of ``registry`` as text."""
    return json.dumps(registry.verdicts, sort_keys=True)


@lru_cache(maxsize=16)
def read(text: str) -> Verdicts:
    """The verdicts in ``text``. Raises :class:`DamagedReadModel`."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    table = cast("dict[str, Any]", found if type(found) is dict else {"": None})
    if any(type(verdict) is not str or verdict not in _VERDICTS for verdict in table.values()):
        raise DamagedReadModel("the verdicts that the read models were built under are damaged")
    return Verdicts(table)
