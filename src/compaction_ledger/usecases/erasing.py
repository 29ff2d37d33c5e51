"""Erase conversations: step by step, each of which may be the last before the process dies (S3).

What was begun is fully done by whoever comes next: every step can be taken again. Outside of the database it
is noted first, so that nothing is read from then on, not even from a backup that is put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_ledger.domain.erasure import ErasableLog, Erasures, Purged, Subject
from compaction_ledger.domain.errors import UnknownConversation
from compaction_ledger.domain.identifiers import check_id
from compaction_ledger.domain.log import Finding

Step = Literal["begun", "requested", "key destroyed", "purged", "completed"]
OnStep = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased. The indices are those of its request and completion in the log.

    ``reference`` is what stands for the conversation in the log from now on; ``blanked`` counts the payloads
    that had been stored without encryption, and were removed.
    """

    reference: str
    requested: int
    completed: int
    blanked: int
    purged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resumed:
    """What was left to do.

    ``erasures`` were begun and are complete now. A backup had brought back the keys of the references that
    are ``destroyed_again``, and so many conversations, by lines or on the work list, that are
    ``forgotten_again``.
    """

    erasures: tuple[Erasure, ...]
    destroyed_again: tuple[str, ...]
    forgotten_again: int


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases from one ledger. ``stores`` are those that keep something of conversations, by name.

    ``scrub`` sees to it that deleted rows leave no trace in the ledger's files. ``check_allowed`` raises
    where whoever asks may not erase: before anything is noted, since that cannot be taken back.
    ``conversations`` are those that have lines, or are on the work list, erased or not; one may come twice.
    ``is_known`` says whether anything is stored of one.
    """

    log: ErasableLog
    erasures: Erasures
    stores: Mapping[str, Purged]
    scrub: Callable[[], None]
    check_allowed: Callable[[], None]
    conversations: Callable[[], Iterable[tuple[str, str]]]
    is_known: Callable[[str, str], bool]

    def erase(
        self,
        scope: str,
        conversation: str,
        on_step: OnStep | None = None,
        *,
        unknown: bool = False,
    ) -> Erasure:
        """Erase a conversation. Raises :class:`Erased` if it was, once nothing of it has come back.

        With ``unknown`` also one of which nothing is known here: else :class:`UnknownConversation`. Raises
        :class:`DamagedLog`, before anything is done, where it is not sure which key to destroy.
        """
        check_id(scope, "scope")
        check_id(conversation, "conversation")
        self.check_allowed()
        subject = self.log.named(scope, conversation)
        if subject is None:
            self._check_new(scope, conversation, unknown=unknown)
            subject = self.log.subject_for(scope, conversation)
        return self._erase(subject, on_step or _tell_nobody)

    def _check_new(self, scope: str, conversation: str, *, unknown: bool) -> None:
        if self.erasures.was_erased(scope, conversation):
            self._forget([(scope, conversation)])
            self.erasures.check(scope, conversation)
        if not unknown and not self.is_known(scope, conversation):
            self.erasures.check(scope, conversation)  # it may be known no more by now
            raise UnknownConversation(
                f"nothing is known of conversation {conversation!r} in scope {scope!r}; "
                "to keep it away all the same, say so (--unknown)"
            )

    def leftovers(self) -> Sequence[tuple[str, str]]:
        """Conversations that were erased and have lines again, or are on the work list (S3).

        A database was put back from before, or a writer was killed before it took back what it wrote.
        """
        found = (place for place in self.conversations() if self.erasures.was_erased(*place))
        return list(dict.fromkeys(found))

    def finding(self) -> Finding | None:
        """That there are leftovers, for verification; nothing of erasures that are under way just now."""
        first = set(self.leftovers())
        if not first or any(self.erasures.pending()):
            return None
        left = len(first & set(self.leftovers()))
        message = (
            f"{left} erased conversations have lines among the transcripts, or are on the work list: "
            "run `erase --resume`"
        )
        return Finding("erasure", message) if left else None

    def _forget(self, places: Sequence[tuple[str, str]]) -> None:
        for place in places:
            for store in self.stores.values():
                store.forget(*place)
        if places:
            self.scrub()

    def unfinished(self) -> Sequence[Subject]:
        """What was begun and is not complete here: after a kill, or in a backup that was put back."""
        return self.log.unfinished(self.erasures.references(), self.erasures.was_erased)

    def resume(self, on_step: OnStep | None = None) -> Resumed:
        """Complete whatever was begun, and undo what backups of database or keys have brought back.

        Raises :class:`KeyMissing` where the keys are not there: then nothing is known of erasures.
        """
        self.check_allowed()
        self.erasures.check_keys(self.log.known_keys())
        pending = list(self.erasures.pending())  # what others begin from now on is theirs
        nameless = self.log.nameless()  # before the keys are asked: they know of it first
        begun = set(self.erasures.references())
        again = [one for one in nameless if one.reference not in begun]
        for subject in again:  # the keys are older than the database
            self.erasures.bury(subject)
        done = [self._erase(subject, on_step or _tell_nobody) for subject in self.unfinished()]
        still = set(self.erasures.pending())
        # Of these all is done, and nobody noted it.
        for reference in (one for one in pending if one in still):
            self.scrub()
            self.erasures.complete(reference)
        leftovers = self.leftovers()
        self._forget(leftovers)
        return Resumed(tuple(done), tuple(one.reference for one in again), len(leftovers))

    def _erase(self, subject: Subject, on_step: OnStep) -> Erasure:
        self.log.check_key(subject)
        self.erasures.check_keys([subject.key] if subject.key else [])
        self.erasures.begin(subject)
        on_step("begun")
        requested = self.log.request_erasure(subject)
        on_step("requested")
        subject = self.log.with_key(subject)
        self.erasures.begin(subject)  # with the key that it may have got until it was requested
        self.erasures.destroy(subject.reference)
        on_step("key destroyed")
        for store in self.stores.values():
            store.forget(subject.scope, subject.conversation)
        blanked = self.log.blank(subject)
        self.scrub()
        on_step("purged")
        purged = tuple(self.stores)
        completed = self.log.complete_erasure(subject, purged)
        # Whoever was about to write what it had read before has done so by now.
        for store in self.stores.values():
            store.forget(subject.scope, subject.conversation)
        self.scrub()
        self.erasures.complete(subject.reference)
        on_step("completed")
        return Erasure(subject.reference, requested, completed, blanked, purged)


def _tell_nobody(_step: Step) -> None:
    pass
