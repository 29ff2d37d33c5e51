"""The composition root: the one place where adapters are chosen and put together."""

from __future__ import annotations

import logging
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compaction_ledger.domain.bundles import SealedLog
from compaction_ledger.domain.erasure import ErasedFact, Purged
from compaction_ledger.domain.errors import InvalidSetting, UnknownConversation
from compaction_ledger.domain.facts import Fact
from compaction_ledger.domain.history import HistoryIndex
from compaction_ledger.domain.messages.shapes import SHAPES
from compaction_ledger.domain.ports import (
    Admission,
    ReadModelStore,
    Summarizer,
    Transcripts,
    TranscriptStore,
    WorkList,
)
from compaction_ledger.domain.prompts import PromptRegistry
from compaction_ledger.domain.proof.ports import TreeStore
from compaction_ledger.domain.status import StoreStatus
from compaction_ledger.domain.takeover import ScopeFrom
from compaction_ledger.domain.window.originals import Originals
from compaction_ledger.domain.windows import WindowPolicy
from compaction_ledger.erasure_parts import memory_ring, stored_ring
from compaction_ledger.infrastructure.admission.both import BothAdmission
from compaction_ledger.infrastructure.admission.local import LocalAdmission
from compaction_ledger.infrastructure.admission.outage import OutageGate
from compaction_ledger.infrastructure.erasure.history import GuardedHistoryIndex
from compaction_ledger.infrastructure.erasure.originals import GuardedOriginals
from compaction_ledger.infrastructure.erasure.read_models import (
    FollowedReadModels,
    GuardedReadModels,
)
from compaction_ledger.infrastructure.erasure.transcripts import (
    GuardedTranscripts,
    GuardedTranscriptStore,
)
from compaction_ledger.infrastructure.erasure.work import GuardedWorkList
from compaction_ledger.infrastructure.event_store.application import LedgerLog
from compaction_ledger.infrastructure.event_store.codec import STORED_NAMES
from compaction_ledger.infrastructure.event_store.envelope import ENVELOPE_FORMAT
from compaction_ledger.infrastructure.event_store.memory_recorder import SealedMemoryRecorder
from compaction_ledger.infrastructure.event_store.sqlite_recorder import SealedSQLiteRecorder
from compaction_ledger.infrastructure.history.memory import MemoryHistoryIndex
from compaction_ledger.infrastructure.history.sqlite import SQLiteHistoryIndex
from compaction_ledger.infrastructure.originals.memory import MemoryOriginals
from compaction_ledger.infrastructure.originals.sqlite import SQLiteOriginals
from compaction_ledger.infrastructure.sqlite.database import open_database, scrub
from compaction_ledger.infrastructure.sqlite.formats import FORMAT
from compaction_ledger.infrastructure.sqlite.status import store_status
from compaction_ledger.infrastructure.transcripts.memory import MemoryTranscripts
from compaction_ledger.infrastructure.transcripts.sqlite import SQLiteTranscripts
from compaction_ledger.infrastructure.tree.memory import MemoryTree
from compaction_ledger.infrastructure.tree.sqlite import SQLiteTree
from compaction_ledger.infrastructure.work.memory import MemoryWorkList
from compaction_ledger.infrastructure.work.sqlite import SQLiteWorkList
from compaction_ledger.places import Places, places_of
from compaction_ledger.projections.memory import MemoryReadModels
from compaction_ledger.projections.sqlite import SQLiteReadModels
from compaction_ledger.settings import Settings, is_database_url
from compaction_ledger.usecases.compaction import Compactor
from compaction_ledger.usecases.context import Context
from compaction_ledger.usecases.erasing import Eraser
from compaction_ledger.usecases.history import HistorySearch
from compaction_ledger.usecases.history_sources import HistoryStores
from compaction_ledger.usecases.stopping import Stop
from compaction_ledger.usecases.telemetry import NO_TELEMETRY, Telemetry
from compaction_ledger.usecases.transcribing import ImportedFile
from compaction_ledger.usecases.watching import Gauges
from compaction_ledger.usecases.window.remembering import WindowMemory
from compaction_ledger.worker import worker_name

if TYPE_CHECKING:
    from compaction_ledger.infrastructure.admission.postgres import SharedAdmission
    from compaction_ledger.infrastructure.importers.archive import Archive
    from compaction_ledger.infrastructure.keys.ring import KeyRing
    from compaction_ledger.infrastructure.summarizers.pydantic_ai import PydanticAISummarizer
    from compaction_ledger.infrastructure.transcript_files import WireTranscript

logger = logging.getLogger(__name__)

Clock = Callable[[], int]


def system_clock() -> int:
    """Microseconds since the epoch, by this machine's clock."""
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class Versions:
    """The formats of the stored things, and the version of the store."""

    sqlite: str
    file_format: int
    envelope_format: int
    events: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Parts:
    """An open ledger. ``transcripts`` is the embedded store, whatever the context reads from.

    ``originals`` are those of the windows of running agents: the embedded ones, or a host's own. ``history``
    is the index of both; it is in memory where the ledger can only be read.
    ``ring`` holds the keys, ``eraser`` erases; a ledger that was put together without keys has neither.
    ``admission`` asks ``shared_admission``, too, where there is a bound among processes. ``tree`` is the tree
    over the log, and ``exported`` the log as an audit bundle is made from it. ``places`` are the folders of
    its keys and checkpoints: a ledger in memory has none.
    """

    context: Context
    transcripts: TranscriptStore
    originals: Originals
    history: HistoryIndex
    read_models: ReadModelStore
    admission: Admission
    shared_admission: SharedAdmission | None
    gate: OutageGate
    windows: WindowMemory
    work: WorkList
    store: Callable[[], StoreStatus]
    ring: KeyRing | None
    eraser: Eraser | None
    close: Callable[[], None]
    tree: TreeStore
    exported: SealedLog
    places: Places | None


def open_sqlite(
    path: Path,
    *,
    policy: WindowPolicy,
    registry: PromptRegistry,
    settings: Settings,
    create: bool = True,
    read_only: bool = False,
    clock: Clock = system_clock,
) -> Parts:
    """A ledger in one SQLite file. Raises :class:`StoreError` kinds."""
    _check_unshared(settings)
    database = open_database(path, create=create, read_only=read_only)
    try:
        recorder = SealedSQLiteRecorder(database, clock)
        places = places_of(path, lambda: recorder.head()[1], settings)
        ring = stored_ring(places.keys, settings, recorder, read_only=read_only)
        log = LedgerLog(recorder, ring)
        transcripts = GuardedTranscriptStore(SQLiteTranscripts(database), ring)
        read_models = SQLiteReadModels(database, registry)
        return parts_of(
            log,
            transcripts,
            read_models,
            policy,
            registry,
            settings,
            database.close,
            work=SQLiteWorkList(database, clock, transcripts),
            store=lambda: store_status(database),
            originals=SQLiteOriginals(database),
            history=None if read_only else SQLiteHistoryIndex(database),
            ring=ring,
            scrub=partial(scrub, database),
            tree=SQLiteTree(database),
            places=places,
        )
    except BaseException:
        database.close()
        raise


def open_postgres(
    url: str,
    *,
    policy: WindowPolicy,
    registry: PromptRegistry,
    settings: Settings,
    create: bool = True,
    read_only: bool = False,
) -> Parts:
    """A ledger in a schema of a PostgreSQL database. Needs an extra. Raises :class:`StoreError` kinds."""
    with extra("postgres"):
        from compaction_ledger import postgres_parts  # noqa: PLC0415 - an extra

    opened = postgres_parts.open_parts(url, registry, settings, create=create, read_only=read_only)
    return parts_of(
        opened.log,
        opened.transcripts,
        opened.read_models,
        policy,
        registry,
        settings,
        opened.close,
        opened.shared_admission,
        work=opened.work,
        store=opened.store,
        originals=opened.originals,
        history=opened.history,
        ring=opened.ring,
        check_may_erase=partial(postgres_parts.check_may_erase, opened.database),
        tree=opened.tree,
        places=opened.places,
    )


def migrate(place: str | Path, settings: Settings, *, dry_run: bool = False) -> list[str]:
    """Make or update the tables of a ledger on PostgreSQL; the names of the migrations that were applied.

    With ``dry_run`` of those that would be. Raises :class:`InvalidSetting` for a file.
    """
    url = _database_url(place)
    with extra("postgres"):
        from compaction_ledger import postgres_parts  # noqa: PLC0415 - an extra

    return postgres_parts.migrate(url, settings, dry_run=dry_run)


def role_statements(place: str | Path, writer: str, reader: str) -> str:
    """A script for the owner of a ledger on PostgreSQL: what lets these two roles work with it.

    Nothing is asked of the database. Raises :class:`InvalidSetting`, also for a file.
    """
    url = _database_url(place)
    with extra("postgres"):
        from compaction_ledger import postgres_parts  # noqa: PLC0415 - an extra

    return postgres_parts.role_statements(url, writer, reader)


def _database_url(place: str | Path) -> str:
    """``place``, which must be that of a ledger on PostgreSQL. Raises :class:`InvalidSetting`."""
    if isinstance(place, str) and is_database_url(place):
        return place
    raise InvalidSetting(
        "this is a file, and only a ledger on PostgreSQL is migrated: a file is made by the first import "
        "and brought up to date when it is opened",
        place=str(place),
    )


def open_place(
    place: str | Path,
    *,
    policy: WindowPolicy,
    registry: PromptRegistry,
    settings: Settings,
    create: bool = True,
    read_only: bool = False,
) -> Parts:
    """The ledger at a URL or in a file."""
    if isinstance(place, str) and is_database_url(place):
        return open_postgres(
            place,
            policy=policy,
            registry=registry,
            settings=settings,
            create=create,
            read_only=read_only,
        )
    return open_sqlite(
        Path(place),
        policy=policy,
        registry=registry,
        settings=settings,
        create=create,
        read_only=read_only,
    )


def open_memory(
    *,
    policy: WindowPolicy,
    registry: PromptRegistry,
    settings: Settings,
    clock: Clock = system_clock,
) -> Parts:
    """A ledger in memory, for users' own tests."""
    _check_unshared(settings)
    ring = memory_ring(settings)
    return parts_of(
        LedgerLog(SealedMemoryRecorder(clock), ring),
        GuardedTranscriptStore(MemoryTranscripts(), ring),
        MemoryReadModels(registry),
        policy,
        registry,
        settings,
        lambda: None,
        ring=ring,
    )


def reading_from(
    parts: Parts, transcripts: Transcripts | None, originals: Originals | None
) -> Parts:
    """The parts, with a host's own stores in place of the embedded ones. What is erased is not read there.

    Of a host's originals a conversation is deleted as of our own; a host's transcripts are the host's.
    """
    ring, eraser = parts.ring, parts.eraser
    if transcripts is not None:
        read = transcripts if ring is None else GuardedTranscripts(transcripts, ring)
        parts = replace(parts, context=replace(parts.context, transcripts=read))
    if originals is not None:
        guarded = originals if ring is None else GuardedOriginals(originals, ring)
        parts = replace(parts, originals=guarded)
        if eraser is not None:
            stores: dict[str, Purged] = {**eraser.stores, "originals": originals}
            parts = replace(parts, eraser=replace(eraser, stores=stores))
    return parts


def past_read_models(registry: PromptRegistry, stop: int) -> MemoryReadModels:
    """Empty read models that follow a log up to ``stop`` and no further (P5)."""
    return MemoryReadModels(registry, stop=stop)


def compactor(
    parts: Parts,
    summarizer: Summarizer,
    settings: Settings,
    *,
    stop: Stop,
    holder: str | None = None,
) -> Compactor:
    """A compactor over an open ledger."""
    return Compactor(
        context=parts.context,
        summarizer=summarizer,
        admission=parts.admission,
        gate=parts.gate,
        holder=holder or worker_name(),
        lease=int(settings.lease_seconds * 1_000_000),
        longest_attempt=int(settings.longest_attempt_seconds * 1_000_000),
        stop=stop,
        strict=settings.grounding == "strict",
    )


def history_search(
    parts: Parts, scope: str, conversation: str, run: str | None = None
) -> HistorySearch:
    """The history of one conversation, over an open ledger. Raises :class:`InvalidId`."""
    stores = HistoryStores(parts.context.transcripts, parts.originals, parts.history, SHAPES)
    return HistorySearch(stores, scope, conversation, run)


def default_summarizer() -> Summarizer:
    """The embedded summarizer: offline and deterministic."""
    from compaction_ledger.infrastructure.summarizers.extractive import (  # noqa: PLC0415 - on first use
        ExtractiveSummarizer,
    )

    return ExtractiveSummarizer()


def model_summarizer(
    model: str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    max_tokens: int | None = None,
    timeout: float | None = None,
) -> PydanticAISummarizer:
    """A summarizer that calls ``model``, named as Pydantic AI names models. Needs an extra."""
    from compaction_ledger.infrastructure.summarizers.pydantic_ai import (  # noqa: PLC0415 - an extra
        PydanticAISummarizer,
    )

    numbers = {"max_tokens": max_tokens, "timeout": timeout}
    given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    return PydanticAISummarizer(model, base_url=base_url, api_key_env=api_key_env, **given)


def read_file(path: Path, format_name: str | None, conversation: str | None) -> ImportedFile:
    """What stands in a file that another program wrote, read by the importer for its format."""
    from compaction_ledger.infrastructure.importers import detect, importer_named  # noqa: PLC0415

    importer = detect(path) if format_name is None else importer_named(format_name)
    return importer.read(path, conversation=conversation)


def wire_transcripts(path: Path, shape: str | None) -> Sequence[WireTranscript]:
    """The lists of a provider's messages in a file, each with its shape: the one named, or its own (T1)."""
    from compaction_ledger.infrastructure.transcript_files import read_transcripts  # noqa: PLC0415

    return read_transcripts(path, shape)


def archive(
    places: Sequence[Path], format_name: str | None, scope_from: ScopeFrom, scope: str
) -> Archive:
    """The conversations of folders and files. Raises :class:`InvalidSetting` for what is not there."""
    from compaction_ledger.infrastructure.importers.archive import Archive  # noqa: PLC0415

    found = Archive(places, format_name, scope_from, scope)
    found.check()
    return found


@cache
def telemetry() -> Telemetry:
    """Where all ledgers of this process tell of their work: OpenTelemetry's API, if it is installed.

    It is an extra. What is told goes nowhere unless the program has set up an SDK.
    """
    try:
        from compaction_ledger.infrastructure.telemetry.opentelemetry import (  # noqa: PLC0415 - an extra
            OpenTelemetry,
        )

        # An import of the package would be one of every layer: its names lead to all of them.
        return OpenTelemetry(sys.modules["compaction_ledger"].__version__)
    except ImportError:
        return NO_TELEMETRY
    except Exception as error:  # no ledger is kept from opening by it
        logger.warning("there is no telemetry: %s", type(error).__name__)
        logger.debug("there is no telemetry", exc_info=True)
        return NO_TELEMETRY


def formats() -> dict[str, str]:
    """The formats that can be imported, by name, with one line on each."""
    from compaction_ledger.infrastructure.importers import IMPORTERS  # noqa: PLC0415 - on first use

    return {importer.name: importer.description for importer in IMPORTERS}


def stored_name(fact: Fact) -> tuple[str, int]:
    """The stable name and schema version under which a fact is, or was, stored (L5)."""
    if isinstance(fact, ErasedFact):
        return fact.event, fact.schema
    return STORED_NAMES[type(fact)]


def versions() -> Versions:
    """What this software writes, and the SQLite it writes with."""
    return Versions(
        sqlite=sqlite3.sqlite_version,
        file_format=FORMAT,
        envelope_format=ENVELOPE_FORMAT,
        events=dict(STORED_NAMES.values()),
    )


@contextmanager
def extra(name: str) -> Generator[None]:
    """Around an import that needs an extra. Raises :class:`InvalidSetting`."""
    try:
        yield
    except ImportError as error:
        raise InvalidSetting(
            f"this needs: pip install 'compaction-ledger[{name}]' ({error})", place="ledger"
        ) from error


def _nothing_to_do() -> None:
    pass


def _in_memory() -> StoreStatus:
    return StoreStatus("memory", "memory", platform.python_version(), 0, None, None)


def parts_of(  # noqa: PLR0913 - the parts
    log: LedgerLog,
    transcripts: TranscriptStore,
    read_models: ReadModelStore,
    policy: WindowPolicy,
    registry: PromptRegistry,
    settings: Settings,
    close: Callable[[], None],
    shared_admission: SharedAdmission | None = None,
    *,
    work: WorkList | None = None,
    store: Callable[[], StoreStatus] = _in_memory,
    originals: Originals | None = None,
    history: HistoryIndex | None = None,
    ring: KeyRing | None = None,
    scrub: Callable[[], None] = _nothing_to_do,
    check_may_erase: Callable[[], None] = _nothing_to_do,
    tree: TreeStore | None = None,
    places: Places | None = None,
) -> Parts:
    """What an open ledger consists of, put together.

    Without ``work`` there is a list in memory, and without ``originals``, ``history`` or ``tree`` they are
    kept in memory. Without a ``ring`` nothing can be erased.
    """
    local = LocalAdmission(settings.attempts_at_once)
    tree = MemoryTree(log.sealed) if tree is None else tree
    listed = work or MemoryWorkList(log.now)
    work = listed if ring is None else GuardedWorkList(listed, ring)
    told = telemetry()
    gauges = Gauges(log, read_models, work)
    told.observe(gauges)
    originals = MemoryOriginals() if originals is None else originals
    history = MemoryHistoryIndex() if history is None else history
    eraser = None
    if ring is not None:
        stores: dict[str, Purged] = {
            "transcripts": transcripts,
            "originals": originals,
            "history": history,
            "work": listed,
            "read_models": FollowedReadModels(read_models, log),
        }
        held = (
            transcripts.unguarded
            if isinstance(transcripts, GuardedTranscriptStore)
            else transcripts
        )
        known = partial(_is_known, held, originals)
        everywhere = partial(_everywhere, held, listed)
        eraser = Eraser(log, ring, stores, scrub, check_may_erase, everywhere, known)
        originals = GuardedOriginals(originals, ring)
        history = GuardedHistoryIndex(history, ring)
        read_models = GuardedReadModels(read_models, ring)

    def close_all() -> None:
        told.forget(gauges)
        log.close()
        close()
        if ring is not None:
            ring.close()

    return Parts(
        context=Context(log, transcripts, read_models, registry, policy, told),
        transcripts=transcripts,
        originals=originals,
        history=history,
        read_models=read_models,
        admission=local if shared_admission is None else BothAdmission(local, shared_admission),
        shared_admission=shared_admission,
        gate=OutageGate(settings.outage_after),
        windows=WindowMemory(lambda: OutageGate(settings.outage_after)),
        work=work,
        store=store,
        ring=ring,
        eraser=eraser,
        close=close_all,
        tree=tree,
        exported=log.exported(tree),
        places=places,
    )


def _everywhere(transcripts: Transcripts, work: WorkList) -> Iterator[tuple[str, str]]:
    """Every conversation that has lines, or is on the work list; some twice."""
    yield from transcripts.conversations()
    yield from work.places()


def _is_known(
    transcripts: Transcripts, originals: Originals, scope: str, conversation: str
) -> bool:
    """Whether a conversation has lines, or a run."""
    try:
        transcripts.conversation(scope, conversation)
    except UnknownConversation:
        return bool(originals.runs(scope, conversation))
    return True


def _check_unshared(settings: Settings) -> None:
    """Raises :class:`InvalidSetting` where a bound among processes is asked for that cannot be had."""
    if settings.shared_attempts_at_once is not None:
        raise InvalidSetting("needs a ledger on PostgreSQL", place="shared_attempts_at_once")
