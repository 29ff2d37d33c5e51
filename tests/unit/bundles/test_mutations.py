"""K5: whatever is done to the bytes of a bundle or of a checkpoint, it is refused, or it means the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bundles import Keeper, Members, check, lines_of, zipped
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_ledger.bundle_verifier import Bundle, BundleError
from compaction_ledger.infrastructure.event_store.memory_recorder import SealedMemoryRecorder
from compaction_ledger.usecases.exporting import Selection

KEEPER = Keeper(SealedMemoryRecorder(lambda: 1_750_000_000_000_000))
KEEPER.summarize("a", 1)
KEEPER.sign()
KEEPER.summarize("b", 1, plain=True)
KEEPER.summarize("gone", 1)
KEEPER.erase("gone")
KEEPER.sign()
WITNESS = str(KEEPER.witness.verifier_key)
BUNDLES: dict[str, Members] = {
    "log": KEEPER.export(),
    "conversation": KEEPER.export(Selection(KEEPER.subject("a"))),
    "with envelopes": KEEPER.export(Selection(KEEPER.subject("b"), envelopes=True)),
}
kinds = st.sampled_from(sorted(BUNDLES))


def found(data: bytes) -> Bundle:
    return check(data, [KEEPER.key], [WITNESS])


def meaning(bundle: Bundle) -> tuple[Any, ...]:
    """What a bundle proves."""
    payloads = bundle.payloads
    return (
        bundle.manifest,
        bundle.checkpoint,
        bundle.streams.last,
        (payloads.opened, payloads.plain, payloads.erased, payloads.sealed),
        payloads.names,
    )


def mutate(data: bytes, source: st.DataObject) -> bytes:
    """One change: a region other, away, twice, moved, or something between."""
    draw = source.draw
    start = draw(st.integers(0, max(0, len(data) - 1)))
    end = min(len(data), start + draw(st.sampled_from([1, 1, 2, 8, 100])))
    region, before, behind = data[start:end], data[:start], data[end:]
    kind = draw(st.sampled_from(["bit", "bytes", "delete", "double", "insert", "move", "copy"]))
    if kind == "bit":
        return before + bytes([region[0] ^ 1 << draw(st.integers(0, 7))]) + region[1:] + behind
    if kind == "bytes":
        return before + draw(st.binary(min_size=len(region), max_size=len(region))) + behind
    if kind == "delete":
        return before + behind
    if kind == "double":
        return before + region + region + behind
    if kind == "insert":
        return before + draw(st.binary(min_size=1, max_size=20)) + region + behind
    rest = before + behind if kind == "move" else data
    at = draw(st.integers(0, len(rest)))
    return rest[:at] + region + rest[at:]


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(kind=kinds, data=st.data())
def test_every_byte_of_the_file_matters(kind: str, data: st.DataObject) -> None:
    whole = zipped(BUNDLES[kind])
    changed = mutate(whole, data)
    if changed != whole:
        with pytest.raises(BundleError):
            found(changed)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(kind=kinds, data=st.data())
def test_members_that_were_changed_by_somebody_who_knows_zip(
    kind: str, data: st.DataObject
) -> None:
    """Checksums and sizes are right again. What is for people is not proved; nothing else passes."""
    members = BUNDLES[kind]
    name = data.draw(st.sampled_from(sorted(members)))
    changed = mutate(members[name], data)
    try:
        after = found(zipped({**members, name: changed}))
    except BundleError:
        return
    if name in ("keys.json", "policy.json"):
        assert json.loads(changed)
    elif changed != members[name]:
        assert name.startswith("checkpoint")  # a signature line of a key that is not known
    assert meaning(after) == meaning(found(zipped(members)))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_checkpoints(data: st.DataObject) -> None:
    """K2: nothing but a line of an unknown key may be other."""
    members = BUNDLES["log"]
    name = data.draw(st.sampled_from(["checkpoint", "checkpoints/6"]))
    changed = mutate(members[name], data)
    try:
        after = found(zipped({**members, name: changed}))
    except BundleError:
        return
    text, _, _ = changed.rpartition(b"\n\n")
    assert text == members[name].rpartition(b"\n\n")[0]
    assert meaning(after) == meaning(found(zipped(members)))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(kind=kinds, data=st.data())
def test_lines_that_are_removed_repeated_or_moved(kind: str, data: st.DataObject) -> None:
    members = BUNDLES[kind]
    names = [name for name in members if name.endswith(".jsonl")]
    name = data.draw(st.sampled_from(names))
    lines = members[name].splitlines(keepends=True)
    at, to = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    change = data.draw(st.sampled_from(["remove", "repeat", "move", "replace"]))
    line = lines[at]
    if change in ("remove", "move"):
        del lines[at]
    if change in ("repeat", "move"):
        lines.insert(to, line)
    if change == "replace":
        lines[to] = line
    changed = {**members, name: b"".join(lines)}
    if name == "events.jsonl":
        manifest = json.loads(members["manifest.json"])
        manifest["events"] = len(lines)
        changed["manifest.json"] = _canonical(manifest)
    if changed == members:
        return
    try:
        found(zipped(changed))
    except BundleError:
        return
    # A conversation without its envelopes cannot show that the last event of a stream is there (K5).
    assert (kind, name, change) == ("conversation", "events.jsonl", "remove")


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(kind=kinds, data=st.data())
def test_values_of_events_that_are_exchanged(kind: str, data: st.DataObject) -> None:
    """A payload, an envelope, an opening or a proof of another event, of this bundle or of another."""
    members = BUNDLES[kind]
    others = [line for other in BUNDLES.values() for line in lines_of(other["events.jsonl"])]
    lines = lines_of(members["events.jsonl"])
    line = lines[data.draw(st.integers(0, len(lines) - 1))]
    name, other = data.draw(st.sampled_from(sorted(line))), data.draw(st.sampled_from(others))
    if line[name] == other[name]:
        return
    line[name] = other[name]
    with pytest.raises(BundleError):
        found(zipped({**members, "events.jsonl": b"".join(_canonical(v) + b"\n" for v in lines)}))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=2_000))
def test_no_bytes_at_all_make_it_crash(data: bytes) -> None:
    with pytest.raises(BundleError):
        found(data)
    for name in BUNDLES["log"]:
        try:
            found(zipped({**BUNDLES["log"], name: data}))
        except BundleError:
            continue
