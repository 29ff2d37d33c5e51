"""K5: what the verifier accepts, what it says is proved, and what it refuses, naming the place."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from bundles import (
    Keeper,
    Members,
    as_lines,
    base64_of,
    check,
    edited,
    lines_of,
    unzipped,
    zipped,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from compaction_ledger import bundle_verifier
from compaction_ledger.bundle_verifier import BundleError
from compaction_ledger.domain.proof.notes import sign_note
from compaction_ledger.infrastructure.event_store.memory_recorder import SealedMemoryRecorder
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Signer
from compaction_ledger.usecases.exporting import Selection

Change = Callable[[Members], Members]


def refused(data: bytes, keeper: Keeper, *witnesses: str) -> BundleError:
    """How a bundle is refused."""
    with pytest.raises(BundleError) as caught:
        check(data, [keeper.key], witnesses)
    return caught.value


# --- what is accepted ---------------------------------------------------------------------------


def test_the_whole_log_is_proved(keeper: Keeper, whole: Members) -> None:
    found = check(zipped(whole), [keeper.key], [str(keeper.witness.verifier_key)])
    assert found.is_complete
    assert found.manifest.kind == "log"
    assert found.manifest.events == keeper.recorder.head()[0] == found.checkpoint.size
    counts = found.payloads
    assert (counts.opened, counts.plain, counts.erased, counts.sealed) == (11 + 6, 11 + 4, 12, 0)
    assert [time for _, time in found.checkpoint.witnesses] == [1_750_000_000]
    proved = " ".join(bundle_verifier.proved(found))
    assert "No event of the log is left out" in proved
    assert "12 events cannot be read any more, and the log records their erasure" in proved
    assert "no copy of an erased key" in " ".join(bundle_verifier.unproved(found))


def test_one_conversation_is_proved_but_not_that_it_is_all(keeper: Keeper, one: Members) -> None:
    found = check(zipped(one), [keeper.key])  # K5: completeness needs all envelopes
    assert not found.is_complete
    assert found.manifest.events == 11
    assert len(found.streams.last) == 3
    assert "that needs" not in " ".join(bundle_verifier.proved(found))
    unproved = " ".join(bundle_verifier.unproved(found))
    assert "no event of this conversation is left out" in unproved
    assert "name a witness" in unproved
    assert "conversation 'a' in scope 'tenant-1'" in " ".join(bundle_verifier.proved(found))


def test_with_all_envelopes_nothing_of_it_is_left_out(
    keeper: Keeper, with_envelopes: Members
) -> None:
    found = check(zipped(with_envelopes), [keeper.key])
    assert found.is_complete
    assert found.manifest.events == 11
    assert "No event of this conversation is left out" in " ".join(bundle_verifier.proved(found))


def test_a_bundle_without_openings_says_what_is_not_proved(keeper: Keeper) -> None:
    members = keeper.export(Selection(keeper.subject("a"), openings=False))
    found = check(zipped(members), [keeper.key])
    assert (found.payloads.sealed, found.payloads.opened) == (11, 0)
    unproved = " ".join(bundle_verifier.unproved(found))
    assert "What 11 encrypted payloads say" in unproved
    assert "no event that can be read names it" in unproved


@pytest.mark.parametrize("name", ["gone", "gone-plain"])
def test_an_erased_conversation_is_exported_by_its_reference(keeper: Keeper, name: str) -> None:
    (subject,) = {
        event["subject"]
        for event in _facts(keeper)
        if event["event"] == "ErasureCompleted" and bool(event["key_count"]) == (name == "gone")
    }
    found = check(zipped(keeper.export(Selection(subject))), [keeper.key])  # S3
    assert found.manifest.conversation is None
    assert (found.payloads.erased, found.payloads.plain) == (6, 2)


def _facts(keeper: Keeper) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for row in keeper.recorder.rows(0, 1_000):
        envelope = json.loads(row.envelope)
        if envelope["event"] == "ErasureCompleted":
            envelope["key_count"] = len(json.loads(row.payload)["keys"])
            told.append(envelope)
    return told


def test_an_empty_log(keeper: Keeper) -> None:
    empty = Keeper(SealedMemoryRecorder(lambda: 0))
    empty.sign()
    found = check(zipped(empty.export()), [empty.key])
    assert (found.checkpoint.size, found.is_complete, found.payloads.plain) == (0, True, 0)


def test_a_checkpoint_of_the_empty_log_is_a_beginning(keeper: Keeper) -> None:
    made = Keeper(SealedMemoryRecorder(lambda: 0))
    made.sign()
    made.summarize("a", 1)
    made.sign()
    assert check(zipped(made.export()), [made.key]).manifest.checkpoints == [0]


def test_what_came_after_the_checkpoint_is_not_in_the_bundle(keeper: Keeper) -> None:
    first = keeper.published[0]
    found = check(zipped(keeper.export(checkpoint=first)), [keeper.key])
    assert found.manifest.events == first.checkpoint.size == 11


def test_a_rotated_key_is_one_more_signature(whole: Members, keeper: Keeper) -> None:
    newer = Ed25519Signer(keeper.origin, Ed25519PrivateKey.generate())
    text = keeper.published[-1].checkpoint.encode()
    note = sign_note(text, [keeper.signer, newer]).encode()  # K2
    data = zipped({**whole, "checkpoint": note})
    assert len(check(data, [keeper.key]).checkpoint.signers) == 1
    assert len(check(data, [keeper.key, str(newer.verifier_key)]).checkpoint.signers) == 2


def test_the_same_input_gives_the_same_bytes(keeper: Keeper, whole: Members) -> None:
    assert zipped(keeper.export()) == zipped(whole)


def test_other_programs_read_the_zip(whole: Members) -> None:
    assert unzipped(zipped(whole)) == whole


# --- what is refused ----------------------------------------------------------------------------


def without(name: str) -> Change:
    return lambda members: {key: data for key, data in members.items() if key != name}


def line(name: str, number: int, **values: Any) -> Change:
    """One line of a member with other values."""

    def change(members: Members) -> Members:
        return edited(members, name, lambda lines: lines[number].update(values))

    return change


def value(name: str, **values: Any) -> Change:
    """Another value in a member."""
    return lambda members: edited(members, name, lambda found: found.update(values))


def lines(name: str, change: Callable[[list[Any]], Any]) -> Change:
    """Other lines in a member."""
    return lambda members: edited(members, name, change)


def counted(change: Change, events: int) -> Change:
    """The manifest goes along with it."""
    return lambda members: value("manifest.json", events=events)(change(members))


def flipped(name: str, number: int, member: str, position: int = -1) -> Change:
    """One bit of what stands in base64."""

    def change(found: list[Any]) -> None:
        data = bytearray(base64.b64decode(found[number][member]))
        data[position] ^= 1
        found[number][member] = base64_of(bytes(data))

    return lines(name, change)


def swapped(member: str) -> Change:
    """Two events of one kind with each other's payload, opening or both."""

    def change(found: list[Any]) -> None:
        for name in member.split("+"):
            found[0][name], found[5][name] = found[5][name], found[0][name]

    return lines("events.jsonl", change)


def blanked(found: list[Any]) -> None:
    found[11]["payload"] = ""


WHOLE: dict[str, tuple[Change, str]] = {
    # the archive
    "no manifest": (without("manifest.json"), "manifest.json"),
    "no checkpoint": (without("checkpoint"), "checkpoint"),
    "no policy": (without("policy.json"), "policy.json"),
    "no older checkpoint": (without("checkpoints/11"), "checkpoints/11"),
    "a member more": (lambda m: {**m, "README": b""}, "the ZIP directory"),
    "in another order": (lambda m: dict(reversed(m.items())), "manifest.json"),
    # the manifest
    "another format": (value("manifest.json", bundle="x"), "manifest.json"),
    "another version": (value("manifest.json", version=2), "manifest.json"),
    "a version that only looks like it": (value("manifest.json", version=True), "manifest.json"),
    "an unknown member": (value("manifest.json", more=1), "manifest.json"),
    "another origin": (value("manifest.json", origin="x"), "checkpoint"),
    "another size": (value("manifest.json", size=41), "manifest.json"),
    "a size that is none": (value("manifest.json", size=True), "manifest.json"),
    "a negative size": (value("manifest.json", size=-1), "manifest.json"),
    "checkpoints out of order": (value("manifest.json", checkpoints=[34, 11]), "manifest.json"),
    "a checkpoint of no size": (value("manifest.json", checkpoints=["../x"]), "manifest.json"),
    "checkpoints that are none": (value("manifest.json", checkpoints={}), "manifest.json"),
    "a kind that is none": (value("manifest.json", kind="all"), "manifest.json"),
    "a conversation in name": (value("manifest.json", kind="conversation"), "manifest.json"),
    "openings denied": (value("manifest.json", openings=False), "event 0"),
    "too many events": (value("manifest.json", events=10**9), "manifest.json"),
    "too few events": (value("manifest.json", events=3), "events.jsonl"),
    # the form of JSON
    "a key twice": (
        lambda m: {**m, "manifest.json": b'{"a":1,' + m["manifest.json"][1:]},
        "manifest.json",
    ),
    "the same key twice": (
        lambda m: {**m, "policy.json": b'{"window":1,' + m["policy.json"][1:]},
        "policy.json",
    ),
    "a blank": (lambda m: {**m, "policy.json": m["policy.json"] + b" "}, "policy.json"),
    "NaN": (lambda m: {**m, "policy.json": b'{"prompts":NaN,"window":1}'}, "policy.json"),
    "a fraction": (lambda m: {**m, "policy.json": b'{"prompts":1.5,"window":1}'}, "policy.json"),
    "infinity": (lambda m: {**m, "policy.json": b'{"prompts":1e999,"window":1}'}, "policy.json"),
    "a huge number": (
        lambda m: {**m, "policy.json": b'{"prompts":' + b"9" * 5000 + b',"window":1}'},
        "policy.json",
    ),
    "deep JSON": (
        lambda m: {**m, "policy.json": b'{"prompts":' + b"[" * 10**5 + b"]" * 10**5 + b"}"},
        "policy.json",
    ),
    "no UTF-8": (lambda m: {**m, "keys.json": b'{"log":"\xff","witnesses":1}'}, "keys.json"),
    "a lone surrogate": (
        lambda m: {**m, "keys.json": b'{"log":"\\ud800","witnesses":1}'},
        "keys.json",
    ),
    "no object": (lambda m: {**m, "keys.json": b"[]"}, "keys.json"),
    "a line without its end": (
        lambda m: {**m, "events.jsonl": m["events.jsonl"][:-1]},
        "events.jsonl, line 44",
    ),
    "an empty line": (
        lambda m: {**m, "events.jsonl": m["events.jsonl"] + b"\n"},
        "events.jsonl, line 45",
    ),
    # the events
    "an event removed": (lines("events.jsonl", lambda found: found.pop(7)), "event 8"),
    "the last event removed": (
        counted(lines("events.jsonl", lambda found: found.pop()), 43),
        "checkpoint of size 44",
    ),
    "an event repeated": (
        lines("events.jsonl", lambda found: found.insert(3, found[3])),
        "event 3",
    ),
    "two events the other way round": (
        lines("events.jsonl", lambda found: found.insert(3, found.pop(4))),
        "event 4",
    ),
    "an index that is none": (line("events.jsonl", 4, index="4"), "events.jsonl, line 5"),
    "an envelope changed": (flipped("events.jsonl", 4, "envelope", 12), "event 4|checkpoint"),
    "an envelope that is no text": (flipped("events.jsonl", 4, "envelope", 0), "event 4"),
    "a payload changed": (flipped("events.jsonl", 4, "payload"), "event 4"),
    "an opening changed": (flipped("events.jsonl", 4, "opening"), "event 4"),
    "an opening left out": (line("events.jsonl", 4, opening=None), "event 4"),
    "an opening too short": (line("events.jsonl", 4, opening="AA=="), "events.jsonl, line 5"),
    "an opening of plain text": (line("events.jsonl", 11, opening="A" * 43 + "="), "event 11"),
    "base64 in another form": (line("events.jsonl", 4, opening="A" * 43 + "B="), ".*line 5"),
    "base64 of another alphabet": (line("events.jsonl", 4, payload="__--"), ".*line 5"),
    "no base64": (line("events.jsonl", 4, payload=4), ".*line 5"),
    "a proof where none is due": (line("events.jsonl", 4, proof=[]), "event 4"),
    "payloads swapped": (swapped("payload"), "event 0"),
    "openings swapped": (swapped("opening"), "event 0"),
    "payloads and openings swapped": (swapped("payload+opening"), "event 0"),
    "plain text taken away": (lines("events.jsonl", blanked), "event 11"),
    # the checkpoints
    "no consistency proof": (lambda m: {**m, "consistency.jsonl": b""}, "consistency.jsonl"),
    "a proof between other sizes": (line("consistency.jsonl", 0, to=12), "consistency.jsonl"),
    "a proof that is none": (line("consistency.jsonl", 0, proof=None), "consistency.jsonl"),
    "an empty proof": (line("consistency.jsonl", 0, proof=[]), "consistency.jsonl"),
    "a proof too long": (line("consistency.jsonl", 0, proof=["A" * 43 + "="] * 65), "consi.*"),
    "a proof of no hashes": (line("consistency.jsonl", 0, proof=["AA=="]), "consistency.jsonl"),
    "two checkpoints for each other": (
        lambda m: {**m, "checkpoints/11": m["checkpoints/34"]},
        "checkpoints/11",
    ),
}


def test_the_cases_fit_the_log(keeper: Keeper) -> None:
    assert [one.checkpoint.size for one in keeper.published] == [11, 34, 44]


@pytest.mark.parametrize("case", WHOLE)
def test_what_was_changed_is_refused(keeper: Keeper, whole: Members, case: str) -> None:
    change, place = WHOLE[case]
    changed = change(whole)
    assert zipped(changed) != zipped(whole)
    error = refused(zipped(changed), keeper)
    assert re.match(place, error.place), error


def other_event(found: list[Any]) -> None:
    """The first event of another conversation in place of ours, with its own proof."""
    found[0].update(found.pop())


ONE: dict[str, tuple[Change, str]] = {
    "an event removed": (counted(lines("events.jsonl", lambda found: found.pop(1)), 10), "event 2"),
    "an event removed, and not said so": (
        lines("events.jsonl", lambda f: f.pop(10)),
        "events.jsonl",
    ),
    "a stream's first event removed": (
        counted(lines("events.jsonl", lambda found: found.pop(5)), 10),
        "event 6",
    ),
    "two events the other way round": (
        lines("events.jsonl", lambda found: found.insert(3, found.pop(4))),
        "event 4",
    ),
    "an event repeated": (
        counted(lines("events.jsonl", lambda found: found.insert(3, found[3])), 12),
        "event 3",
    ),
    "another index": (line("events.jsonl", 10, index=11), "event 11"),
    "an index beyond the log": (line("events.jsonl", 10, index=44), "event 44"),
    "no inclusion proof": (line("events.jsonl", 4, proof=None), "event 4"),
    "an empty proof": (line("events.jsonl", 4, proof=[]), "event 4"),
    "a step too few": (lines("events.jsonl", lambda found: found[4]["proof"].pop()), "event 4"),
    "a step too many": (
        lines("events.jsonl", lambda found: found[4]["proof"].append(found[4]["proof"][0])),
        "event 4",
    ),
    "another subject": (value("manifest.json", subject="0" * 32), "event 0"),
    "no subject": (value("manifest.json", subject=None), "manifest.json"),
    "another name": (
        value("manifest.json", conversation={"scope": "tenant-1", "id": "b"}),
        "event 0",
    ),
    "another scope": (
        value("manifest.json", conversation={"scope": "tenant-2", "id": "a"}),
        "event 0",
    ),
    "a name that is none": (
        value("manifest.json", conversation={"scope": "tenant-1", "id": 1}),
        "manifest.json",
    ),
    "envelopes announced": (value("manifest.json", envelopes=True), "envelopes.jsonl"),
}


@pytest.mark.parametrize("case", ONE)
def test_what_was_changed_in_one_conversation_is_refused(
    keeper: Keeper, one: Members, case: str
) -> None:
    change, place = ONE[case]
    changed = change(one)
    assert zipped(changed) != zipped(one)
    assert re.match(place, refused(zipped(changed), keeper).place)


def test_an_event_of_another_conversation_is_refused(keeper: Keeper, one: Members) -> None:
    other = lines_of(keeper.export(Selection(keeper.subject("b")))["events.jsonl"])
    found = [*lines_of(one["events.jsonl"])[:-1], other[0]]
    data = zipped({**one, "events.jsonl": as_lines(found)})
    error = refused(data, keeper)
    assert (error.place, error.message) == ("event 11", "an event of another conversation")


def test_another_conversation_under_this_name_is_refused(keeper: Keeper, one: Members) -> None:
    other = keeper.export(Selection(keeper.subject("b")))
    name = json.loads(one["manifest.json"])["conversation"]
    changed = value("manifest.json", conversation=name)(other)
    assert "a fact of conversation 'b'" in refused(zipped(changed), keeper).message


@pytest.mark.parametrize("number", [0, 10])
def test_an_event_left_out_is_found_by_the_envelopes(
    keeper: Keeper, with_envelopes: Members, number: int
) -> None:
    """The last event of a stream, or a whole stream: the streams alone do not show it (K5)."""
    left = [event for event in lines_of(with_envelopes["events.jsonl"]) if event["index"] < 10]
    if number:
        left = left[:9]
    changed = {**with_envelopes, "events.jsonl": as_lines(left)}
    changed = value("manifest.json", events=len(left))(changed)
    error = refused(zipped(changed), keeper)
    assert error.place == f"envelope {len(left)}"
    alone = value("manifest.json", envelopes=False)(without("envelopes.jsonl")(changed))
    assert not check(zipped(alone), [keeper.key]).is_complete  # and it says that this is not proved


ENVELOPES: dict[str, tuple[Change, str]] = {
    "one left out": (lines("envelopes.jsonl", lambda found: found.pop(20)), "checkpoint"),
    "the last left out": (lines("envelopes.jsonl", lambda found: found.pop()), "checkpoint"),
    "one of ours left out": (
        lines("envelopes.jsonl", lambda found: found.pop(3)),
        "envelope|check",
    ),
    "one repeated": (lines("envelopes.jsonl", lambda found: found.append(found[20])), "checkpoint"),
    "one changed": (flipped("envelopes.jsonl", 20, "envelope", 12), "envelope 20|checkpoint"),
    "a member more": (line("envelopes.jsonl", 20, index=20), "envelopes.jsonl, line 21"),
}


@pytest.mark.parametrize("case", ENVELOPES)
def test_changed_envelopes_are_refused(keeper: Keeper, with_envelopes: Members, case: str) -> None:
    change, place = ENVELOPES[case]
    assert re.match(place, refused(zipped(change(with_envelopes)), keeper).place)


# --- erasures -----------------------------------------------------------------------------------


def test_an_unrecorded_erasure_is_refused(keeper: Keeper) -> None:
    """Whoever merely has no key, or hides one, cannot call it an erasure (S3)."""
    made = Keeper(SealedMemoryRecorder(lambda: 0))
    made.summarize("a", 1)
    made.sign()
    changed = edited(made.export(), "events.jsonl", lambda found: found[2].update(opening=None))
    with pytest.raises(BundleError, match="event 2: it cannot be read, and no erasure"):
        check(zipped(changed), [made.key])


def test_what_was_erased_and_can_be_read_is_refused() -> None:
    """The erasure is recorded, and its key was kept all the same (S3)."""
    made = Keeper(SealedMemoryRecorder(lambda: 0))
    made.summarize("a", 1)
    made.sign()
    opened = lines_of(made.export()["events.jsonl"])
    made.erase("a")
    made.sign()

    def reopen(found: list[Any]) -> None:
        found[1]["opening"] = opened[1]["opening"]

    with pytest.raises(BundleError, match="event 1: it was erased, and it can be read"):
        check(zipped(edited(made.export(), "events.jsonl", reopen)), [made.key])


def test_a_requested_erasure_is_enough() -> None:
    made = Keeper(SealedMemoryRecorder(lambda: 0))
    made.summarize("a", 1)
    made.summarize("b", 1, plain=True)
    made.erase("a", complete=False)
    made.erase("b", complete=False)  # its payloads are still there, and are not handed out
    made.sign()
    members = made.export()
    assert check(zipped(members), [made.key]).payloads.erased == 12
    assert b'"payload":""' in members["events.jsonl"]
