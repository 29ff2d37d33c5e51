"""The public face: open a ledger, compact conversations, assemble requests, and look at what is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compaction_ledger import composition
from compaction_ledger.composition import Parts
from compaction_ledger.domain.assembly import Assembly, Fallback, Options
from compaction_ledger.domain.errors import DamagedLog, InvalidInput, InvalidSetting, StoreError
from compaction_ledger.domain.grounding import Ungrounded
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion
from compaction_ledger.domain.keys import KeyEpochs, KeyRotation
from compaction_ledger.domain.log import RangeKey, Recorded, StreamKey
from compaction_ledger.domain.moments import Moment
from compaction_ledger.domain.ports import (
    PastReadModels,
    Progress,
    ReadModels,
    Summarizer,
    Transcripts,
    TranscriptStore,
)
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY, PromptRegistry
from compaction_ledger.domain.read_models import (
    AttemptRow,
    DeliveryRow,
    RangeRow,
    SummaryRow,
    WindowChunkRow,
    WindowDeliveryRow,
    WindowPinRow,
)
from compaction_ledger.domain.takeover import ScopeFrom
from compaction_ledger.domain.window.originals import Originals
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.domain.work import Backlog
from compaction_ledger.serving import Activity, Listener, Pace, Served, Serving, Signing
from compaction_ledger.settings import DEFAULT_SCOPE, Settings
from compaction_ledger.usecases.archiving import ArchiveImport, ArchiveTaker, OnArchive
from compaction_ledger.usecases.assembling import assemble_request, summary_text
from compaction_ledger.usecases.compaction import CompactionReport, OnRange
from compaction_ledger.usecases.delivered import delivered, matching
from compaction_ledger.usecases.delivering import record_by_setting, record_delivery
from compaction_ledger.usecases.erasing import Eraser, Erasure, OnStep, Resumed
from compaction_ledger.usecases.given import Delivered, Given
from compaction_ledger.usecases.grounding import grounding_of
from compaction_ledger.usecases.history import HistorySearch
from compaction_ledger.usecases.importing import (
    ImportedSummary,
    import_summary,
    job_of_present_source,
)
from compaction_ledger.usecases.looking import Looked, look
from compaction_ledger.usecases.planning import ConversationPlan, plan_conversation
from compaction_ledger.usecases.points import find_point
from compaction_ledger.usecases.reading import catch_up, rebuild
from compaction_ledger.usecases.replaying import (
    ConversationThen,
    Difference,
    LedgerThen,
    differ,
    replay_conversation,
    replay_ledger,
)
from compaction_ledger.usecases.serving_then import ServingOptions
from compaction_ledger.usecases.status import LedgerStatus, ledger_status
from compaction_ledger.usecases.stopping import NeverStop, Stop
from compaction_ledger.usecases.streams import stream_of
from compaction_ledger.usecases.transcribing import FileImport, transcribe
from compaction_ledger.usecases.verifying import Verification, verify
from compaction_ledger.worker import OnConversation, WorkerRun, run_worker

if TYPE_CHECKING:
    from threading import Event
    from types import TracebackType
    from typing import Literal, Self

    from compaction_ledger.domain.proof.checkpoints import Checkpoint
    from compaction_ledger.domain.proof.inclusion import InclusionProof, WitnessRequest
    from compaction_ledger.domain.proof.ports import SignerKeyFiles
    from compaction_ledger.domain.window.pins import PinProposer
    from compaction_ledger.domain.window.policy import WindowBudget
    from compaction_ledger.domain.window.prompts import WindowPrompts
    from compaction_ledger.domain.window.summarization import ChunkSummarizer
    from compaction_ledger.domain.window.tokens import TokenCounter
    from compaction_ledger.export_parts import AuditBundle
    from compaction_ledger.usecases.signing import Signed
    from compaction_ledger.usecases.spreading import Spread
    from compaction_ledger.window import Window

READ_BATCH = 500
LOOK_RANGES = 4


class Ledger:
    """An open ledger. Use :meth:`open` or :meth:`in_memory`; safe to share between threads.

    Whatever goes wrong is raised as a kind of :class:`compaction_ledger.LedgerError`; what your own
    transcripts and callbacks raise comes out as it is. :meth:`compact` ends with
    :class:`compaction_ledger.Stopped`, which is no error, when your ``stop`` interrupts a call of the
    model.
    """

    def __init__(
        self, parts: Parts, settings: Settings, summarizer: Summarizer | None = None
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._summarizer = summarizer

    @classmethod
    def open(  # noqa: PLR0913 - what a host may put in
        cls,
        place: str | Path,
        *,
        policy: WindowPolicy | None = None,
        registry: PromptRegistry = DEFAULT_REGISTRY,
        summarizer: Summarizer | None = None,
        transcripts: Transcripts | None = None,
        originals: Originals | None = None,
        settings: Settings | None = None,
        create: bool = True,
        read_only: bool = False,
    ) -> Self:
        """Open the ledger at ``place``, making it where there is none.

        A place is the path of an SQLite file, or the URL of a PostgreSQL database, such as
        ``postgresql://user@host/database?schema=name``.

        ``transcripts`` puts a host's own conversations in place of the embedded store, and ``originals`` a
        host's own store of what running agents said. ``summarizer`` is the default of :meth:`compact`;
        without it, that is the offline extractive one.
        """
        settings = settings or Settings()
        parts = composition.open_place(
            place,
            policy=policy or WindowPolicy(),
            registry=registry,
            settings=settings,
            create=create,
            read_only=read_only,
        )
        return cls(composition.reading_from(parts, transcripts, originals), settings, summarizer)

    @classmethod
    def in_memory(
        cls,
        *,
        policy: WindowPolicy | None = None,
        registry: PromptRegistry = DEFAULT_REGISTRY,
        summarizer: Summarizer | None = None,
        transcripts: Transcripts | None = None,
        originals: Originals | None = None,
        settings: Settings | None = None,
        clock: composition.Clock = composition.system_clock,
    ) -> Self:
        """A ledger that is gone when it is closed, for tests."""
        settings = settings or Settings()
        parts = composition.open_memory(
            policy=policy or WindowPolicy(), registry=registry, settings=settings, clock=clock
        )
        return cls(composition.reading_from(parts, transcripts, originals), settings, summarizer)

    @property
    def policy(self) -> WindowPolicy:
        """When a range becomes a target (W1, W2)."""
        return self._parts.context.policy

    @property
    def registry(self) -> PromptRegistry:
        """Which prompt versions are known, and which of them new jobs use (V1)."""
        return self._parts.context.registry

    # --- transcripts ---

    @property
    def transcripts(self) -> TranscriptStore:
        """The embedded transcript store: append, revise, delete, and read back."""
        return self._parts.transcripts

    def import_file(
        self,
        path: str | Path,
        *,
        format: str | None = None,  # noqa: A002 - what a caller would guess
        conversation: str | None = None,
        scope: str = DEFAULT_SCOPE,
        update: bool = False,
    ) -> FileImport:
        """Append the conversations of a file that another program wrote.

        Without ``format`` the file itself must say beyond doubt what it is. ``conversation`` renames
        the one conversation of the file. Nothing is stored of a file that is malformed or in part known.

        With ``update`` the file may be a later state of conversations that are known: new messages are
        appended, another text or status becomes a revision, and run states are recorded. If it is anything
        else (a message is missing, say), nothing is stored and :class:`NotAnUpdate` names the first
        message.
        """
        found = composition.read_file(Path(path), format, conversation)
        return transcribe(self._parts.transcripts, scope, found, update=update)

    def import_archive(
        self,
        *places: str | Path,
        format: str | None = None,  # noqa: A002 - what a caller would guess
        scope: str = DEFAULT_SCOPE,
        scope_from: ScopeFrom = "option",
        stop: Stop | None = None,
        on_progress: OnArchive | None = None,
    ) -> ArchiveImport:
        """Take over the conversations of folders and files, however many there are, in bounded memory.

        It can be ended anywhere and begun again: known conversations are brought up to date as by
        :meth:`import_file` with ``update``, and those that go on in the ledger are left as they are. What
        is malformed is reported and stands in nobody's way. ``scope_from`` says whose the conversations
        are: ``scope``'s (``"option"``), or that which their ``"folder"`` or ``"file"`` is named after.
        """
        archive = composition.archive(list(map(Path, places)), format, scope_from, scope)
        _, size = archive.measure()
        parts = self._parts
        taker = ArchiveTaker(
            parts.transcripts, parts.work, parts.read_models, self.policy, stop or NeverStop()
        )
        return taker.take_over(archive, size, on_progress)

    # --- the main job ---

    def plan(
        self,
        conversation: str,
        *,
        scope: str = DEFAULT_SCOPE,
        summarizer: Summarizer | None = None,
        upgrade: bool = False,
    ) -> ConversationPlan:
        """Which lines count, which do not and why, and which ranges are due."""
        model = self._summarizer_or(summarizer).model
        return plan_conversation(self._parts.context, scope, conversation, model, upgrade=upgrade)

    def compact(
        self,
        conversation: str,
        *,
        scope: str = DEFAULT_SCOPE,
        summarizer: Summarizer | None = None,
        upgrade: bool = False,
        stop: Stop | None = None,
        on_range: OnRange | None = None,
    ) -> CompactionReport:
        """Summarize every due range of a conversation.

        What fails in a range is recorded and reported, not raised. Raises :class:`UnknownConversation`,
        :class:`InvalidSetting` from a summarizer that is set wrongly, kinds of :class:`StoreError` and
        :class:`DamagedLog`, and :class:`Stopped` when ``stop`` interrupts a call of the model.
        """
        compactor = composition.compactor(
            self._parts, self._summarizer_or(summarizer), self._settings, stop=stop or NeverStop()
        )
        return compactor.compact(scope, conversation, upgrade=upgrade, on_range=on_range)

    def compact_all(
        self,
        *,
        scope: str | None = None,
        summarizer: Summarizer | None = None,
        upgrade: bool = False,
        stop: Stop | None = None,
        on_conversation: OnConversation | None = None,
    ) -> WorkerRun:
        """Compact every conversation in turn, of one scope or of all.

        An error of one conversation is among the run's ``failures``; the others go on. Kinds of
        :class:`StoreError` and :class:`InvalidSetting` end the run.
        """
        compactor = composition.compactor(
            self._parts, self._summarizer_or(summarizer), self._settings, stop=stop or NeverStop()
        )
        conversations = [
            known
            for known in self._parts.context.transcripts.conversations()
            if scope in (None, known[0])
        ]
        return run_worker(
            compactor, iter(conversations), upgrade=upgrade, on_conversation=on_conversation
        )

    def look(
        self,
        conversation: str,
        *,
        scope: str = DEFAULT_SCOPE,
        summarizer: Summarizer | None = None,
        upgrade: bool = False,
        stop: Stop | None = None,
        at_most: int = LOOK_RANGES,
    ) -> Looked:
        """Summarize a few due ranges of a conversation, and say when to look again: for a job queue.

        A job needs to carry no more than scope and id. It may come twice, late or never: what is due is
        planned here, and the claim decides. Raises what :meth:`compact` does; after a :class:`StoreError`,
        look again later.
        """
        compactor = composition.compactor(
            self._parts, self._summarizer_or(summarizer), self._settings, stop=stop or NeverStop()
        )
        return look(compactor, scope, conversation, upgrade=upgrade, at_most=at_most)

    def notice(self, conversations: Iterable[tuple[str, str]]) -> int:
        """Tell the workers of a ledger to look at these (scope, conversation); for how many that is news.

        They find out by themselves what changed, but only once in a while.
        """
        return self._parts.work.notice(conversations)

    def backlog(self) -> Backlog:
        """How many conversations are to be looked at, are with a worker, or wait for their time."""
        return self._parts.work.backlog()

    def work(
        self,
        *,
        summarizer: Summarizer | None = None,
        upgrade: bool = False,
        stop: Stop | None = None,
        pace: Pace | None = None,
        listener: Listener | None = None,
        activity: Activity | None = None,
        hurry: Event | None = None,
        sign_every: float | None = None,
    ) -> Served:
        """Compact what is due, whatever becomes due, until ``stop`` is requested.

        Any number of processes may do so on one ledger. After a stop nothing new is begun; calls that are
        under way may end, for as long as the pace says or until ``hurry`` is set, and are interrupted then
        if the summarizer has a method ``cancel``. With ``sign_every`` the log is signed every so many
        seconds, as by :meth:`checkpoint` and :meth:`spread`; what goes wrong is told to the listener.

        Raises :class:`InvalidSetting` from a summarizer that is set wrongly.
        """
        chosen = self._summarizer_or(summarizer)
        serving = Serving(
            lambda heeded: composition.compactor(self._parts, chosen, self._settings, stop=heeded),
            self._parts.work,
            stop or NeverStop(),
            pace or Pace(),
            upgrade,
            listener or Listener(),
            activity or Activity(),
            getattr(chosen, "cancel", None),
        )
        if sign_every is not None:
            serving.signing = Signing(sign_every, self._sign_and_spread)
        if hurry is not None:
            serving.hurry = hurry
        return serving.run()

    def assemble(
        self,
        conversation: str,
        *,
        budget: int,
        scope: str = DEFAULT_SCOPE,
        shape: str = "openai-chat",
        fallback: Fallback = "newest_originals",
        system: str | None = None,
        next_user: str | None = None,
        run: str | None = None,
    ) -> Assembly:
        """The next request to the model within ``budget`` bytes, with the manifest of what it holds.

        Where :attr:`Settings.record_deliveries` is ``on`` it is recorded as given, for ``run``.
        """
        options = Options(budget, shape, fallback, system, next_user)
        assembly = assemble_request(self._parts.context, scope, conversation, options)
        if self._settings.record_deliveries == "on":
            record_by_setting(self._parts.context, assembly, run)
        return assembly

    def record_delivery(
        self, assembly: Assembly, *, run: str | None = None, delivery_id: str | None = None
    ) -> int:
        """Record that ``assembly`` was really sent, for ``run``; the delivery's index in the log.

        With a ``delivery_id`` of your own it can be recorded again, after an error, without a second
        record.
        """
        return record_delivery(self._parts.context, assembly, run, delivery_id)

    def import_summary(
        self, job: Job, text: str, *, origin: str, made_at: int | None = None
    ) -> ImportedSummary:
        """Bring in a summary that another store made of exactly this job.

        ``made_at`` is when it was made there, in microseconds since the epoch.
        """
        return import_summary(self._parts.context, job, text, origin, made_at)

    def job_of_present_source(
        self,
        conversation: str,
        *,
        from_pair: int,
        model: ModelIdentity,
        prompt: PromptVersion,
        scope: str = DEFAULT_SCOPE,
    ) -> Job:
        """A job bound to the range as the conversation is now."""
        return job_of_present_source(
            self._parts.context, scope, conversation, from_pair, model, prompt
        )

    # --- looking ---

    def summaries(self, conversation: str, *, scope: str = DEFAULT_SCOPE) -> Sequence[SummaryRow]:
        """Every identity of this conversation that the log knows."""
        return self._parts.read_models.summaries(scope, conversation)

    def summary_text(self, row: SummaryRow) -> str | None:
        """The text of a finished summary, read from the sealed log; ``None`` if it is damaged."""
        return summary_text(self._parts.context, row)

    def grounding(self, row: SummaryRow) -> tuple[Ungrounded, ...] | None:
        """What a finished summary says that its source does not, word for word (T13).

        ``None`` where that cannot be told: the summary is not finished or damaged, its source is not the
        conversation as it is now, or :attr:`Settings.grounding` is ``off``.
        """
        if self._settings.grounding == "off":
            return None
        return grounding_of(self._parts.context, row)

    def ranges(
        self, conversation: str | None = None, *, scope: str | None = None
    ) -> Sequence[RangeRow]:
        """Every range that the log knows, of one conversation or of all.

        ``scope=None`` means every scope, also where a conversation is named: its id may stand in several.
        """
        return self._parts.read_models.ranges(scope, conversation)

    def attempts(self, conversation: str, *, scope: str = DEFAULT_SCOPE) -> Sequence[AttemptRow]:
        """The attempts on this conversation's ranges, in the log's order."""
        return self._parts.read_models.attempts(scope, conversation)

    def deliveries(self, conversation: str, *, scope: str = DEFAULT_SCOPE) -> Sequence[DeliveryRow]:
        """What requests for this conversation were recorded as sent."""
        return self._parts.read_models.deliveries(scope, conversation)

    def window_chunks(
        self, conversation: str, *, run: str | None = None, scope: str = DEFAULT_SCOPE
    ) -> Sequence[WindowChunkRow]:
        """Every chunk of a conversation's runs that the log knows, or of one run."""
        return self._parts.read_models.window_chunks(scope, conversation, run)

    def window_pins(
        self, conversation: str, *, run: str | None = None, scope: str = DEFAULT_SCOPE
    ) -> Sequence[WindowPinRow]:
        """The pins of a conversation's runs, or of one run, those included that were replaced (T9)."""
        return self._parts.read_models.window_pins(scope, conversation, run)

    def window_deliveries(
        self, conversation: str, *, run: str | None = None, scope: str = DEFAULT_SCOPE
    ) -> Sequence[WindowDeliveryRow]:
        """What requests of a conversation's runs, or of one run, were recorded as sent."""
        return self._parts.read_models.window_deliveries(scope, conversation, run)

    def size(self) -> int:
        """How many events the log holds."""
        return self._parts.context.log.size()

    def events(self, start: int = 0, stop: int | None = None) -> Iterator[Recorded]:
        """The recorded facts from index ``start``, below ``stop``, in order."""
        if start < 0:
            raise InvalidSetting(f"{start} is no place in the log", place="start")
        end = self.size() if stop is None else min(stop, self.size())
        while start < end:
            for entry in self._parts.context.log.read(start, READ_BATCH, end):
                yield entry
                start = entry.index + 1

    def history(
        self, conversation: str, *, from_pair: int, scope: str = DEFAULT_SCOPE
    ) -> Sequence[Recorded]:
        """Everything that was recorded of one range, in order."""
        return self._parts.context.log.history(RangeKey(scope, conversation, from_pair))

    def history_search(
        self, conversation: str, *, scope: str = DEFAULT_SCOPE, run: str | None = None
    ) -> HistorySearch:
        """Search and reread the complete transcript of one conversation, and of no other (T15).

        ``run`` is the run that asks: whose messages are meant by ids alone.
        """
        return composition.history_search(self._parts, scope, conversation, run)

    def window(  # noqa: PLR0913 - each has its default
        self,
        conversation: str,
        *,
        run: str,
        shape: str,
        budget: WindowBudget | int,
        scope: str = DEFAULT_SCOPE,
        summarizer: ChunkSummarizer | None = None,
        counter: TokenCounter | None = None,
        proposer: PinProposer | Literal["rules"] | None = "rules",
        strict: bool = False,
        background: bool = True,
        prompts: WindowPrompts | None = None,
    ) -> Window:
        """The window of one run of a conversation, while its agent works (T1 to T15).

        ``budget`` is in tokens: a limit, or a :class:`WindowBudget`. ``shape`` names the provider's
        messages: ``openai-chat``, ``openai-responses``, ``anthropic``, ``converse`` or ``pydantic-ai``.
        Without a summarizer the embedded one is used, offline. ``proposer`` says which of the user's words
        are pinned: ``"rules"``, one of your own, or ``None``. ``strict``: a summary that says what its
        source does not is a failed attempt (T13). ``prompts`` are the versions of what a summarizer is
        told. Without ``background`` chunks are summarized in :meth:`Window.compact`.
        """
        from compaction_ledger.window_parts import (  # noqa: PLC0415 - on first use
            WindowOptions,
            open_window,
        )

        options = WindowOptions(budget, shape, summarizer, counter, proposer, strict, prompts)
        return open_window(
            self._parts, self._settings, (scope, conversation, run), options, background=background
        )

    def range_of(self, entry: Recorded) -> RangeKey | None:
        """The range that a recorded fact is about; ``None`` for a delivery, and for a fact of a window."""
        key = self.stream_of(entry)
        return key if isinstance(key, RangeKey) else None

    def stream_of(self, entry: Recorded) -> StreamKey | None:
        """The range or window that a recorded fact is about; ``None`` for a delivery of a conversation."""
        return stream_of(self._parts.context.log, entry)

    def at(self, *, index: int | None = None, time: int | None = None) -> ReadModels:
        """The read models as they were after event ``index``, or at ``time`` in µs since the epoch (P5).

        Index -1 is before the first event. A time means: up to the last event recorded at or before
        it, in the log's order.
        """
        point = find_point(self._parts.context.log, Moment(index, time))
        past = composition.past_read_models(self._parts.context.registry, point.position)
        past.catch_up(self._parts.context.log)
        return past

    # --- review ---

    def replay(
        self,
        conversation: str,
        at: Moment,
        *,
        scope: str = DEFAULT_SCOPE,
        serving: ServingOptions | None = None,
        progress: Progress | None = None,
    ) -> ConversationThen:
        """What was known of a conversation at a point of the log, what could be claimed, what was
        summarized, and what a request would have held (P5). Nothing is written.

        ``serving`` says how that request is to be made. Raises :class:`UnknownConversation`,
        :class:`InvalidSetting`, :class:`DamagedLog`.
        """
        context = self._parts.context
        point = find_point(context.log, at)
        return replay_conversation(
            context,
            self._past,
            (scope, conversation),
            point,
            serving or ServingOptions(),
            progress,
        )

    def replay_all(
        self, at: Moment, *, scope: str | None = None, progress: Progress | None = None
    ) -> LedgerThen:
        """Every conversation of a scope, or of all, at a point of the log, counted (P5)."""
        context = self._parts.context
        return replay_ledger(context, self._past, scope, find_point(context.log, at), progress)

    def diff(
        self,
        start: Moment,
        end: Moment,
        conversation: str | None = None,
        *,
        scope: str | None = None,
        progress: Progress | None = None,
    ) -> Difference:
        """What changed between two points of the log, of one conversation or of all (P5).

        ``scope=None`` means every scope, also where a conversation is named.
        """
        context = self._parts.context
        points = (find_point(context.log, start, "start"), find_point(context.log, end, "end"))
        return differ(context, self._past, points, scope, conversation, progress)

    def delivered(
        self,
        run: str,
        *,
        scope: str | None = None,
        conversation: str | None = None,
        progress: Progress | None = None,
    ) -> Delivered:
        """What each recorded request of a run was given, from the sealed log alone.

        What cannot be read is named in its ``damaged``, and does not hide the rest.
        """
        return delivered(self._parts.context, run, scope, conversation, progress)

    @staticmethod
    def delivery_of(found: Delivered, request: bytes) -> Sequence[Given]:
        """Which of the recorded requests these bytes are; none where they are none of them."""
        return matching(found, request)

    def _past(self) -> PastReadModels:
        return composition.past_read_models(self._parts.context.registry, 0)

    # --- upkeep ---

    def erase(
        self,
        conversation: str,
        *,
        scope: str = DEFAULT_SCOPE,
        unknown: bool = False,
        on_step: OnStep | None = None,
    ) -> Erasure:
        """Erase a conversation for good: its data key is destroyed, and its rows are deleted (S3).

        From the first step on nothing of it is read, and nothing is written: :class:`Erased`. The log still
        verifies. It can be done again after an error, or completed by :meth:`resume_erasures`. Raises
        :class:`Erased` where it was done before. A host's own transcripts are the host's to delete.
        With ``unknown`` also an id of which nothing is known is kept away: else :class:`UnknownConversation`.
        """
        return self._eraser().erase(scope, conversation, on_step, unknown=unknown)

    def erasure_leftovers(self) -> Sequence[tuple[str, str]]:
        """Conversations that were erased, and have lines again or are on the work list: a database was put
        back from before (S3)."""
        return self._eraser().leftovers()

    def resume_erasures(self, *, on_step: OnStep | None = None) -> Resumed:
        """Complete every erasure that was begun, and undo what backups have brought back (S3).

        Raises :class:`KeyMissing` where the keys are not there: then nothing is known of erasures.
        """
        return self._eraser().resume(on_step)

    def _eraser(self) -> Eraser:
        if self._parts.eraser is None:
            raise InvalidSetting("this ledger has no keys, and nothing can be erased", place="keys")
        return self._parts.eraser

    def status(self) -> LedgerStatus:
        """How the ledger is now: events, lag, ranges, claims, backlog, store. Nothing is written."""
        parts, slots = self._parts, self._settings.shared_attempts_at_once
        return ledger_status(parts.context, parts.work, parts.store, slots)

    def position(self) -> int:
        """How many events of the log the read models reflect."""
        return self._parts.read_models.position()

    def catch_up(self, progress: Progress | None = None) -> int:
        """Bring the read models up to the log."""
        return catch_up(self._parts.context, progress)

    def rebuild(self, progress: Progress | None = None) -> int:
        """Build the read models anew beside the serving ones, then switch (P3)."""
        return rebuild(self._parts.context, progress)

    def verify(
        self,
        progress: Progress | None = None,
        *,
        seal_only: bool = False,
        checkpoints: Sequence[Path] = (),
        keys: Sequence[str] = (),
        witnesses: Sequence[str] | None = None,
    ) -> Verification:
        """Check the whole seal (L1, L3) and, unless ``seal_only``, the read models against the log.

        The log is compared with what was signed of it (K4): with the ``checkpoints`` in these files, or else
        with all in the ledger's folder of checkpoints; they count if one of ``keys``, or else of the ledger's
        own verifier keys, has signed them. And with what ``witnesses`` have cosigned last, each a URL, a
        space and a verifier key; ``None``: those of the settings.
        """
        from compaction_ledger.spreading_parts import witnesses_of  # noqa: PLC0415 - on first use
        from compaction_ledger.verifying_parts import (  # noqa: PLC0415
            Against,
            erased_from_now_on,
            head_check,
        )

        asked = witnesses_of(self._settings) if witnesses is None else witnesses
        heads = head_check(self._parts, Against(checkpoints, keys, asked))
        expected = partial(composition.past_read_models, self._parts.context.registry)
        found = verify(
            self._parts.context.log,
            self._parts.read_models,
            None if seal_only else expected,
            progress,
            heads,
            erased_from_now_on(self._parts),
        )
        return found if seal_only or self._parts.eraser is None else self._with_leftovers(found)

    def _with_leftovers(self, found: Verification) -> Verification:
        """What else is not as it should be: lines of what was erased (S3)."""
        try:
            finding = self._eraser().finding()
        except (StoreError, DamagedLog):  # there are no keys, or no head: that was said
            return found
        return found if finding is None else replace(found, findings=(*found.findings, finding))

    def export(  # noqa: PLR0913 - each has its default
        self,
        path: str | Path,
        *,
        conversation: str | None = None,
        scope: str = DEFAULT_SCOPE,
        subject: str | None = None,
        envelopes: bool = False,
        openings: bool = True,
        checkpoint: str | Path | None = None,
        sign: bool = False,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> AuditBundle:
        """Write an audit bundle (K5): of one conversation, or of the whole log where none is named.

        It is as of the newest checkpoint, of that in the file ``checkpoint``, or with ``sign`` of a new one.
        ``subject`` names a conversation by its reference: an erased one has no other name. With ``envelopes``
        a bundle of one conversation shows that nothing of it is left out; without ``openings`` what is
        encrypted stays so. A file that is there is only replaced if ``replace`` says so.
        """
        from compaction_ledger.export_parts import Chosen, export  # noqa: PLC0415 - on first use

        if conversation is not None and subject is not None:
            raise InvalidSetting("either a conversation or its reference", place="subject")
        named = None if conversation is None else (scope, conversation)
        chosen = Chosen(named, subject, envelopes, openings)
        given = None if checkpoint is None else Path(checkpoint)
        return export(
            self._parts,
            Path(path),
            chosen,
            checkpoint=given,
            sign=sign,
            replace=replace,
            progress=progress,
        )

    # --- signing and proving ---

    def checkpoint(self) -> Signed:
        """Sign the log as it is now, and publish that in the ledger's folder of checkpoints (K1).

        The first time, a key is made. Raises :class:`SmallerTree` or :class:`InconsistentTree` where the log
        is not one that goes on from what was signed, :class:`SignerOvertaken`, :class:`DamagedLog`,
        :class:`InvalidProof` and kinds of :class:`StoreError`; nothing is published then.
        """
        from compaction_ledger.signing_parts import log_signer  # noqa: PLC0415 - on first use

        return log_signer(self._parts).sign()

    def spread(self, signed: Signed) -> Spread | None:
        """Take a checkpoint to the witnesses, write-once places and authority of the settings (K3).

        What does not succeed is among the ``failures`` of the result, and is tried again the next time.
        ``None`` where the settings name none of them. Raises :class:`InvalidSetting` for wrong ones.
        """
        from compaction_ledger.spreading_parts import spreader  # noqa: PLC0415 - on first use
        from compaction_ledger.usecases.spreading import proofs_to  # noqa: PLC0415

        found = spreader(self._parts, self._settings)
        if found is None:
            return None
        return found.spread(signed.data, proofs_to(signed.checkpoint, self._parts.tree))

    def _sign_and_spread(self) -> None:
        """As a worker does it: what does not succeed is raised, once all was tried."""
        spread = self.spread(self.checkpoint())
        for _, error in () if spread is None else spread.failures:
            raise error

    def newest_checkpoint(self) -> Checkpoint:
        """The log as it was signed last. Raises :class:`InvalidSetting` where it was not."""
        from compaction_ledger.signing_parts import prover  # noqa: PLC0415 - on first use

        return prover(self._parts).newest().checkpoint

    def prove(self, *indices: int) -> Iterator[InclusionProof]:
        """That these events are in the log as it was signed last (K2); each proof can be checked without us.

        Raises :class:`InvalidSetting` for an event that is not signed yet, :class:`DamagedLog` for one that
        is not as it was signed.
        """
        from compaction_ledger.signing_parts import prover  # noqa: PLC0415 - on first use

        return prover(self._parts).inclusion(indices)

    def prove_range(
        self, conversation: str, *, from_pair: int, scope: str = DEFAULT_SCOPE
    ) -> Iterator[InclusionProof]:
        """As :meth:`prove`, for everything that was recorded of one range.

        Raises :class:`InvalidInput` where nothing was.
        """
        entries = self.history(conversation, from_pair=from_pair, scope=scope)
        if not entries:
            raise InvalidInput(
                f"the log has nothing on a range that begins with pair {from_pair}"
                f" of conversation {conversation!r} in scope {scope!r}"
            )
        return self.prove(*(entry.index for entry in entries))

    def prove_consistency(self, old_size: int) -> WitnessRequest:
        """That the log as it was signed last begins with its first ``old_size`` events (K2).

        Raises :class:`InvalidSetting`, and :class:`InconsistentTree` where a checkpoint of that size says
        otherwise.
        """
        from compaction_ledger.signing_parts import prover  # noqa: PLC0415 - on first use

        return prover(self._parts).consistency(old_size)

    def signer_keys(self) -> SignerKeyFiles:
        """The keys that sign this ledger, and that signed it (K2)."""
        from compaction_ledger.signing_parts import signer_keys  # noqa: PLC0415 - on first use

        return signer_keys(self._parts)

    def key_epochs(self) -> KeyEpochs | None:
        """Which key-encryption keys wrap the data keys; ``None`` where there are none yet (S1)."""
        return self._ring().epochs()

    def rotate_keys(self, progress: Progress | None = None) -> int:
        """Make a new key-encryption key, and wrap every data key anew; how many (S2).

        Nothing that is encrypted changes. What is interrupted is completed by :meth:`rewrap_keys`.
        """
        self._ring().rotate()
        return self.rewrap_keys(progress)

    def rewrap_keys(self, progress: Progress | None = None) -> int:
        """Wrap anew whatever is wrapped under a former key-encryption key; how many (S2)."""
        return self._ring().rewrap(progress)

    def _ring(self) -> KeyRotation:
        if self._parts.ring is None:
            raise InvalidSetting("this ledger was put together without keys", place="keys")
        return self._parts.ring

    def conversations(self) -> Iterable[tuple[str, str]]:
        """Every scope and conversation of the transcripts."""
        return self._parts.context.transcripts.conversations()

    def close(self) -> None:
        """Close the file."""
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _summarizer_or(self, summarizer: Summarizer | None) -> Summarizer:
        if summarizer is not None:
            return summarizer
        if self._summarizer is None:
            self._summarizer = composition.default_summarizer()
        return self._summarizer
