"""Writes the golden files of the present format; refuses to touch one that is there.

Run once for each new stored form, and commit what it wrote: from then on it is read for ever.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal, get_args
from uuid import UUID

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from backends import START, SQLiteBackend  # noqa: E402 - found by the line above
from eventsourcing.persistence import StoredEvent  # noqa: E402
from histories import every_kind, lines  # noqa: E402
from window_histories import every_window_kind  # noqa: E402

from compaction_ledger.domain.erasure import ErasureCompleted, ErasureRequested  # noqa: E402
from compaction_ledger.domain.events import (  # noqa: E402
    AttemptFailed,
    AttemptStarted,
    ClaimReleased,
    ClaimRenewed,
    DeliveredPairs,
    DeliveredRejection,
    DeliveredReplacement,
    DeliveredSummary,
    RangeClaimed,
    RangeCompleted,
    ReleaseReason,
    RequestDelivered,
    SummaryImported,
)
from compaction_ledger.domain.facts import Fact  # noqa: E402
from compaction_ledger.domain.finish import (  # noqa: E402
    FailureCode,
    FinishFacts,
    FinishSignal,
    Usage,
)
from compaction_ledger.domain.grounding import Ungrounded  # noqa: E402
from compaction_ledger.domain.grounding_items import GroundedKind  # noqa: E402
from compaction_ledger.domain.identity import Job, ModelIdentity, PromptVersion  # noqa: E402
from compaction_ledger.domain.window.chunks import ChunkJob  # noqa: E402
from compaction_ledger.domain.window.events import (  # noqa: E402
    ChunkAttemptFailed,
    ChunkAttemptStarted,
    ChunkClaimed,
    ChunkClaimReleased,
    ChunkClaimRenewed,
    ChunkCompleted,
    DeliveredChunk,
    DeliveredMessages,
    DeliveredStub,
    PinAccepted,
    PinProposer,
    WindowDelivered,
)
from compaction_ledger.domain.window.keys import WindowKey  # noqa: E402
from compaction_ledger.domain.window.originals import (  # noqa: E402
    NewOriginal,
    message_digest,
    wire_bytes,
)
from compaction_ledger.domain.window.policy import BudgetNumbers  # noqa: E402
from compaction_ledger.domain.windows import PolicyNumbers  # noqa: E402
from compaction_ledger.infrastructure.event_store import codec  # noqa: E402
from compaction_ledger.infrastructure.event_store.sealing import seal  # noqa: E402
from compaction_ledger.infrastructure.sqlite.formats import FORMAT  # noqa: E402
from compaction_ledger.ledger import Ledger  # noqa: E402
from compaction_ledger.settings import Settings  # noqa: E402

FOLDER = HERE / f"format-{FORMAT}"
ODD = 'Zinsen 1,5 % – "基金" 每年 😀 e\u0301 \u202e\u200b \\ \t\n \x7f \u2028 \U0010ffff'
ORIGIN = "compaction-ledger/00000000000000000000000000000001"
SUBJECT = "0123456789abcdef0123456789abcdef"
PREVIOUS = "ab" * 32
WINDOW = WindowKey("tenant-1", "c-1", "run-1")
CODES: tuple[FailureCode, ...] = (  # as they were when their files were made
    "provider_unavailable",
    "provider_error",
    "timeout",
    "cancelled",
    "tool_call",
    "refusal",
    "content_filter",
    "truncated",
    "multiple_finishes",
    "missing_finish",
    "abnormal_finish",
    "malformed_text",
    "empty",
    "too_long",
)
CODES_OF_CHUNKS: tuple[FailureCode, ...] = ("invalid_structure", "not_smaller", "ungrounded")


def job(*, odd: bool = False) -> Job:
    """A job; an odd one has other scripts and settings."""
    name = "消息-" if odd else "m"
    return Job(
        scope="scope 'ü'" if odd else "tenant-1",
        conversation="c/😀" if odd else "c-1",
        from_pair=20 if odd else 0,
        to_pair=29 if odd else 9,
        messages=tuple(f"{name}{number}" for number in range(20)),
        source_hash="cd" * 32,
        model=ModelIdentity(
            "openai", "small", (("temperature", "0"), ("topp", "0.9"), ("ü", "ja")) if odd else ()
        ),
        prompt=PromptVersion("conversation-compaction", 2 if odd else 3),
    )


def facts() -> Iterator[tuple[str, Fact]]:
    """Every stored name in its variants: nulls, settings, empty and full lists, other scripts."""
    policy = PolicyNumbers(30, 10, 20)
    identity = job().identity
    yield (
        "plain",
        RangeClaimed("claim-1", "worker-1", identity, job(), policy, 1_750_000_300_000_000),
    )
    yield "odd", RangeClaimed("claim-ü", ODD[:9], identity, job(odd=True), policy, 2**53 - 1)
    yield "first", AttemptStarted("claim-1", "attempt-1", identity, 1, 1_750_000_300_000_000)
    yield "second", AttemptStarted("claim-1", "attempt-2", identity, 2, 1_750_000_600_000_000)
    yield (
        "full",
        AttemptFailed(
            claim_id="claim-1",
            attempt_id="attempt-1",
            identity=identity,
            failure="tool_call",
            also=(*CODES, "lease_expired"),
            finish=FinishFacts(
                get_args(FinishSignal), 2, refusal=True, provider_words=("tool_calls", "länge")
            ),
            usage=Usage(1_234, 56),
            output_digest="ef" * 32,
            retry_at=1_750_000_301_000_000,
            detail="HTTP 503",
        ),
    )
    yield (
        "nulls",
        AttemptFailed(
            claim_id="claim-1",
            attempt_id="attempt-2",
            identity=identity,
            failure="lease_expired",
            also=(),
            finish=FinishFacts(),
            usage=Usage(),
            output_digest=None,
            retry_at=None,
            detail=None,
        ),
    )
    stop = FinishFacts(("stop",), provider_words=("stop",))
    yield (
        "plain",
        RangeCompleted(
            "claim-1", "attempt-1", identity, "cd" * 32, "A costs 0.3 %.", stop, Usage(100, 10)
        ),
    )
    yield "odd", RangeCompleted("claim-1", "attempt-1", identity, "cd" * 32, ODD, stop, Usage())
    for reason in (
        "given_back",
        "source_changed",
        "expired",
        "backing_off",
        "stopped",
        "exhausted",
        "outdone",
    ):
        yield reason, ClaimReleased("claim-1", identity, reason)
    yield (
        "plain",
        SummaryImported("import-1", identity, job(), "A costs 0.3 %.", "old store", START),
    )
    yield "odd", SummaryImported("import-2", identity, job(odd=True), ODD, "旧系统", None)
    yield (
        "full",
        RequestDelivered(
            delivery_id="delivery-1",
            scope="scope 'ü'",
            conversation="c/😀",
            run="run-7",
            shape="openai-chat",
            mode="newest_mixed",
            pairs=(
                DeliveredPairs(0, 9, "summarized", None, "12" * 32),
                DeliveredPairs(10, 19, "left_out", "over_budget", None),
                DeliveredPairs(20, 29, "verbatim", None, "34" * 32),
            ),
            summaries=(DeliveredSummary(0, 9, identity, 2),),
            rejected=(DeliveredRejection("ef" * 32, "source_changed"),),
            replaced=(DeliveredReplacement("消息-3", 2),),
            bytes_used=9_000,
            bytes_allowed=10_000,
            request_digest="01" * 32,
        ),
    )
    yield (
        "empty",
        RequestDelivered(
            delivery_id="delivery-2",
            scope="tenant-1",
            conversation="c-1",
            run=None,
            shape="anthropic",
            mode="full",
            pairs=(),
            summaries=(),
            rejected=(),
            replaced=(),
            bytes_used=0,
            bytes_allowed=1,
            request_digest="01" * 32,
        ),
    )
    # New names behind the others: each envelope holds its number.
    yield "plain", ClaimRenewed("claim-1", identity, 1_750_000_400_000_000)
    yield (
        "every_code",
        AttemptFailed(
            claim_id="claim-1",
            attempt_id="attempt-1",
            identity=identity,
            failure="ungrounded",
            also=(*CODES, *CODES_OF_CHUNKS, "lease_expired"),
            finish=stop,
            usage=Usage(100, 10),
            output_digest="ef" * 32,
            retry_at=None,
            detail=None,
        ),
    )
    yield from chunk_facts()
    yield from window_facts()
    yield from erasure_facts()


def chunk_job(*, odd: bool = False) -> ChunkJob:
    """A chunk; an odd one stands in the place of others, in a window with other scripts."""
    return ChunkJob(
        window=WindowKey("scope 'ü'", "c/😀", "lauf/消息") if odd else WINDOW,
        first=3 if odd else 0,
        last=41 if odd else 0,
        source_hash="cd" * 32,
        model=ModelIdentity("openai", "small", (("temperature", "0"), ("ü", "ja")) if odd else ()),
        prompt=PromptVersion("window-compaction", 1),
        replaces=("12" * 32, "34" * 32) if odd else (),
    )


def chunk_facts() -> Iterator[tuple[str, Fact]]:
    """Every stored name of chunks in its variants."""
    budget = BudgetNumbers(100_000, 70_000, 40_000, 20_000)
    identity = chunk_job().identity
    until = 1_750_000_300_000_000
    yield "plain", ChunkClaimed("claim-1", "worker-1", identity, chunk_job(), budget, until)
    yield "odd", ChunkClaimed("ü", ODD[:9], identity, chunk_job(odd=True), budget, 2**53 - 1)
    yield "first", ChunkAttemptStarted("claim-1", "attempt-1", identity, 1, until)
    yield "second", ChunkAttemptStarted("claim-1", "attempt-2", identity, 2, until)
    yield "plain", ChunkClaimRenewed("claim-1", identity, until)
    facts = FinishFacts(
        get_args(FinishSignal), 2, refusal=True, provider_words=("tool_calls", "länge")
    )
    yield (
        "full",
        ChunkAttemptFailed(
            claim_id="claim-1",
            attempt_id="attempt-1",
            identity=identity,
            failure="invalid_structure",
            also=(*CODES, *CODES_OF_CHUNKS, "lease_expired"),
            finish=facts,
            usage=Usage(1_234, 56),
            output_digest="ef" * 32,
            retry_at=until,
            detail="HTTP 503",
        ),
    )
    yield (
        "nulls",
        ChunkAttemptFailed(
            "claim-1",
            "attempt-2",
            identity,
            "lease_expired",
            (),
            FinishFacts(),
            Usage(),
            None,
            None,
            None,
        ),
    )
    stop = FinishFacts(("stop",), provider_words=("stop",))
    text = '{"decisions":["Fund A is bought"]}'
    yield (
        "plain",
        ChunkCompleted("claim-1", "attempt-1", identity, "cd" * 32, text, (), stop, Usage(100, 10)),
    )
    ungrounded = tuple(Ungrounded(kind, ODD) for kind in get_args(GroundedKind))
    yield (
        "odd",
        ChunkCompleted("claim-1", "attempt-1", identity, "cd" * 32, ODD, ungrounded, stop, Usage()),
    )
    for reason in get_args(ReleaseReason):
        yield reason, ChunkClaimReleased("claim-1", identity, reason)


def window_facts() -> Iterator[tuple[str, Fact]]:
    """Pins and deliveries of windows in their variants."""
    digest = "ef" * 32
    for proposer in get_args(PinProposer):
        yield (
            proposer,
            PinAccepted(
                WINDOW, f"pin-{proposer}", 4, digest, 0, 18, 26, "no nuts.", 1, proposer, None
            ),
        )
    odd = chunk_job(odd=True)
    yield (
        "odd",
        PinAccepted(odd.window, "消息", 4, digest, 2, 0, len(ODD), ODD, 0, "rule", "pin-rule"),
    )
    yield (
        "full",
        WindowDelivered(
            delivery_id="delivery-1",
            window=odd.window,
            shape="anthropic",
            messages=(
                DeliveredMessages(0, 2, "verbatim", None),
                DeliveredMessages(3, 41, "summarized", None),
                DeliveredMessages(42, 44, "left_out", "left_to_search"),
            ),
            chunks=(DeliveredChunk(3, 41, odd.identity, 12),),
            pins=("消息", "pin-rule"),
            stubs=(DeliveredStub(44, 1, digest, 48_211),),
            tokens=9_000,
            limit=10_000,
            bytes_sent=31_000,
            bytes_reused=0,
            request_digest="01" * 32,
        ),
    )
    yield (
        "empty",
        WindowDelivered("delivery-2", WINDOW, "openai-chat", (), (), (), (), 0, 1, 0, 0, "01" * 32),
    )


def erasure_facts() -> Iterator[tuple[str, Fact]]:
    """Erasures of a conversation with a key, and of one that had none."""
    for variant, keys in (("keyed", ("ab" * 16,)), ("plain", ())):
        yield variant, ErasureRequested(SUBJECT, keys)
        yield variant, ErasureCompleted(SUBJECT, keys, ("transcripts", "originals"))


def write(path: Path, data: bytes) -> None:
    """Write a file that is not there yet. One that is there is never changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        if path.read_bytes() != data:
            raise FileExistsError(f"{path} is there and says something else")
        return
    path.write_bytes(data)


def make_events() -> None:
    """Payload, envelope and leaf hash of every variant that no earlier format has."""
    for version, (variant, fact) in enumerate(facts(), start=1):
        topic, payload = codec.topic_of(fact), codec.encode(fact)
        event = StoredEvent(UUID(int=version), version, topic, payload)
        previous = PREVIOUS if version % 2 else ""
        envelope, leaf = seal(event, ORIGIN, SUBJECT, previous, START + version)
        name = _folder_of(f"{topic}.{variant}") / "events" / f"{topic}.{variant}"
        write(name.with_name(f"{name.name}.payload.json"), payload)
        write(name.with_name(f"{name.name}.envelope.json"), envelope)
        write(name.with_name(f"{name.name}.leaf"), leaf.hex().encode() + b"\n")


def _folder_of(event: str) -> Path:
    """Where the event is kept: the format of the file says nothing of an event's own form."""
    known = (found.parents[1] for found in HERE.glob(f"format-*/events/{event}.leaf"))
    return min(known, default=FOLDER)


def originals() -> Iterator[NewOriginal]:
    """The first messages of a run."""
    for number in range(4):
        role: Literal["user", "assistant"] = "assistant" if number % 2 else "user"
        wire = {"role": role, "content": f"{number} {ODD}"}
        yield NewOriginal(role, number // 2, START, wire_bytes(wire), message_digest(wire))


def make_ledger() -> None:
    """A whole ledger with its read-model rows."""
    FOLDER.mkdir(exist_ok=True)
    target = FOLDER / "ledger.db"
    if target.exists():
        return
    store = SQLiteBackend(FOLDER)
    parts = store.open()
    parts.transcripts.append("tenant-1", "c-1", *lines(73, sentences=8))
    every_kind(parts)
    every_window_kind(parts)
    parts.originals.append(WINDOW, "openai-chat", 0, list(originals()))
    parts.originals.keep_result(WINDOW.scope, WINDOW.conversation, b"a large result")
    parts.transcripts.revise("tenant-1", "c-1", "a70", "revised \ud800 " + ODD)
    parts.transcripts.delete("tenant-1", "c-1", "u71")
    parts.transcripts.set_run("tenant-1", "c-1", "run-72", "failed")
    ledger = Ledger(parts, Settings())
    ledger.catch_up()
    ledger.record_delivery(ledger.assemble("c-1", scope="tenant-1", budget=10**6))
    rows = {"size": ledger.size(), "tables": parts.read_models.records()}
    write(
        FOLDER / "ledger.rows.json", json.dumps(rows, ensure_ascii=False, indent=1).encode() + b"\n"
    )
    store.close()
    with closing(sqlite3.connect(target)) as connection:
        # Small pages, so that the file is small.
        for statement in ("journal_mode = DELETE", "page_size = 512"):
            connection.execute(f"PRAGMA {statement}")
        connection.execute("VACUUM")
        connection.execute("PRAGMA journal_mode = WAL")


if __name__ == "__main__":
    make_events()
    make_ledger()
