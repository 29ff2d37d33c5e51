"""What the use cases need from outside, as small protocols, each with one conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from compaction_ledger.domain.conversation import Conversation, MessageStatus, RunState
from compaction_ledger.domain.errors import DamagedReadModel
from compaction_ledger.domain.facts import Delivery, StreamFact
from compaction_ledger.domain.finish import Answer
from compaction_ledger.domain.identity import ModelIdentity
from compaction_ledger.domain.log import Finding, RangeKey, Recorded, StreamKey
from compaction_ledger.domain.range_stream import RangeState
from compaction_ledger.domain.read_models import (
    AttemptRow,
    DeliveryRow,
    GenerationProgress,
    RangeCensus,
    RangeRow,
    SummaryRow,
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)
from compaction_ledger.domain.replay import AnyRow, RowChange
from compaction_ledger.domain.summarization import SummaryRequest
from compaction_ledger.domain.takeover import NewThread, ThreadChanges
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.window_state import WindowState
from compaction_ledger.domain.work import Backlog, Found, WorkItem

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

OnLeaves = Callable[[int, Sequence[bytes]], object]
"""Called with an index of the log and the leaf hashes from there on, which are not checked against a tree."""

OnDamaged = Callable[[DamagedReadModel], None]
"""Called with a row that does not hold what belongs there, in place of an error."""


RecordValues = dict[str, list[tuple[object, ...]]]
"""Rows as plain values, by the name of their table."""


class Transcripts(Protocol):
    """Where conversations come from. A host puts its own tables or objects behind this."""

    def conversation(self, scope: str, conversation: str) -> Conversation:
        """The conversation as it is now. Raises :class:`UnknownConversation`."""
        ...

    def revision(self, scope: str, conversation: str) -> str | None:
        """A token that changes with every change of the conversation, or ``None`` where none is kept.

        It only saves reading again what has not changed: equal tokens must mean equal messages and runs.
        """
        ...

    def conversations(self) -> Iterable[tuple[str, str]]:
        """Every scope and conversation, in a stable order."""
        ...


class TranscriptStore(Transcripts, Protocol):
    """An embedded store, which can also be written to. Nothing is ever changed: an edit is a revision."""

    def append(
        self,
        scope: str,
        conversation: str,
        messages: Iterable[NewMessage],
        runs: Iterable[NewRun] = (),
    ) -> None:
        """Append lines, in order, in one transaction; makes the conversation when it is new.

        A run that is known gets its new state. Raises :class:`InvalidInput` kinds (E4), and then stores
        nothing.
        """
        ...

    def take_over(
        self, scope: str, threads: Sequence[NewThread], *, update: bool = False
    ) -> Sequence[ThreadChanges]:
        """Append several conversations, or with ``update`` bring them up to date, in one transaction.

        Returns what was stored of each. What is refused, and how, is told at :func:`thread_changes`; then
        nothing is stored of any.
        """
        ...

    def revise(
        self,
        scope: str,
        conversation: str,
        message_id: str,
        text: str | None = None,
        *,
        status: MessageStatus | None = None,
    ) -> None:
        """Give a message another text or status, as a new revision. Raises :class:`UnknownMessage`."""
        ...

    def delete(self, scope: str, conversation: str, message_id: str) -> None:
        """Take a message out of the conversation as it is now, as a new revision."""
        ...

    def set_run(self, scope: str, conversation: str, run: str, state: RunState) -> None:
        """Record a run's state as it is now."""
        ...

    def forget(self, scope: str, conversation: str) -> None:
        """Delete the conversation with all its lines and revisions; nothing, where there is none (S3)."""
        ...


class Log(Protocol):
    """The sealed log. Appends are atomic, dense and decided by the store's unique key (A8, L1)."""

    def now(self) -> int:
        """The store's clock, in microseconds since the epoch (A5)."""
        ...

    def size(self) -> int:
        """How many facts are sealed."""
        ...

    def erasures(self) -> int:
        """A number that changes with every erasure (S3): what was read before may be erased since. Cheap."""
        ...

    def load(self, key: RangeKey) -> RangeState:
        """The state of a range, from its facts. Raises :class:`DamagedLog`."""
        ...

    def load_window(self, key: WindowKey) -> WindowState:
        """The state of a run's window, from its facts. Raises :class:`DamagedLog`."""
        ...

    def append(
        self,
        key: StreamKey,
        state: RangeState | WindowState,
        facts: Sequence[StreamFact],
        within: tuple[int, int] | None = None,
    ) -> Sequence[int]:
        """Append ``facts`` behind ``state`` and return their indices. Raises :class:`ConcurrentAppend`.

        ``within`` is from when until when (exclusive) the decision holds. The store's clock is read once,
        after its lock; that reading is what is sealed, and if it lies outside, nothing is stored and
        :class:`TimeHasPassed` raised (A5).
        """
        ...

    def deliver(self, delivery: Delivery) -> int:
        """Record a delivery in a stream of its own and return its index."""
        ...

    def read(self, start: int, limit: int, stop: int | None = None) -> Sequence[Recorded]:
        """At most ``limit`` facts from index ``start``, below ``stop``. Raises :class:`DamagedLog`."""
        ...

    def at(self, indices: Sequence[int]) -> Mapping[int, Recorded]:
        """The facts at these indices; one that is missing or damaged is left out."""
        ...

    def history(self, key: StreamKey) -> Sequence[Recorded]:
        """The facts of a range or window, in order; none where there are none. Raises :class:`DamagedLog`."""
        ...

    def stream(self, stream: str) -> Sequence[Recorded]:
        """The facts of one stream, by its id, in order. Raises :class:`DamagedLog`."""
        ...

    def verify(
        self, progress: Progress | None = None, on_leaves: OnLeaves | None = None
    ) -> Iterator[Finding]:
        """Check the whole seal, and yield everything that is wrong; ``on_leaves`` is told of every leaf."""
        ...


class ReadModels(Protocol):
    """The rows that the log implies, up to :meth:`position`: the questions.

    A row that does not hold what belongs there is :class:`DamagedReadModel`: nothing is made of it (H9).
    """

    def position(self) -> int:
        """How many facts of the log the rows reflect."""
        ...

    def registry_fingerprint(self) -> str:
        """Under which prompt registry the rows were built (P4)."""
        ...

    def progress(self) -> Sequence[GenerationProgress]:
        """How far the rows have come that serve, and those that are being rebuilt (P3), by number."""
        ...

    def summaries(
        self, scope: str, conversation: str, on_damaged: OnDamaged | None = None
    ) -> Sequence[SummaryRow]:
        """Every identity of this conversation, by range and place in the log.

        With ``on_damaged``, that is told of each damaged row, and the others are answered with.
        """
        ...

    def ranges(
        self, scope: str | None = None, conversation: str | None = None
    ) -> Sequence[RangeRow]:
        """Every range known to the log, by scope, conversation and first pair."""
        ...

    def census(self) -> RangeCensus:
        """How many ranges there are of each status, counted at one moment."""
        ...

    def attempts(self, scope: str, conversation: str) -> Sequence[AttemptRow]:
        """The timeline of attempts, in the log's order."""
        ...

    def deliveries(self, scope: str, conversation: str) -> Sequence[DeliveryRow]:
        """Recorded deliveries, in the log's order."""
        ...

    def window_chunks(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowChunkRow]:
        """Every identity of a chunk, of one run or of all, by run and first message."""
        ...

    def window_pins(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowPinRow]:
        """Every pin, current and corrected ones, in the log's order."""
        ...

    def window_deliveries(
        self, scope: str, conversation: str, run: str | None = None
    ) -> Sequence[WindowDeliveryRow]:
        """Recorded requests of a run or of all, in the log's order."""
        ...


class ReadModelStore(ReadModels, Protocol):
    """Read models that follow a log. Disposable: they can always be rebuilt."""

    def catch_up(self, log: Log, progress: Progress | None = None) -> int:
        """Apply what is new in ``log``, each fact once, and return the position (P2)."""
        ...

    def rebuild(self, log: Log, progress: Progress | None = None) -> int:
        """Build everything anew beside the old rows, then switch (P3)."""
        ...

    def forget(self, scope: str, conversation: str) -> None:
        """Delete every row that tells of a conversation, in every generation (S3)."""
        ...

    def records(self) -> RecordValues:
        """Every row of every table as plain values, by table name and in order of the primary key."""
        ...

    def snapshot(self) -> tuple[int, str, RecordValues]:
        """Position, registry fingerprint and records, as they are at one moment."""
        ...


class PastReadModels(ReadModelStore, Protocol):
    """Read models that follow a log as far as they are told to (P5). They are kept in memory alone."""

    def follow_to(self, log: Log, stop: int, progress: Progress | None = None) -> int:
        """Apply what is missing of the facts below ``stop``, and return the position."""
        ...

    def changes_to(
        self, log: Log, stop: int, progress: Progress | None = None
    ) -> Sequence[RowChange]:
        """As :meth:`follow_to`; every row that is another one now, by the event that changed it last."""
        ...

    def rows(self) -> Iterator[AnyRow]:
        """Every row of every kind there is."""
        ...

    def erased(self) -> Mapping[str, int]:
        """How many of the facts followed so far are erased, by their subject's reference (S3)."""
        ...


class Summarizer(Protocol):
    """A model that condenses replies. It is given assistant replies and nothing else (B4)."""

    @property
    def model(self) -> ModelIdentity:
        """Provider, name and the settings that change output (I1)."""
        ...

    def summarize(self, request: SummaryRequest) -> Answer:
        """Call the model once. Faults of the provider come back as an answer with ``fault`` set."""
        ...


class Admission(Protocol):
    """A bound on attempts at once (D1)."""

    def admit(self) -> Callable[[], None] | None:
        """Take a slot and return what gives it back; ``None`` means: not now (D2)."""
        ...


class Gate(Protocol):
    """Holds claims back while the provider is out (D3). Times are microseconds."""

    def may_claim(self, now: int) -> bool:
        """Whether to claim now; in an outage one caller is let through, with the probe."""
        ...

    def shut_until(self, now: int) -> int:
        """When it is worth asking again; ``now`` where claims are made."""
        ...

    def succeeded(self) -> None:
        """The provider answered, whatever the contract says of the answer."""
        ...

    def unavailable(self, now: int, retry_after: float | None) -> int:
        """A call brought no answer. Returns when to try again."""
        ...

    def released_unused(self) -> None:
        """The provider was not asked: the probe goes to the next caller."""
        ...


NoticeGuard = Callable[[Sequence[Found], Callable[[Sequence[Found]], int]], int]
"""Called with a page of what was found, and with what notices it; returns for how many that is news."""


class WorkList(Protocol):
    """Which conversations to look at next, for any number of workers: a hint, never a decision (W3, A8).

    Whatever is lost of it is found again by :meth:`discover`.
    """

    def notice(self, conversations: Iterable[tuple[str, str]]) -> int:
        """Say "look at these"; returns for how many that is news. Raises :class:`InvalidId`.

        What is due already stays so. What a worker is looking at becomes due when it has looked.
        """
        ...

    def discover(
        self,
        transcripts: Transcripts,
        *,
        view: str | None = None,
        every: float = 0.0,
        guard: NoticeGuard | None = None,
    ) -> int | None:
        """Notice the conversations whose revision is not the one that was looked at; returns how many.

        With ``view`` also those that were looked at under another one, if ``every`` is zero, or else once
        an hour. Where no revision is kept, all are noticed that do not wait for a time. ``None``, and nothing
        was done, where somebody began less than ``every`` seconds ago. The ``guard`` may leave some out.
        """
        ...

    def take(self, holder: str, limit: int, lease_seconds: float) -> Sequence[WorkItem]:
        """At most so many that are due, the scopes in rounds, and within one whoever became due first.

        They are left to the holder until the lease is over; then they are due again.
        """
        ...

    def looked(
        self,
        item: WorkItem,
        again_at: int | None,
        revision: str | None,
        *,
        view: str = "",
        failures: int = 0,
    ) -> None:
        """It was looked at, under this revision and view; it is due again at that time, or when noticed.

        If it was noticed in between, it is due now. Of a taking that is over nothing is noted.
        """
        ...

    def drop(self, item: WorkItem) -> None:
        """The conversation is not there any more. It comes back when it is noticed, be it meanwhile."""
        ...

    def forget(self, scope: str, conversation: str) -> None:
        """Delete whatever is known of a conversation."""
        ...

    def places(self) -> Iterable[tuple[str, str]]:
        """Every scope and conversation that is known, due or not."""
        ...

    def backlog(self) -> Backlog:
        """How much there is to do."""
        ...

    def hints(self, heard: Callable[[], None]) -> AbstractContextManager[object]:
        """While it is entered, ``heard`` may be called when another process noticed something.

        It may also never be called: who waits looks again by itself (L2).
        """
        ...
