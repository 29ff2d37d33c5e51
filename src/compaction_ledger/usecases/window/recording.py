"""Keeping a run's messages as they come, and noticing when recorded ones are others now (T2, T15)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from compaction_ledger.domain.errors import ConcurrentAppend, HistoryChanged, MalformedMessage
from compaction_ledger.domain.messages.interface import Wire
from compaction_ledger.domain.window.originals import NewOriginal, message_digest, wire_bytes
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.reading import Turn


class Recorder:
    """Appends what is new of a run. It remembers the JSON it saw: an old message costs one comparison."""

    def __init__(self, context: WindowContext) -> None:
        self._context = context
        self._digests: list[str] | None = None
        self._seen: Sequence[bytes] = ()
        self._kept: set[str] = set()  # digests of the large results that are kept for certain

    @property
    def digests(self) -> Sequence[str]:
        """The digest of each recorded message."""
        return self._digests or []

    def record(self, turn: Turn) -> None:
        """Keep the messages that are not kept yet, and large results.

        Raises :class:`HistoryChanged`, and :class:`MalformedMessage` before anything of the turn is kept.
        """
        key, originals = self._context.key, self._context.originals
        if self._digests is None:
            self._digests = list(originals.digests(key))
        self._compare(turn)
        new = self._new(turn, len(self._digests))
        self._keep_results(turn)
        while new:
            first = len(self._digests)
            try:
                originals.append(key, self._context.shape.name, first, new)
            except ConcurrentAppend:  # another process has this run, too, and is as far or less
                self._digests, self._seen = list(originals.digests(key)), ()
                self._compare(turn)
                if len(self._digests) <= first:
                    raise
                new = new[len(self._digests) - first :]
            else:
                self._digests += [message.digest for message in new]
                break
        self._seen = turn.originals

    def _keep_results(self, turn: Turn) -> None:
        """Whatever a stub stands for is kept, each once: also results of messages that were recorded before
        large ones were taken out.
        """
        key = self._context.key
        for digest, content in turn.taken_out.items():
            if digest not in self._kept:
                self._context.originals.keep_result(key.scope, key.conversation, content)
                self._kept.add(digest)

    def _compare(self, turn: Turn) -> None:
        digests = self._digests or []
        if len(turn.messages) < len(digests):
            raise HistoryChanged(
                len(turn.messages),
                f"{len(digests)} messages are recorded of this run, only {len(turn.messages)} were given; "
                "a history that is shortened or branched is another run",
            )
        for position, digest in enumerate(digests):
            if position < len(self._seen) and self._seen[position] == turn.originals[position]:
                continue
            if self._digest(turn.messages[position], position) != digest:
                raise HistoryChanged(
                    position,
                    "is another one than was recorded of this run; a changed history is another run",
                )

    def _new(self, turn: Turn, first: int) -> list[NewOriginal]:
        now = self._context.log.now()
        exchanges = turn.exchanges()
        return [
            NewOriginal(
                turn.entries[position].role,
                exchanges[position],
                now,
                *self._stored(turn.messages[position], position),
            )
            for position in range(first, len(turn.messages))
        ]

    def _stored(self, message: Wire, position: int) -> tuple[bytes, str]:
        """A message's JSON and digest. What would be another one when it is read again is not kept: it could
        never be proved (B3).
        """
        digest = self._digest(message, position)
        try:
            wire = wire_bytes(message)
            again = cast("Wire", json.loads(wire.decode("utf-8", "surrogatepass")))
            alike = message_digest(self._context.shape.settled(again)) == digest
            self._context.shape.parts(again)
        except _NOT_JSON as error:
            raise _not_json(position, error) from error
        if not alike:
            raise MalformedMessage(
                "would be another one when it is read again; are all its keys text, and different?",
                place=f"message {position}",
            )
        return wire, digest

    def _digest(self, message: Wire, position: int) -> str:
        try:
            return message_digest(self._context.shape.settled(message))
        except _NOT_JSON as error:
            raise _not_json(position, error) from error


_NOT_JSON = (TypeError, ValueError, RecursionError)


def _not_json(position: int, error: Exception) -> MalformedMessage:
    return MalformedMessage(f"is not JSON: {error}", place=f"message {position}")
