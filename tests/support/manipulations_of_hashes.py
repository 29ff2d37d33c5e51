"""Changes with hashes that fit: by whoever knows the format, and by whoever has the keys as well."""

from __future__ import annotations

import shutil
from dataclasses import replace

from forgeries import (
    FORGED,
    beginning,
    behind,
    encrypted,
    envelope_of,
    fact_at,
    put_resealed,
    reseal,
    sealed,
    with_forged_text,
)
from histories import SCOPE, bring_in, present_job
from manipulated import (
    CHUNK,
    FIRST,
    IMPORTED,
    LAST,
    LATE,
    LATE_CLAIM,
    OTHER,
    OTHER_SUMMARY,
    SIGNED,
    SIZE,
    STARTED,
    SUMMARY,
)
from manipulation_rows import Table
from manipulations import Victim
from manipulations_beside import data_keys

from compaction_ledger.domain.events import SummaryImported
from compaction_ledger.domain.log import RangeKey
from compaction_ledger.domain.window.events import ChunkCompleted
from compaction_ledger.domain.window.structure import StructuredSummary
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.rows import Row
from compaction_ledger.infrastructure.event_store.streams import range_stream

OF_HASHES = Table()
row = OF_HASHES.row

SEALED = "One event, its envelope and leaf made anew; without keys"


@row(
    SEALED,
    "the time of an event in the middle of a stream",
    ("chain", SUMMARY),
    where="the next of its stream",
)
def time_resealed(victim: Victim) -> None:
    reseal(victim, STARTED, recorded=1_750_000_000_000_000)


@row(
    SEALED,
    "the time of the last event of a stream",
    ("read_model", None),
    ("root", 0),
    where="the row; between two checkpoints",
    requests="changed",
    note="the time in the block's heading",
)
def last_time_resealed(victim: Victim) -> None:
    reseal(victim, SUMMARY, recorded=1_750_000_000_000_000)


@row(SEALED, "the subject of the last event of a stream", ("stream", SUMMARY), where="it")
def subject_resealed(victim: Victim) -> None:
    reseal(victim, SUMMARY, subject=envelope_of(victim.rows()[OTHER_SUMMARY]).subject)


@row(
    SEALED,
    "the name of the last event of a stream",
    ("damaged_log", SUMMARY),
    where="it",
    requests="without it",
)
def name_resealed(victim: Victim) -> None:
    victim.edit(SUMMARY, topic="AttemptFailed@1")
    reseal(victim, SUMMARY)


@row(
    SEALED,
    "payloads exchanged in a conversation",
    ("damaged_log", FIRST),
    ("root", 0),
    where="the first of the two",
    requests="without it",
)
def payloads_exchanged_resealed(victim: Victim) -> None:
    _exchange(victim, FIRST, SUMMARY)


@row(
    SEALED,
    "payloads exchanged between two conversations",
    ("key", SUMMARY),
    ("key", OTHER_SUMMARY),
    where="both",
    requests="without it",
)
def payloads_exchanged_between_resealed(victim: Victim) -> None:
    _exchange(victim, SUMMARY, OTHER_SUMMARY)


def _exchange(victim: Victim, one: int, other: int) -> None:
    rows = victim.rows()
    reseal(victim, one, rows[other].payload)
    reseal(victim, other, rows[one].payload)


@row(
    SEALED,
    "a summary, replaced by plain JSON with another text",
    ("plain", SUMMARY),
    where="it",
    requests="without it",
)
def plain_summary(victim: Victim) -> None:
    reseal(victim, SUMMARY, with_forged_text(victim, SUMMARY))


@row(
    SEALED,
    "an import, which is alone in its stream, replaced likewise",
    ("plain", IMPORTED),
    where="it",
    requests="without it",
)
def plain_import(victim: Victim) -> None:
    reseal(victim, IMPORTED, with_forged_text(victim, IMPORTED))


@row(
    SEALED,
    "the last event of all, behind the newest checkpoint, replaced likewise",
    ("plain", LAST),
    where="it",
    requests="without it",
)
def plain_last(victim: Victim) -> None:
    reseal(victim, LAST, with_forged_text(victim, LAST))


@row(
    SEALED,
    "a window's chunk, replaced by plain JSON with another text",
    ("plain", CHUNK),
    where="it",
    requests="without it",
)
def plain_chunk(victim: Victim) -> None:
    fact = fact_at(victim, CHUNK)
    assert isinstance(fact, ChunkCompleted)
    text = StructuredSummary(entities=(FORGED,)).canonical()
    reseal(victim, CHUNK, codec.encode(replace(fact, text=text)))


@row(
    SEALED,
    "all events of a conversation replaced likewise, and its key emptied",
    ("plain", LATE_CLAIM),
    where="the first of them",
    requests="without it",
)
def plain_conversation(victim: Victim) -> None:
    keyless = envelope_of(victim.rows()[LAST]).subject
    facts = {
        one.idx: with_forged_text(victim, one.idx)
        if one.idx == LAST
        else codec.encode(fact_at(victim, one.idx))
        for one in victim.rows()
        if envelope_of(one).subject == keyless
    }
    put_resealed(
        victim, lambda rows: [one._replace(payload=facts.get(one.idx, one.payload)) for one in rows]
    )
    victim.change(f"UPDATE {victim.table('subjects')} SET key = '' WHERE conversation = ?", LATE)


REPLAYED = "A summary replayed behind the last event; chained and sealed, head set on"


def _replay(
    victim: Victim, last: Row, index: int, *, as_json: bool = False, by_keys: bool = False
) -> None:
    """Append the summary of ``index`` to another stream: as it is stored, as JSON, or encrypted anew."""
    source = victim.rows()[index]
    made = behind(last, source.topic, source.payload, SIZE)
    if as_json or by_keys:
        plain = codec.encode(fact_at(victim, index))
        made = made._replace(payload=plain)
        if by_keys:
            made = encrypted(victim, made, plain, envelope_of(last).key)
        # The time stands in requests, where the replay must not show.
        made = sealed(made, recorded=envelope_of(source).recorded + 2_000_000)
    victim.append(made)


@row(REPLAYED, "into another conversation, as it is stored", ("key", SIZE), where="it")
def replayed_elsewhere(victim: Victim) -> None:
    _replay(victim, victim.rows()[OTHER_SUMMARY], FIRST)


@row(REPLAYED, "into another range, as it is stored", ("damaged_log", SIZE), where="it")
def replayed_in_range(victim: Victim) -> None:
    _replay(victim, victim.rows()[SUMMARY], FIRST)


@row(REPLAYED, "later in its own stream, as it is stored", ("damaged_log", SIZE), where="it")
def replayed_later(victim: Victim) -> None:
    _replay(victim, victim.rows()[SUMMARY], SUMMARY)


@row(REPLAYED, "into another conversation, in plain", ("plain", SIZE), where="it")
def replayed_elsewhere_plain(victim: Victim) -> None:
    _replay(victim, victim.rows()[OTHER_SUMMARY], FIRST, as_json=True)


@row(REPLAYED, "an import, into another conversation, in plain", ("plain", SIZE), where="it")
def import_replayed_plain(victim: Victim) -> None:
    _replay(victim, victim.rows()[OTHER_SUMMARY], IMPORTED, as_json=True)


@row(
    REPLAYED,
    "into another conversation, encrypted for it",
    ("damaged_log", SIZE),
    where="it",
    note="needs the keys",
)
def replayed_elsewhere_encrypted(victim: Victim) -> None:
    _replay(victim, victim.rows()[OTHER_SUMMARY], FIRST, by_keys=True)


@row(
    REPLAYED,
    "into another range, encrypted for it",
    ("damaged_log", SIZE),
    where="it",
    note="needs the keys",
)
def replayed_in_range_encrypted(victim: Victim) -> None:
    _replay(victim, victim.rows()[SUMMARY], FIRST, by_keys=True)


@row(
    REPLAYED,
    "later in its own stream, encrypted for it",
    ("damaged_log", SIZE),
    where="it",
    note="needs the keys",
)
def replayed_later_encrypted(victim: Victim) -> None:
    _replay(victim, victim.rows()[SUMMARY], SUMMARY, by_keys=True)


@row(
    REPLAYED,
    "an import, into another conversation, encrypted for it",
    ("damaged_log", SIZE),
    where="it",
    note="needs the keys",
)
def import_replayed_encrypted(victim: Victim) -> None:
    _replay(victim, victim.rows()[OTHER_SUMMARY], IMPORTED, by_keys=True)


MADE_UP = "An event made up behind the last one, sealed, head set on"


def _made_up_import(victim: Victim) -> tuple[Row, bytes]:
    """An import of a summary into a range that has none, of the source as it is now."""
    fact = fact_at(victim, IMPORTED)
    assert isinstance(fact, SummaryImported)
    with victim.opened(read_only=True) as ledger:
        job = present_job(ledger._parts, 10, conversation=OTHER)
    plain = codec.encode(
        replace(fact, import_id="made up", job=job, identity=job.identity, text=FORGED)
    )
    like = victim.rows()[OTHER_SUMMARY]
    stream = range_stream(envelope_of(like).subject, RangeKey(SCOPE, OTHER, 10)).hex
    return beginning(stream, like, "SummaryImported@1", plain, SIZE), plain


@row(MADE_UP, "an import in plain", ("plain", SIZE), where="it")
def import_made_up_plain(victim: Victim) -> None:
    victim.append(_made_up_import(victim)[0])


@row(
    MADE_UP,
    "an import, encrypted",
    requests="changed",
    note="needs the keys: who writes as the software does is not told from it",
)
def import_made_up(victim: Victim) -> None:
    made, plain = _made_up_import(victim)
    victim.append(
        sealed(encrypted(victim, made, plain, envelope_of(victim.rows()[OTHER_SUMMARY]).key))
    )


WHOLE = "The whole log, every hash, chain and row made anew"


def _rebuild(victim: Victim) -> None:
    with victim.opened() as ledger:
        ledger.rebuild()


def _rewritten(victim: Victim, index: int, *, by_keys: bool) -> None:
    plain = with_forged_text(victim, index)
    changed = victim.rows()[index]._replace(payload=plain)
    if by_keys:
        changed = encrypted(victim, changed, plain)
    put_resealed(victim, lambda rows: [changed if one.idx == index else one for one in rows])
    victim.execute(f"DELETE FROM {victim.table('tree_nodes')}")
    _rebuild(victim)


@row(
    WHOLE,
    "a text before the newest checkpoint, without keys",
    ("plain", SUMMARY),
    ("root", 0),
    where="it, and between two checkpoints",
    requests="without it",
)
def rewritten_plain(victim: Victim) -> None:
    plain = with_forged_text(victim, SUMMARY)
    put_resealed(
        victim,
        lambda rows: [one._replace(payload=plain) if one.idx == SUMMARY else one for one in rows],
    )


@row(
    WHOLE,
    "a text before the newest checkpoint, with keys",
    ("root", 0),
    where="between two checkpoints",
    by_witness=(("fork", 0),),
    requests="changed",
)
def rewritten(victim: Victim) -> None:
    _rewritten(victim, SUMMARY, by_keys=True)


@row(
    WHOLE,
    "the same, and all checkpoints deleted",
    where="between two that were cosigned",
    by_witness=(("fork", 0),),
    requests="changed",
)
def rewritten_without_checkpoints(victim: Victim) -> None:
    _rewritten(victim, SUMMARY, by_keys=True)
    victim.forget_signing()


@row(
    WHOLE,
    "the same, and signed anew with the signer's key",
    where="between two that were cosigned",
    by_witness=(("fork", 0),),
    requests="changed",
)
def rewritten_and_signed(victim: Victim) -> None:
    rewritten_without_checkpoints(victim)
    victim.sign()


@row(
    WHOLE,
    "a text behind the newest checkpoint, with keys",
    requests="changed",
    note="nothing of it was signed yet: sign often",
)
def rewritten_late(victim: Victim) -> None:
    with victim.opened() as ledger:
        bring_in(ledger._parts, present_job(ledger._parts, 10, conversation=OTHER), "late")
        ledger.catch_up()
    _rewritten(victim, SIZE, by_keys=True)


BACK = "An older state"


def _put_back(victim: Victim, size: int) -> None:
    victim.cut(size)
    victim.execute(f"DELETE FROM {victim.table('subjects')} WHERE state = 'erased'")
    _rebuild(victim)


@row(
    BACK,
    "the database restored",
    ("rollback", SIGNED[0]),
    ("erasure", None),
    where="the first that is missing",
    by_witness=(("fork", SIGNED[0]),),
    requests="without it",
    note="the keys know of an erasure that the log does not know of any more",
)
def restored(victim: Victim) -> None:
    _put_back(victim, SIGNED[0])


@row(
    BACK,
    "the database restored, and continued",
    ("root", SIGNED[0]),
    ("erasure", None),
    where="between two checkpoints; both sides are printed",
    by_witness=(("fork", SIGNED[0]),),
    requests="without it",
)
def restored_and_continued(victim: Victim) -> None:
    _put_back(victim, SIGNED[0])
    _go_on(victim)


def _go_on(victim: Victim) -> None:
    victim.grow("c-new", 4)


@row(
    BACK,
    "database and checkpoints restored",
    ("erasure", None),
    where="the first that is missing",
    by_witness=(("fork", SIGNED[0]),),
    requests="without it",
    note="where nothing was erased meanwhile, a witness alone",
)
def restored_with_checkpoints(victim: Victim) -> None:
    _put_back(victim, SIGNED[0])
    _checkpoints_back(victim)


@row(
    BACK,
    "database, checkpoints and keys restored",
    where="the first that is missing",
    by_witness=(("fork", SIGNED[0]),),
    requests="without it",
)
def restored_with_keys(victim: Victim) -> None:
    restored_with_checkpoints(victim)
    with data_keys(victim) as connection:
        connection.execute("DELETE FROM erasures")


def _checkpoints_back(victim: Victim) -> None:
    copies = victim.checkpoints / "checkpoints"
    (copies / str(SIGNED[1])).unlink()
    shutil.copy(copies / str(SIGNED[0]), victim.checkpoints / "checkpoint")
    victim.execute(f"UPDATE {victim.table('signer')} SET size = 0, root = {victim.no_bytes}")


@row(
    BACK,
    "the same, continued, and signed",
    where="between two checkpoints; both sides are printed",
    by_witness=(("fork", SIGNED[0]),),
    requests="without it",
)
def restored_and_signed(victim: Victim) -> None:
    restored_with_keys(victim)
    _go_on(victim)
    victim.sign()
