"""K5, S3, S4: bundles from every kind of store are proved, hold no secret, and nothing false is exported."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import Backend, sealed
from bundles import SCOPE, Keeper, Written, check, lines_of, zipped

from compaction_ledger.composition import Parts
from compaction_ledger.domain.bundles import Published
from compaction_ledger.domain.errors import (
    DamagedLog,
    InvalidProof,
    InvalidSetting,
    KeyMissing,
    UnknownConversation,
)
from compaction_ledger.domain.proof.checkpoints import Checkpoint
from compaction_ledger.domain.proof.notes import sign_note
from compaction_ledger.domain.proof.ports import Node
from compaction_ledger.infrastructure.keys.file_keyring import FileKeyring
from compaction_ledger.infrastructure.keys.memory import MemoryWrappedKeys
from compaction_ledger.infrastructure.keys.ring import KeyRing
from compaction_ledger.usecases.exporting import Selection, subject_named


@pytest.fixture
def keeper(backend: Backend, parts: Parts, tmp_path: Path) -> Keeper:
    """A log in a store of each kind, with a keyring in a file, and the tree that the store keeps."""
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    ring = KeyRing(lambda: FileKeyring.open(folder, create=True), MemoryWrappedKeys())
    made = Keeper(sealed(backend.recorder()), ring, parts.tree)
    made.summarize("a")
    made.sign()
    made.summarize("b", plain=True)
    made.summarize("gone", 1)
    made.sign()
    made.erase("gone")
    made.sign()
    return made


def test_round_trip(keeper: Keeper) -> None:
    whole = check(zipped(keeper.export()), [keeper.key], [str(keeper.witness.verifier_key)])
    payloads = whole.payloads
    assert (payloads.opened, payloads.plain, payloads.erased) == (11, 11 + 2, 6)
    assert whole.manifest.checkpoints == [11, 28]
    for name in ("a", "b"):
        for envelopes in (False, True):
            selection = Selection(keeper.subject(name), envelopes=envelopes)
            one = check(zipped(keeper.export(selection)), [keeper.key])
            assert one.is_complete is envelopes
            assert one.manifest.events == 11
            assert one.manifest.conversation == {"scope": SCOPE, "id": name}


@pytest.mark.slow
def test_a_log_of_more_than_one_batch(keeper: Keeper) -> None:
    keeper.summarize("long", 130)
    keeper.sign()
    whole = check(zipped(keeper.export()), [keeper.key])
    assert whole.checkpoint.size == 30 + 651
    one = check(zipped(keeper.export(Selection(keeper.subject("long")))), [keeper.key])
    assert one.manifest.events == 651


@pytest.mark.slow
def test_damaged_hashes_of_the_tree_are_no_damage(keeper: Keeper, parts: Parts) -> None:
    """K1: what is kept over the leaves only saves work. The leaves say what the log is."""
    keeper.summarize("long", 130)
    keeper.sign()
    right = keeper.export(Selection(keeper.subject("long")))
    parts.tree.keep([Node(8, 0, bytes(32)), Node(8, 1, bytes(32))])
    assert keeper.export(Selection(keeper.subject("long"))) == right
    assert check(zipped(keeper.export()), [keeper.key]).manifest.checkpoints == [11, 28, 30]


def _forms(secret: bytes) -> Iterator[bytes]:
    """How a secret of 32 bytes could stand somewhere: as it is, in hexadecimal, in base64 at each offset."""
    yield secret
    yield secret.hex().encode()
    for offset in range(3):
        yield base64.b64encode(bytes(offset) + secret)[4 if offset else 0 : -4]


def test_no_secret_is_in_a_bundle(keeper: Keeper, tmp_path: Path) -> None:
    """The keyring's key, data keys, the signer's key: neither in the file nor in what base64 hides (S4)."""
    keyring = "".join(path.read_text() for path in (tmp_path / "keys").iterdir() if path.is_file())
    keys = [base64.b64decode(found) for found in re.findall(r'"key": ?"([^"]{44})"', keyring)]
    data_keys = list(keeper.ring._secrets.values())
    secrets = [*keys, *data_keys, keeper.private.private_bytes_raw()]
    assert len(keys) == 1
    assert len(data_keys) >= 2
    members = keeper.export()
    data = zipped(members)
    inside = b"".join(
        base64.b64decode(event[name])
        for event in lines_of(members["events.jsonl"])
        for name in ("envelope", "payload", "opening")
        if event[name] is not None
    )
    for secret in secrets:
        for form in _forms(secret):
            assert form not in data
            assert form not in inside
    openings = {e["opening"] for e in lines_of(members["events.jsonl"])} - {None}
    assert len(openings) == 11  # each opens one event


def test_without_openings_no_plain_text_of_what_is_encrypted(keeper: Keeper) -> None:
    members = keeper.export(Selection(keeper.subject("a"), openings=False))
    for event in lines_of(members["events.jsonl"]):
        assert event["opening"] is None
        assert b"Fund" not in base64.b64decode(event["payload"])


def test_another_checkpoint_is_refused(keeper: Keeper) -> None:
    size = keeper.recorder.head()[0]
    for checkpoint, why in (
        (Checkpoint("compaction-ledger/" + "0" * 32, 11, bytes(32)), "this log is"),
        (Checkpoint(keeper.origin, size + 1, bytes(32)), "the log has 30"),
        (Checkpoint(keeper.origin, 11, bytes(32)), "not those that were signed"),
    ):
        note = sign_note(checkpoint.encode(), [keeper.signer]).encode()
        written = Written()
        with pytest.raises(InvalidProof, match=why):
            keeper.export_to(written, checkpoint=Published(checkpoint, note))
        assert not written.members


def test_a_published_checkpoint_of_another_history_is_not_passed_over(keeper: Keeper) -> None:
    """A log that was rewritten behind a signed head cannot be exported as if nothing had been (K1)."""
    wrong = Checkpoint(keeper.origin, 7, bytes(32))
    note = sign_note(wrong.encode(), [keeper.signer]).encode()
    keeper.published.insert(0, Published(wrong, note))
    with pytest.raises(InvalidProof, match="a checkpoint of size 7 was published that is not of"):
        keeper.export()


def test_a_missing_key_is_an_error_and_no_erasure(keeper: Keeper) -> None:
    keeper.ring = KeyRing(keeper.ring._make_provider, MemoryWrappedKeys())  # S3
    with pytest.raises(KeyMissing):
        keeper.export()
    assert keeper.export(Selection(openings=False))["events.jsonl"]


def test_an_erasure_behind_the_checkpoint_needs_a_new_one(keeper: Keeper) -> None:
    keeper.erase("a")
    with pytest.raises(InvalidSetting, match="erased after the checkpoint"):
        keeper.export()
    keeper.sign()
    assert check(zipped(keeper.export()), [keeper.key]).payloads.erased == 6 + 11


def test_an_erased_conversation_has_no_name(keeper: Keeper) -> None:
    source = keeper.source()
    assert subject_named(source, SCOPE, "a") == keeper.subject("a")
    with pytest.raises(UnknownConversation, match="by its reference"):
        subject_named(source, SCOPE, "gone")
    with pytest.raises(UnknownConversation, match="no event of"):
        keeper.export(Selection("0" * 32))


def test_a_damaged_log_is_not_exported(keeper: Keeper, backend: Backend) -> None:
    class Damaged:
        """The recorder, with one payload changed."""

        def __getattr__(self, name: str) -> object:
            return getattr(keeper.recorder, name)

        def rows(self, start: int, limit: int, stop: int | None = None) -> list[object]:
            rows = keeper.recorder.rows(start, limit, stop)
            return [row._replace(payload=b"{}") if row.idx == 3 else row for row in rows]

    healthy = keeper.source()
    healthy._sealed = Damaged()  # type: ignore[assignment] # it is one, as far as is asked
    with pytest.raises(DamagedLog, match="index 3: the payload is not the one"):
        keeper.export_to(Written(), source=healthy)


def test_a_hole_is_damage(keeper: Keeper) -> None:
    class Holed:
        """The recorder, with one row missing."""

        def __getattr__(self, name: str) -> object:
            return getattr(keeper.recorder, name)

        def rows(self, start: int, limit: int, stop: int | None = None) -> list[object]:
            return [row for row in keeper.recorder.rows(start, limit, stop) if row.idx != 3]

        def rows_at(self, indices: list[int]) -> list[object]:
            return [row for row in keeper.recorder.rows_at(indices) if row.idx != 3]

    source = keeper.source()
    source._sealed = Holed()  # type: ignore[assignment] # as above
    with pytest.raises(DamagedLog, match="index 3: an event is missing"):
        keeper.export_to(Written(), source=source)
    with pytest.raises(DamagedLog, match="index 3: an event is missing"):
        source.events_at([2, 3], openings=False)


def test_the_policy_is_told(keeper: Keeper) -> None:
    policy = json.loads(keeper.export()["policy.json"])
    assert policy["window"] == {"minimum_pairs": 30, "range_pairs": 10, "keep_newest": 20}
    assert [(one["version"], one["verdict"]) for one in policy["prompts"]] == [
        (1, "mixed_input"),
        (2, "projectable"),
        (3, "projectable"),
    ]
