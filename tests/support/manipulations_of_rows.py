"""Single columns, rows, the head, references and read models: what anybody can change who can write."""

from __future__ import annotations

from manipulated import (
    CHUNK,
    DELIVERY,
    FIRST,
    GONE_CLAIM,
    GONE_SUMMARY,
    GOOD,
    IMPORTED,
    LAST,
    LATE_CLAIM,
    OTHER,
    OTHER_CLAIM,
    OTHER_SUMMARY,
    PIN,
    REQUESTED,
    SIZE,
    STARTED,
    SUMMARY,
)
from manipulation_rows import Table
from manipulations import Victim

OF_ROWS = Table()
row = OF_ROWS.row

EVENTS = "Columns of an event"


@row(EVENTS, "its payload", ("seal", SUMMARY), where="it", requests="without it")
def payload(victim: Victim) -> None:
    stored = victim.rows()[SUMMARY].payload
    victim.edit(SUMMARY, state=stored[:-1] + bytes([stored[-1] ^ 1]))


@row(
    EVENTS, "the id of the key in its payload", ("seal", SUMMARY), where="it", requests="without it"
)
def key_in_payload(victim: Victim) -> None:
    stored = victim.rows()[SUMMARY].payload
    other = victim.rows()[OTHER_SUMMARY].payload
    victim.edit(SUMMARY, state=stored[:1] + other[1:17] + stored[17:])


@row(
    EVENTS,
    "its payload, emptied as if it had been erased",
    ("seal", SUMMARY),
    where="it",
    requests="without it",
)
def blanked(victim: Victim) -> None:
    victim.edit(SUMMARY, state=b"")


@row(
    EVENTS,
    "its payload, replaced by plain JSON",
    ("seal", SUMMARY),
    where="it",
    requests="without it",
)
def plain(victim: Victim) -> None:
    victim.edit(SUMMARY, state=b"{}")


@row(
    EVENTS, "its index", ("hole", SUMMARY), where="the first that is missing", requests="without it"
)
def index(victim: Victim) -> None:
    victim.edit(SUMMARY, idx=500)


@row(EVENTS, "its stream", ("seal", SUMMARY), where="it", requests="without it")
def stream(victim: Victim) -> None:
    victim.edit(SUMMARY, originator_id="0" * 32)


@row(EVENTS, "its version", ("seal", SUMMARY), where="it", requests="without it")
def version(victim: Victim) -> None:
    victim.edit(SUMMARY, originator_version=9)


@row(EVENTS, "its name", ("seal", SUMMARY), where="it", requests="without it")
def topic(victim: Victim) -> None:
    victim.edit(SUMMARY, topic="SummaryImported@1")


@row(EVENTS, "its envelope", ("seal", SUMMARY), where="it", requests="without it")
def envelope(victim: Victim) -> None:
    before = victim.rows()[SUMMARY].envelope
    victim.edit(SUMMARY, envelope=before.replace(b'"recorded":1', b'"recorded":2'))


@row(EVENTS, "its leaf", ("seal", SUMMARY), where="it", requests="without it")
def leaf(victim: Victim) -> None:
    victim.edit(SUMMARY, leaf=bytes(32))


@row(EVENTS, "its leaf and envelope, emptied", ("leaf", SUMMARY), where="it", requests="without it")
def no_leaf(victim: Victim) -> None:
    victim.edit(SUMMARY, leaf=b"", envelope=b"")


@row(EVENTS, "the payload of a window's chunk", ("seal", CHUNK), where="it", requests="without it")
def payload_of_chunk(victim: Victim) -> None:
    stored = victim.rows()[CHUNK].payload
    victim.edit(CHUNK, state=stored[:-1] + bytes([stored[-1] ^ 1]))


@row(EVENTS, "the payload of a pin", ("seal", PIN), where="it", requests="without it")
def payload_of_pin(victim: Victim) -> None:
    stored = victim.rows()[PIN].payload
    victim.edit(PIN, state=stored[:-1] + bytes([stored[-1] ^ 1]))


@row(EVENTS, "the payload of an erased event", ("seal", GONE_SUMMARY), where="it")
def payload_of_erased(victim: Victim) -> None:
    stored = victim.rows()[GONE_SUMMARY].payload
    victim.edit(GONE_SUMMARY, state=stored[:-1] + bytes([stored[-1] ^ 1]))


@row(
    EVENTS, "the encrypted payload of an erased event, emptied", ("seal", GONE_SUMMARY), where="it"
)
def blanked_erased(victim: Victim) -> None:
    victim.edit(GONE_SUMMARY, state=b"")


ROWS = "Whole events"


def _exchange(victim: Victim, one: int, other: int, *columns: str) -> None:
    rows = victim.rows()
    names = {"state": "payload", "leaf": "leaf", "envelope": "envelope"}
    for index, source in ((one, rows[other]), (other, rows[one])):
        victim.edit(index, **{column: getattr(source, names[column]) for column in columns})


@row(
    ROWS,
    "payloads of two events of a conversation exchanged",
    ("seal", FIRST),
    ("seal", SUMMARY),
    where="both",
    requests="without it",
)
def payloads_exchanged(victim: Victim) -> None:
    _exchange(victim, FIRST, SUMMARY, "state")


@row(
    ROWS,
    "payloads exchanged between two conversations",
    ("seal", SUMMARY),
    ("seal", OTHER_SUMMARY),
    where="both",
    requests="without it",
)
def payloads_exchanged_between(victim: Victim) -> None:
    _exchange(victim, SUMMARY, OTHER_SUMMARY, "state")


@row(
    ROWS,
    "payload, envelope and leaf exchanged",
    ("seal", SUMMARY),
    where="both",
    requests="without it",
)
def contents_exchanged(victim: Victim) -> None:
    _exchange(victim, SUMMARY, OTHER_SUMMARY, "state", "envelope", "leaf")


@row(
    ROWS,
    "two events of a stream exchanged",
    ("stream", STARTED),
    where="both",
    requests="without it",
)
def places_exchanged(victim: Victim) -> None:
    _move(victim, STARTED, SUMMARY)


@row(
    ROWS,
    "two events of two streams exchanged",
    ("root", 0),
    where="between two checkpoints",
    requests="without it",
)
def places_exchanged_between(victim: Victim) -> None:
    _move(victim, SUMMARY, OTHER_SUMMARY)


@row(
    ROWS,
    "the same, behind the newest checkpoint",
    ("read_model", None),
    where="the rows that differ",
    requests="without it",
)
def late_places_exchanged(victim: Victim) -> None:
    victim.grow("c-new")
    _move(victim, LAST, SIZE)


def _move(victim: Victim, one: int, other: int) -> None:
    victim.edit(one, idx=-1)
    victim.edit(other, idx=one)
    victim.edit(-1, idx=other)


def _delete(victim: Victim, *indices: int) -> None:
    for index in indices:
        victim.change(f"DELETE FROM {victim.table('stored_events')} WHERE idx = ?", index)


@row(ROWS, "the first event deleted", ("head", None), ("hole", 0), where="it")
def first_deleted(victim: Victim) -> None:
    _delete(victim, 0)


@row(
    ROWS,
    "an event in the middle deleted",
    ("head", None),
    ("hole", SUMMARY),
    where="it",
    requests="without it",
)
def middle_deleted(victim: Victim) -> None:
    _delete(victim, SUMMARY)


@row(
    ROWS,
    "the last event deleted",
    ("head", None),
    ("hole", LAST),
    where="it",
    requests="without it",
)
def last_deleted(victim: Victim) -> None:
    _delete(victim, LAST)


@row(ROWS, "an event deleted, and put back as it was", where="", note="nothing has changed")
def put_back(victim: Victim) -> None:
    rows = victim.rows()
    _delete(victim, SUMMARY)
    victim.put(rows)


@row(
    ROWS,
    "an event deleted, and put back behind the last, all others moved up",
    ("read_model", None),
    ("root", 0),
    where="the rows that differ; between two checkpoints",
    requests="without it",
)
def put_back_elsewhere(victim: Victim) -> None:
    rows = victim.rows()
    moved = [*rows[:SUMMARY], *rows[SUMMARY + 1 :], rows[SUMMARY]]
    victim.put([one._replace(idx=number) for number, one in enumerate(moved)])


@row(ROWS, "an event slipped in without a seal", ("leaf", SIZE), where="it")
def slipped_in(victim: Victim) -> None:
    last = victim.rows()[SUMMARY]
    victim.append(last._replace(idx=SIZE, version=4, envelope=b"", leaf=b""))


@row(ROWS, "an event slipped in, and the head not told", ("head", None), ("seal", SIZE), where="it")
def slipped_in_unknown(victim: Victim) -> None:
    last = victim.rows()[SUMMARY]
    victim._insert([last._replace(idx=SIZE, version=4)])


HEAD = "The head"


def _head(victim: Victim, setting: str, *values: object) -> None:
    victim.change(f"UPDATE {victim.table('log_head')} SET {setting}", *values)


@row(HEAD, "its size made smaller", ("head", None), where="")
def head_back(victim: Victim) -> None:
    _head(victim, "size = size - 1")


@row(
    HEAD, "its size made larger", ("head", None), ("hole", SIZE), where="the first that is missing"
)
def head_on(victim: Victim) -> None:
    _head(victim, "size = size + 5")


@row(HEAD, "the origin of the log", ("origin", 0), where="every event")
def origin(victim: Victim) -> None:
    _head(victim, "origin = ?", "compaction-ledger/" + "0" * 32)


@row(
    HEAD,
    "deleted",
    ("head", None),
    where="",
    requests="refused",
    note="which log it is, and so what of it was erased, cannot be told",
)
def no_head(victim: Victim) -> None:
    victim.change(f"DELETE FROM {victim.table('log_head')}")


@row(
    HEAD,
    "the tail deleted, and the size set back, behind the newest checkpoint",
    ("read_models", None),
    where="both numbers of events",
    requests="without it",
)
def late_tail_deleted(victim: Victim) -> None:
    victim.cut(LATE_CLAIM)


@row(
    HEAD,
    "the tail deleted, and the size set back, further than that",
    ("rollback", GONE_CLAIM),
    where="the first that is missing",
    by_witness=(("fork", GONE_CLAIM),),
    requests="without it",
)
def tail_deleted(victim: Victim) -> None:
    victim.cut(GONE_CLAIM)


SUBJECTS = "References of conversations (`subjects`)"


def _subject(victim: Victim, of: str, **columns: object) -> None:
    settings = ", ".join(f"{name} = ?" for name in columns)
    victim.change(
        f"UPDATE {victim.table('subjects')} SET {settings} WHERE conversation = ?",
        *columns.values(),
        of,
    )


@row(SUBJECTS, "a reference", ("subject", 0), where="the first event of the conversation")
def reference(victim: Victim) -> None:
    _subject(victim, GOOD, reference="7" * 32)


@row(
    SUBJECTS,
    "the scope",
    ("subject", 0),
    where="the first event of the conversation",
    requests="without it",
)
def scope(victim: Victim) -> None:
    _subject(victim, GOOD, scope="another tenant")


@row(
    SUBJECTS,
    "the conversation",
    ("subject", 0),
    where="the first event of the conversation",
    requests="without it",
)
def conversation(victim: Victim) -> None:
    _subject(victim, GOOD, conversation="c-somebody-else")


@row(SUBJECTS, "deleted", ("subject", 0), where="the first event of the conversation")
def no_subject(victim: Victim) -> None:
    victim.change(f"DELETE FROM {victim.table('subjects')} WHERE conversation = ?", GOOD)


@row(
    SUBJECTS,
    "the conversations of two references, exchanged",
    ("subject", 0),
    ("subject", OTHER_CLAIM),
    where="the first event of each",
    requests="without it",
)
def conversations_exchanged(victim: Victim) -> None:
    subjects = victim.table("subjects")
    references = dict(victim.execute(f"SELECT conversation, reference FROM {subjects}"))
    victim.change(f"UPDATE {subjects} SET reference = ? WHERE conversation = ?", "x", GOOD)
    victim.change(
        f"UPDATE {subjects} SET reference = ? WHERE conversation = ?", references[GOOD], OTHER
    )
    victim.change(
        f"UPDATE {subjects} SET reference = ? WHERE conversation = ?", references[OTHER], GOOD
    )


@row(
    SUBJECTS,
    "the key, to one that nobody has",
    ("key", 0),
    where="the first event of the conversation",
)
def key_of_nobody(victim: Victim) -> None:
    _subject(victim, GOOD, key="7" * 32)


@row(
    SUBJECTS,
    "the key, to that of another conversation",
    ("key", 0),
    where="the first event of the conversation",
)
def key_of_another(victim: Victim) -> None:
    ((key,),) = victim.execute(
        f"SELECT key FROM {victim.table('subjects')} WHERE conversation = '{OTHER}'"
    )
    _subject(victim, GOOD, key=key)


@row(SUBJECTS, "the key, emptied", ("key", 0), where="the first event of the conversation")
def key_emptied(victim: Victim) -> None:
    _subject(victim, GOOD, key="")


@row(
    SUBJECTS,
    "marked as erased, without a request",
    ("erasure", 0),
    where="the first event of the conversation",
    requests="without it",
)
def marked_erased(victim: Victim) -> None:
    _subject(victim, GOOD, state="erased")


@row(SUBJECTS, "an erased one marked as live", ("erasure", REQUESTED), where="the request")
def marked_live(victim: Victim) -> None:
    victim.change(f"UPDATE {victim.table('subjects')} SET state = 'live' WHERE state = 'erased'")


@row(SUBJECTS, "an erased one, deleted", ("subject", GONE_CLAIM), where="its first event")
def erased_deleted(victim: Victim) -> None:
    victim.change(f"DELETE FROM {victim.table('subjects')} WHERE state = 'erased'")


MODELS = "Read models"


def _model(victim: Victim, name: str, change: str) -> None:
    victim.change(change.replace("{table}", victim.read_model(name)))


@row(MODELS, "the index of a summary", ("read_model", None), where="the row", requests="without it")
def model_of_summaries(victim: Victim) -> None:
    _model(victim, "summaries", f"UPDATE {{table}} SET idx = {IMPORTED} WHERE idx = {SUMMARY}")


@row(MODELS, "the range of a summary", ("read_model", None), where="the row", requests="without it")
def model_of_summaries_moved(victim: Victim) -> None:
    _model(
        victim,
        "summaries",
        f"UPDATE {{table}} SET from_pair = 0, to_pair = 9 WHERE idx = {SUMMARY}",
    )


@row(
    MODELS,
    "the conversation of a summary",
    ("read_model", None),
    where="the row",
    requests="without it",
)
def model_of_summaries_given(victim: Victim) -> None:
    _model(
        victim,
        "summaries",
        f"UPDATE {{table}} SET conversation = '{OTHER}', from_pair = 10, to_pair = 19 WHERE idx = {SUMMARY}",
    )


@row(
    MODELS,
    "the source hash of a summary",
    ("read_model", None),
    where="the row",
    requests="without it",
)
def model_of_sources(victim: Victim) -> None:
    _model(
        victim,
        "summaries",
        f"UPDATE {{table}} SET source_hash = '{'0' * 64}' WHERE idx = {SUMMARY}",
    )


@row(MODELS, "the model of a summary", ("read_model", None), where="the row", requests="without it")
def model_of_models(victim: Victim) -> None:
    _model(victim, "summaries", f"UPDATE {{table}} SET model = 'better' WHERE idx = {SUMMARY}")


@row(
    MODELS,
    "the verdict of a summary's prompt",
    ("read_model", None),
    where="the row",
    requests="as they were",
)
def model_of_verdicts(victim: Victim) -> None:
    _model(
        victim, "summaries", f"UPDATE {{table}} SET validity = 'mixed_input' WHERE idx = {SUMMARY}"
    )


@row(MODELS, "a summary deleted", ("read_model", None), where="the row", requests="without it")
def model_of_summaries_deleted(victim: Victim) -> None:
    _model(victim, "summaries", f"DELETE FROM {{table}} WHERE idx = {SUMMARY}")


def _of_table(name: str, change: str, what: str) -> None:
    def edit(victim: Victim) -> None:
        _model(victim, name, change)

    edit.__name__ = f"model_of_{name}"
    row(MODELS, what, ("read_model", None), where="the row")(edit)


_of_table("ranges", "UPDATE {table} SET status = 'due' WHERE from_pair = 10", "a range")
_of_table("attempts", "UPDATE {table} SET holder = 'somebody'", "attempts")
_of_table("deliveries", "UPDATE {table} SET bytes_used = 1", "a delivery")
_of_table("window_chunks", "UPDATE {table} SET first_message = 2", "a chunk")
_of_table("window_pins", "UPDATE {table} SET quote = 'Spend it all.'", "a pin")
_of_table("window_deliveries", "DELETE FROM {table}", "deliveries of windows")


@row(MODELS, "the position, set back", ("read_model", None), where="the rows that are too many")
def position_back(victim: Victim) -> None:
    victim.change(f"UPDATE {victim.read_model('generations')} SET position = {DELIVERY}")


@row(MODELS, "the position, set on", ("read_models", None), where="both numbers of events")
def position_on(victim: Victim) -> None:
    victim.change(f"UPDATE {victim.read_model('generations')} SET position = {SIZE + 9}")


@row(MODELS, "the fingerprint of the verdicts", ("read_models", None), where="")
def verdicts(victim: Victim) -> None:
    victim.change(f"UPDATE {victim.read_model('generations')} SET verdicts = '{'0' * 64}'")
