"""Keeping a run's messages as they come, and noticing when recorded ones are others now (T2, T15)."""

from __future__ import annotations

from collections.abc import Sequence

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

    @property
    def digests(self) -> Sequence[str]:
        """The digest of each recorded message."""
        return self._digests or []

    def record(self, turn: Turn) -> None:
        """Keep the messages that are not kept yet, and large results. Raises :class:`HistoryChanged`."""
        key, originals = self._context.key, self._context.originals
        if self._digests is None:
            self._digests = list(originals.digests(key))
        self._compare(turn)
        first = len(self._digests)
        if first < len(turn.messages):
            for content in turn.taken_out.values():
                originals.keep_result(key.scope, key.conversation, content)
            new = self._new(turn, first)
            try:
                originals.append(key, self._context.shape.name, first, new)
            except ConcurrentAppend:  # another process has this run, too
                self._digests, self._seen = list(originals.digests(key)), ()
                self._compare(turn)
                if len(self._digests) < len(turn.messages):
                    raise
            else:
                self._digests += [message.digest for message in new]
        self._seen = turn.originals

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
                role=turn.entries[position].role,
                exchange=exchanges[position],
                at=now,
                wire=wire_bytes(turn.messages[position]),
                digest=self._digest(turn.messages[position], position),
            )
            for position in range(first, len(turn.messages))
        ]

    def _digest(self, message: Wire, position: int) -> str:
        try:
            return message_digest(self._context.shape.settled(message))
        except (TypeError, ValueError) as error:
            raise MalformedMessage(f"is not JSON: {error}", place=f"message {position}") from error
