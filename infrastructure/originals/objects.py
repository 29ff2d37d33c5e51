"""Originals in a store of immutable objects: what S3 and DynamoDB have in common.

Two who append at the same place write an object of the same name, and the store makes it for one of them
alone (A8). Nothing else decides: what was looked at before only saves the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from compaction_ledger.domain.errors import DamagedOriginal, StoreUnavailable
from compaction_ledger.domain.window.keys import WindowKey, check_key
from compaction_ledger.domain.window.originals import NewOriginal, Original
from compaction_ledger.infrastructure.originals import batches, checking
from compaction_ledger.infrastructure.originals.batches import BatchHead, Blob


class Objects(Protocol):
    """A store of objects by name. Each checks what it reads, and speaks in errors of our tree.

    Names are ASCII with ``/`` between their parts, and sort as their bytes do.
    """

    def create(self, name: str, blob: Blob) -> bool:
        """Store an object, wholly or not at all; False where there is one of this name already.

        Raises :class:`StoreUnavailable` where it is not known whether it was stored (A9).
        """
        ...

    def read(self, names: Sequence[str]) -> list[Blob | None]:
        """The objects of these names. Raises :class:`DamagedOriginal` for one that is not what was stored."""
        ...

    def names(self, folder: str, after: str = "") -> Iterator[str]:
        """The names of the objects in a folder, in order, read as they are taken; only those that sort
        behind ``after``, which begins with the folder.
        """
        ...

    def heads(self, folder: str, limit: int | None = None) -> list[tuple[str, bytes]]:
        """The names and heads of the first objects in a folder, in order. Raises as :meth:`read`."""
        ...

    def folders(self, folder: str) -> set[str]:
        """The names of the folders in a folder, without what stands before."""
        ...

    def delete(self, folder: str) -> None:
        """Delete every object in a folder, also those in folders of it."""
        ...


class ObjectOriginals:
    """The port ``Originals`` over :class:`Objects`. A run begins with its first message."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    # --- writing ---

    def append(
        self, key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]
    ) -> None:
        """Append behind ``first`` messages, as one object."""
        checking.check_append(key, shape, first, messages)
        if self._is_kept_already(key, shape, first, messages):
            return
        if first == 0:
            self._register(key)
        name = batches.run_folder(key) + batches.numbered(first)
        if self._create(name, batches.encode_batch(key, shape, first, messages)):
            return
        # Another was first; or it was us, and the answer was lost (A9).
        if not self._is_kept_already(key, shape, first, messages):
            raise checking.other_first(key, first, self.count(key))

    def keep_result(self, scope: str, conversation: str, content: bytes) -> str:
        """Keep a tool result once (T14)."""
        checking.check_conversation(scope, conversation)
        checking.check_bytes(content, "result")
        digest = checking.sha256(content)
        head = batches.encode_head(scope, conversation)
        self._create(_result_name(scope, conversation, digest), Blob(head, bytes(content)))
        return digest

    def forget(self, scope: str, conversation: str) -> None:
        """Delete all runs and results of a conversation. Where it is interrupted, it is to be done again."""
        checking.check_conversation(scope, conversation)
        self._objects.delete(batches.conversation_folder(scope, conversation))

    # --- reading ---

    def count(self, key: WindowKey) -> int:
        """How many messages are kept."""
        newest = self._newest(key)
        return 0 if newest is None else newest.end

    def shape(self, key: WindowKey) -> str | None:
        """In which wire shape."""
        newest = self._newest(key)
        return None if newest is None else newest.shape

    def digests(self, key: WindowKey) -> Sequence[str]:
        """The digest of each message, in order; the messages themselves are not read."""
        check_key(key)
        found = reversed(self._objects.heads(batches.run_folder(key)))
        heads = [batches.decode_batch_head(name, head, key) for name, head in found]
        checking.check_dense(
            key, (at for head in heads for at in range(head.first, head.end)), 0, 0
        )
        rows = (row for head in heads for row in head.messages)
        return [checking.digest_of(key, position, row[3]) for position, row in enumerate(rows)]

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Sequence[Original]:
        """Messages from ``start``, below ``stop``. Only the objects that hold them are read."""
        check_key(key)
        checking.check_part(start, stop)
        if stop is not None and start >= stop:
            return []
        names = self._names_of(key, start, stop)
        originals: list[Original] = []
        for name, blob in zip(names, self._objects.read(names), strict=True):
            if blob is None:
                raise DamagedOriginal(f"{name} was deleted while it was read")
            originals += batches.decode_batch(name, blob, key)
        end = originals[-1].position + 1 if originals else 0
        # What is there in all is asked only where not all that was wanted was found.
        if stop is not None:
            end = stop if end >= stop else min(stop, self.count(key))
        part = [kept for kept in originals if start <= kept.position < end]
        checking.check_dense(key, (kept.position for kept in part), start, end)
        return part

    def runs(self, scope: str, conversation: str) -> Sequence[str]:
        """The runs of a conversation, in the order they began."""
        checking.check_conversation(scope, conversation)
        folder = batches.conversation_folder(scope, conversation)
        begun = self._objects.folders(f"{folder}run/")
        if not begun:
            return []
        runs: dict[str, None] = {}
        for name, head in reversed(self._objects.heads(f"{folder}runs/")):
            run = batches.decode_head(name, head, scope, conversation).get("run")
            if not isinstance(run, str):
                raise DamagedOriginal(f"{name} names no run")
            if batches.run_hash(run) in begun:
                runs.setdefault(run)
        return list(runs)

    def result(self, scope: str, conversation: str, digest: str) -> bytes | None:
        """The content, checked against its digest."""
        if not checking.check_result(scope, conversation, digest):
            return None
        name = _result_name(scope, conversation, digest)
        (blob,) = self._objects.read([name])
        if blob is None:
            return None
        batches.decode_head(name, blob.head, scope, conversation)
        return checking.checked_result(blob.body, digest)

    # --- inside ---

    def _newest(self, key: WindowKey) -> BatchHead | None:
        check_key(key)
        for name, head in self._objects.heads(batches.run_folder(key), limit=1):
            return batches.decode_batch_head(name, head, key)
        return None

    def _names_of(self, key: WindowKey, start: int, stop: int | None) -> list[str]:
        """The names of the batches that may hold messages of this part, in order."""
        folder = batches.run_folder(key)
        after = (
            folder
            if stop is None
            else folder + batches.before(min(stop, checking.MOST_MESSAGES) - 1)
        )
        names: list[str] = []
        for name in self._objects.names(folder, after):
            names.append(name)
            if batches.number_of(name) <= start:
                break
        return names[::-1]

    def _is_kept_already(
        self, key: WindowKey, shape: str, first: int, messages: Sequence[NewOriginal]
    ) -> bool:
        newest = self._newest(key)
        if newest is not None:
            checking.check_shape(key, newest.shape, shape)
        return checking.is_kept_already(
            key,
            first,
            messages,
            0 if newest is None else newest.end,
            lambda: [
                checking.Identity(kept.role, kept.exchange, kept.digest)
                for kept in self.read(key, first, first + len(messages))
            ],
        )

    def _register(self, key: WindowKey) -> None:
        """Note that a run begins, behind those that began before.

        It may be noted twice, where two begin it at once: the first note counts. And where its messages
        do not follow, it has not begun.
        """
        folder = batches.conversation_folder(key.scope, key.conversation) + "runs/"
        newest = next(self._objects.names(folder), None)
        number = 0 if newest is None else batches.number_of(newest) + 1
        blob = Blob(batches.encode_head(key.scope, key.conversation, run=key.run), b"")
        while not self._objects.create(folder + batches.numbered(number), blob):
            number += 1

    def _create(self, name: str, blob: Blob) -> bool:
        """As :meth:`Objects.create`; where its answer is lost, it is looked up whether there is one (A9)."""
        try:
            return self._objects.create(name, blob)
        except StoreUnavailable:
            if self._objects.read([name]) == [None]:
                raise
            return False


def _result_name(scope: str, conversation: str, digest: str) -> str:
    return f"{batches.conversation_folder(scope, conversation)}results/{digest}"
