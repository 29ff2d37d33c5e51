"""The event-sourced application: ``eventsourcing``'s ``Application``, repository and event store.

The aggregate is immutable: the repository folds a stream with the domain's ``evolve`` as projector
function. Nothing is configured by the process's environment: a host that uses ``eventsourcing`` for
itself must not change our storage by its variables.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, cast
from uuid import UUID

from eventsourcing.application import AggregateNotFoundError, Application
from eventsourcing.persistence import (
    ApplicationRecorder,
    InfrastructureFactory,
    IntegrityError,
    Mapper,
)
from eventsourcing.popo import POPOFactory
from eventsourcing.utils import Environment, EnvType

from compaction_ledger.domain.erasure import (
    ERASURE_EVENTS,
    ErasedFact,
    ErasureCompleted,
    ErasureFact,
    ErasureRequested,
    Subject,
    WasErased,
)
from compaction_ledger.domain.errors import (
    ConcurrentAppend,
    DamagedLog,
    DifferentResult,
    Erased,
    StoreError,
)
from compaction_ledger.domain.events import RequestDelivered
from compaction_ledger.domain.facts import Delivery, StreamFact
from compaction_ledger.domain.log import Finding, RangeKey, Recorded, StreamKey
from compaction_ledger.domain.ports import OnLeaves, Progress
from compaction_ledger.domain.proof.tiles import TreeReader
from compaction_ledger.domain.range_stream import EMPTY, RangeState
from compaction_ledger.domain.window import window_stream as windows
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.window_state import WindowState
from compaction_ledger.infrastructure.event_store.cipher import (
    PLAIN,
    PayloadCipher,
    PayloadReader,
)
from compaction_ledger.infrastructure.event_store.envelope import parse_fields
from compaction_ledger.infrastructure.event_store.exporting import ExportedLog
from compaction_ledger.infrastructure.event_store.folding import (
    Folded,
    Projector,
    State,
    project_range,
    project_window,
)
from compaction_ledger.infrastructure.event_store.mapper import FactMapper, StreamEvent
from compaction_ledger.infrastructure.event_store.reading import (
    check_encrypted,
    erased,
    recorded,
    recorded_without_payload,
)
from compaction_ledger.infrastructure.event_store.rows import PlainRow, Row
from compaction_ledger.infrastructure.event_store.sealing import sealed_fields
from compaction_ledger.infrastructure.event_store.streams import (
    delivery_stream,
    erasure_stream,
    range_stream,
    window_delivery_stream,
    window_stream,
)
from compaction_ledger.infrastructure.event_store.verification import verify_seal


class SealedRecorder(Protocol):
    """What the application needs of a recorder beyond ``eventsourcing``'s own interface."""

    def rows(self, start: int, limit: int, stop: int | None = None) -> list[Row]: ...
    def plain_rows(self, start: int, limit: int) -> Sequence[PlainRow]: ...
    def rows_before(self, events: Sequence[tuple[str, int]]) -> Sequence[PlainRow]: ...
    def rows_at(self, indices: Sequence[int]) -> list[Row]: ...
    def rows_of(self, stream: str) -> list[Row]: ...
    def head(self) -> tuple[int, str]: ...
    def totals(self) -> tuple[int, str, int]: ...
    def subject(
        self, scope: str, conversation: str, new_reference: str, new_key: str = ""
    ) -> Subject: ...
    def subjects(self) -> Mapping[str, Subject]: ...
    def find_subject(self, scope: str, conversation: str) -> Subject | None: ...
    def subject_of(self, reference: str) -> Subject | None: ...
    def keys_of(self, reference: str) -> set[str]: ...
    def blank(self, reference: str) -> int: ...
    def erased_references(self) -> frozenset[str]: ...
    def clock(self) -> int: ...


class LedgerLog(Application[UUID]):
    """The sealed log, behind the port :class:`compaction_ledger.domain.ports.Log`."""

    name = "compaction-ledger"

    def __init__(self, recorder: ApplicationRecorder, cipher: PayloadCipher = PLAIN) -> None:
        self._given_recorder = recorder
        self._cipher = cipher
        self._subjects: dict[tuple[str, str], Subject] = {}
        self._names: dict[str, tuple[str, str]] = {}  # of references, as far as they were looked up
        self._erased_at_first: frozenset[str] | None = None
        super().__init__()

    # --- how the application is put together: nothing from the environment ---

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        return Environment(name, dict(env or {}))

    def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
        return POPOFactory(env)

    def construct_mapper(self) -> Mapper[UUID]:
        return FactMapper(self._cipher)

    def construct_recorder(self) -> ApplicationRecorder:
        return self._given_recorder

    @property
    def sealed(self) -> SealedRecorder:
        """The recorder, with what sealing adds to it."""
        return cast(SealedRecorder, self.recorder)

    # --- the port ---

    def now(self) -> int:
        """Microseconds since the epoch, by the store's clock (A5)."""
        return self.sealed.clock()

    def size(self) -> int:
        """How many facts are sealed."""
        return self.sealed.head()[0]

    def erasures(self) -> int:
        """A number that changes with every erasure."""
        return self._cipher.revision()

    def load(self, key: RangeKey) -> RangeState:
        """The state of a range; empty where nothing has happened yet."""
        return self._load(key, project_range, EMPTY)

    def load_window(self, key: WindowKey) -> WindowState:
        """The state of a window; empty where nothing has happened yet."""
        return self._load(key, project_window, windows.EMPTY)

    def append(
        self,
        key: StreamKey,
        state: RangeState | WindowState,
        facts: Sequence[StreamFact],
        within: tuple[int, int] | None = None,
    ) -> Sequence[int]:
        """Append ``facts`` behind ``state``; :class:`ConcurrentAppend` where another came first (A8).

        :class:`TimeHasPassed` where the clock, read after the store's lock, is not ``within`` (A5).
        """
        subject = self._subject(key.scope, key.conversation)
        stream = _stream_of(subject.reference, key)
        events = [
            StreamEvent(stream, state.version + n, fact, subject.key)
            for n, fact in enumerate(facts, start=1)
        ]
        return self._save(events, subject, within)

    def deliver(self, delivery: Delivery) -> int:
        """Record a delivery, in a stream of its own; the same one again has the index it has (A2)."""
        if isinstance(delivery, RequestDelivered):
            place = (delivery.scope, delivery.conversation)
            subject = self._subject(*place)
            stream = delivery_stream(subject.reference, delivery.delivery_id)
        else:
            place = (delivery.window.scope, delivery.window.conversation)
            subject = self._subject(*place)
            stream = window_delivery_stream(subject.reference, delivery.delivery_id)
        try:
            return self._save([StreamEvent(stream, 1, delivery, subject.key)], subject)[0]
        except ConcurrentAppend:
            (recorded,) = self.stream(stream.hex)
        if isinstance(recorded.fact, ErasedFact):
            raise _erased(*place)
        if recorded.fact != delivery:
            raise DifferentResult(
                f"delivery {delivery.delivery_id} was recorded with another content"
            )
        return recorded.index

    def read(self, start: int, limit: int, stop: int | None = None) -> Sequence[Recorded]:
        """Facts in the order of the index, each checked against its seal."""
        rows = self.sealed.rows(start, limit, stop)
        if len(rows) < (limit if stop is None else min(limit, stop - start)):
            rows = self._rows_to_the_end(start, limit, stop)
        for expected, row in enumerate(rows, start=start):
            if row.idx != expected:
                raise DamagedLog("an event is missing here", index=expected)
        return self._recorded(rows)

    def at(self, indices: Sequence[int]) -> Mapping[int, Recorded]:
        """The facts at ``indices`` whose seal holds."""
        found: dict[int, Recorded] = {}
        payloads = self._cipher.reader()
        rows = self.sealed.rows_at(indices)
        before = self._before_plain(rows)
        for row in rows:
            try:
                if (previous := before.get(row.idx)) is not None:
                    check_encrypted(previous, row)
                found[row.idx] = self._one(row, payloads)
            except DamagedLog:  # the caller is told by its absence, verification tells why
                continue
        return found

    def history(self, key: StreamKey) -> Sequence[Recorded]:
        """The facts of a range or window, each checked against its seal."""
        subject = self._known_subject(key.scope, key.conversation)
        if subject is None:
            return []
        found = self.stream(_stream_of(subject.reference, key).hex)
        if any(isinstance(one.fact, ErasedFact) for one in found):  # meanwhile
            raise _erased(key.scope, key.conversation)
        return found

    def stream(self, stream: str) -> Sequence[Recorded]:
        """The facts of one stream, each checked against its seal."""
        rows = self.sealed.rows_of(stream)
        for before, row in pairwise(rows):
            check_encrypted(before, row)
        return self._recorded(rows)

    def verify(
        self, progress: Progress | None = None, on_leaves: OnLeaves | None = None
    ) -> Iterator[Finding]:
        """Check the whole seal (L1, L3). Whether a payload can be read is seen when it is (A10)."""
        payloads: PayloadReader = PLAIN
        try:
            payloads = self._cipher.reader()
            payloads.forgotten()
        except StoreError as error:
            yield Finding("keys", f"the seal is checked without the keys: {error}")
        for subject in self.sealed.subjects().values():
            self._name(subject)
        yield from verify_seal(self.sealed, progress, on_leaves, payloads)

    # --- erasing (the port :class:`compaction_ledger.domain.erasure.ErasableLog`) ---

    def known_keys(self) -> Iterable[str]:
        """The id of every data key that a conversation has, or had."""
        return [subject.key for subject in self.sealed.subjects().values() if subject.key]

    def nameless(self) -> Sequence[Subject]:
        """The subjects that are erased completely."""
        return [subject for subject in self.sealed.subjects().values() if not subject.is_named]

    def named(self, scope: str, conversation: str) -> Subject | None:
        """The subject of a conversation, if it has one; not that of one that was erased completely."""
        return self.sealed.find_subject(scope, conversation)

    def subject_for(self, scope: str, conversation: str) -> Subject:
        """The subject of a conversation; it is given one, without a key, where it has none."""
        return self.sealed.subject(scope, conversation, secrets.token_hex(16))

    def unfinished(self, begun: Iterable[str], was_erased: WasErased) -> Sequence[Subject]:
        """The subjects whose erasure was requested or ``begun``, and that still have a name.

        And those whose name ``was_erased`` under another reference, which a late writer has left.
        """
        begun = set(begun)
        return [
            subject
            for subject in self.sealed.subjects().values()
            if subject.is_named
            and (
                subject.state == "erased"
                or subject.reference in begun
                or was_erased(subject.scope, subject.conversation)
            )
        ]

    def check_key(self, subject: Subject) -> None:
        """Raise :class:`DamagedLog` where events of the subject name another key than it has.

        To destroy that one would leave them readable, and say that they were erased.
        """
        named = self.sealed.keys_of(subject.reference)
        # It may have got one since, before the event that names it.
        subject = self.with_key(subject)
        others = named - {subject.key}
        if others:
            raise DamagedLog(
                f"reference {subject.reference} has the key {subject.key or 'none'}, and events of it name "
                f"{', '.join(sorted(others))}: what is in the table of references was changed"
            )

    def with_key(self, subject: Subject) -> Subject:
        """The subject with the key that it has in the store now."""
        known = self.sealed.subject_of(subject.reference)
        return subject if known is None else subject._replace(key=known.key)

    def request_erasure(self, subject: Subject) -> int:
        """Record the request, once; from then on the store refuses all else of the subject (S3)."""
        return self._record_erasure(subject, 1, ErasureRequested(subject.reference, _keys(subject)))

    def blank(self, subject: Subject) -> int:
        """Remove the payloads that were stored unencrypted; how many."""
        return self.sealed.blank(subject.reference)

    def complete_erasure(self, subject: Subject, purged: Sequence[str]) -> int:
        """Record the completion, once, and forget the subject's name."""
        fact = ErasureCompleted(subject.reference, _keys(subject), tuple(purged))
        index = self._record_erasure(subject, 2, fact)
        self._subjects.pop((subject.scope, subject.conversation), None)
        return index

    def _record_erasure(self, subject: Subject, version: int, fact: ErasureFact) -> int:
        stream = erasure_stream(subject.reference)
        try:
            return self._save([StreamEvent(stream, version, fact)], subject)[0]
        except ConcurrentAppend:
            return self.stream(stream.hex)[version - 1].index

    def exported(self, tree: TreeReader) -> ExportedLog:
        """What an export reads (K5); ``tree`` is the tree over this log."""
        return ExportedLog(self.sealed, tree, self._cipher)

    # --- inside ---

    def _recorded(self, rows: Sequence[Row]) -> list[Recorded]:
        payloads = self._cipher.reader()
        return [self._one(row, payloads) for row in rows]

    def _one(self, row: Row, payloads: PayloadReader) -> Recorded:
        if self._erased_here and self._was_erased(row):
            return erased(row, sealed_fields(*row))
        return recorded(row, payloads, self._names) if row.payload else self._blanked(row, payloads)

    @property
    def _erased_here(self) -> frozenset[str]:
        """The references that the database knew as erased when it was read first.

        What was erased meanwhile the keys know. But the keys may be older than the database: put back from a
        backup, they would open again what the log says is erased (S3).
        """
        if self._erased_at_first is None:
            self._erased_at_first = self.sealed.erased_references()
        return self._erased_at_first

    def _was_erased(self, row: Row) -> bool:
        fields = parse_fields(row.envelope) if row.payload and row.envelope else None
        return (
            fields is not None
            and fields[8] in self._erased_here
            and fields[0] not in ERASURE_EVENTS
        )

    def _before_plain(self, rows: Sequence[Row]) -> Mapping[int, Row]:
        """Of rows that are read alone, the one before each that is not encrypted, by the index of that.

        Also looks up the conversations that they must fit to, as far as those are not known yet.
        """
        plain: dict[tuple[str, int], int] = {}
        for row in rows:
            fields = parse_fields(row.envelope) if type(row.envelope) is bytes else None
            if fields is None:
                continue
            if fields[8] not in self._names:
                subject = self.sealed.subject_of(fields[8])
                if subject is not None:
                    self._name(subject)
            if not fields[1] and fields[0] not in ERASURE_EVENTS and int(fields[9]) > 1:
                plain[fields[7], int(fields[9]) - 1] = row.idx
        found = map(Row._make, self.sealed.rows_before([*plain]) if plain else ())
        return {plain[row.stream, row.version]: row for row in found}

    def _name(self, subject: Subject) -> None:
        if subject.is_named:
            self._names[subject.reference] = (subject.scope, subject.conversation)

    def _blanked(self, row: Row, payloads: PayloadReader) -> Recorded:
        """An event without a payload: that was removed with its conversation (S3), or it is damage."""
        fields = parse_fields(row.envelope)
        known = None if fields is None else self.sealed.subject_of(fields[8])
        if known is None or known.state != "erased":
            return recorded(row, payloads)
        return recorded_without_payload(row)

    def _load(self, key: StreamKey, projector: Projector[State], empty: State) -> State:
        subject = self._known_subject(key.scope, key.conversation)
        if subject is None:
            return empty
        try:
            folded: Folded[State] = self.repository.get(
                _stream_of(subject.reference, key), projector_func=cast(Any, projector)
            )
        except AggregateNotFoundError:
            return empty
        return folded.state

    def _rows_to_the_end(self, start: int, limit: int, stop: int | None) -> list[Row]:
        """The last rows of the log: all that its head promises, or it is damaged (L1)."""
        size = self.size()
        end = min(start + limit, size if stop is None else min(stop, size))
        rows = self.sealed.rows(start, limit, end)
        if start + len(rows) < end:
            missing = next(
                (n for n, row in enumerate(rows, start) if row.idx != n), start + len(rows)
            )
            raise DamagedLog("an event is missing here", index=missing)
        return rows

    def _save(
        self,
        events: Sequence[StreamEvent],
        subject: Subject,
        within: tuple[int, int] | None = None,
    ) -> list[int]:
        stored = list(map(self.mapper.to_stored_event, cast(Any, events)))
        try:
            # As `self.events.put` does it, without an object for each event that nobody here looks at.
            ids = self.recorder.insert_events(stored, subject=subject.reference, within=within)
        except IntegrityError as error:
            raise ConcurrentAppend("another process appended to this stream first") from error
        return [notification_id - 1 for notification_id in ids or ()]

    def _subject(self, scope: str, conversation: str) -> Subject:
        """The subject of a conversation, with a data key where payloads are encrypted from now on (S1)."""
        known = self._known_subject(scope, conversation)
        if known is None or not known.key:
            key = self._cipher.fresh()
            if known is None or key:
                reference = secrets.token_hex(16) if known is None else known.reference
                known = self._subject_now(scope, conversation, reference, key)
                # What was erased in between has a free name again, and must not get a new reference (S3).
                self._cipher.look()
                self._cipher.check(scope, conversation)
                self._subjects[scope, conversation] = known
            if not known.key:
                self._cipher.allow_plain()
        return known

    def _subject_now(self, scope: str, conversation: str, reference: str, key: str) -> Subject:
        try:
            return self.sealed.subject(scope, conversation, reference, key)
        except IntegrityError as error:  # the name is free, and the reference is not
            if (found := self.sealed.subject_of(reference)) is None or found.state != "erased":
                raise
            raise _erased(scope, conversation) from error

    def _known_subject(self, scope: str, conversation: str) -> Subject | None:
        """Raises :class:`Erased` where nothing of the conversation is read any more (S3)."""
        self._cipher.check(scope, conversation)
        known = self._subjects.get((scope, conversation))
        if known is None:
            known = self.sealed.find_subject(scope, conversation)
            if known is not None:
                self._subjects[scope, conversation] = known
        if known is not None and known.state == "erased":
            raise _erased(scope, conversation)
        return known


def _erased(scope: str, conversation: str) -> Erased:
    return Erased(f"conversation {conversation!r} in scope {scope!r} was erased")


def _keys(subject: Subject) -> tuple[str, ...]:
    return (subject.key,) if subject.key else ()


def _stream_of(subject: str, key: StreamKey) -> UUID:
    if isinstance(key, RangeKey):
        return range_stream(subject, key)
    return window_stream(subject, key)
