"""Golden files: what was stored once, in any format, is read for ever (A10).

Never change one. A new stored form gets new files (``make.py``), the old ones stay.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from copies import copy_ledger

from compaction_ledger import Ledger
from compaction_ledger.composition import past_read_models
from compaction_ledger.domain.errors import LedgerError
from compaction_ledger.domain.ports import ReadModelStore
from compaction_ledger.domain.prompts import DEFAULT_REGISTRY
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.window_stream import current_pins
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.envelope import leaf_hash, parse
from compaction_ledger.infrastructure.event_store.sealing import sealed_fields
from compaction_ledger.infrastructure.sqlite.formats import FORMAT

HERE = Path(__file__).resolve().parent
FORMATS = sorted(HERE.glob("format-*"))
WINDOW = WindowKey("tenant-1", "c-1", "run-1")
PAYLOADS = sorted(HERE.glob("format-*/events/*.payload.json"))
CURRENT_TOPICS = {f"{name}@{schema}" for name, schema in codec.STORED_NAMES.values()}


def topic_of(payload: Path) -> str:
    return payload.name.split(".", 1)[0]


def beside(payload: Path, suffix: str) -> bytes:
    return payload.with_name(payload.name.replace("payload.json", suffix)).read_bytes()


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.name.removesuffix(".payload.json"))
def test_a_stored_payload_is_read_for_ever(path: Path) -> None:
    topic, payload = topic_of(path), path.read_bytes()
    fact = codec.decode(topic, payload)
    assert type(fact).__name__ == topic.partition("@")[0]
    if topic in CURRENT_TOPICS:  # an older schema is read, and never written again
        assert codec.topic_of(fact) == topic
        assert codec.encode(fact) == payload


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.name.removesuffix(".payload.json"))
def test_its_envelope_and_leaf_are_checked_for_ever(path: Path) -> None:
    envelope, leaf = beside(path, "envelope.json"), bytes.fromhex(beside(path, "leaf").decode())
    sealed = parse(envelope)
    assert sealed is not None
    assert sealed.encode() == envelope
    assert leaf_hash(envelope) == hashlib.sha256(b"\x00" + envelope).digest() == leaf
    assert sealed.payload == hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"{sealed.event}@{sealed.schema}" == topic_of(path)
    row = (sealed.stream, sealed.version, topic_of(path), path.read_bytes(), envelope, leaf)
    assert int(sealed_fields(0, *row)[5]) == sealed.recorded


def test_every_stored_name_has_golden_files() -> None:
    missing = CURRENT_TOPICS - {topic_of(path) for path in PAYLOADS}
    assert missing == set(), "run tests/golden/make.py and commit the new files"


def test_the_present_format_has_its_folder() -> None:
    assert HERE / f"format-{FORMAT}" in FORMATS


def filled(read_models: ReadModelStore) -> object:
    """The rows of each table that has any: later layouts have tables of facts that the past did not know."""
    tables = {name: rows for name, rows in read_models.records().items() if rows}
    return json.loads(json.dumps(tables))


@pytest.mark.parametrize("folder", FORMATS, ids=lambda folder: folder.name)
def test_a_ledger_of_every_format_opens_verifies_and_projects(folder: Path, tmp_path: Path) -> None:
    path = copy_ledger(folder / "ledger.db", tmp_path)
    expected = json.loads((folder / "ledger.rows.json").read_text(encoding="utf-8"))
    with Ledger.open(path) as ledger:
        assert ledger.size() == expected["size"]
        assert ledger.verify().ok
        ledger.catch_up()  # rows of an older layout are built anew
        for _ in range(2):
            assert filled(ledger._parts.read_models) == expected["tables"]
            ledger.rebuild()
        fresh = past_read_models(DEFAULT_REGISTRY, ledger.size())
        fresh.catch_up(ledger._parts.context.log)
        assert filled(fresh) == expected["tables"]
        conversation = ledger.transcripts.conversation("tenant-1", "c-1")
        by_id = {message.id: message.text for message in conversation.messages}
        assert by_id["a70"].startswith("revised \ud800 Zinsen")
        assert "u71" not in by_id
        assert conversation.runs["run-72"].state == "failed"
        assert len(by_id) == 145
        manifest = ledger.assemble("c-1", scope="tenant-1", budget=10**6).manifest
        assert [used.from_pair for used in manifest.summaries] == [0, 10]


@pytest.mark.parametrize("folder", FORMATS[1:], ids=lambda folder: folder.name)
def test_the_window_of_a_ledger_is_read_for_ever(folder: Path, tmp_path: Path) -> None:
    path = copy_ledger(folder / "ledger.db", tmp_path)
    with Ledger.open(path) as ledger:
        state = ledger._parts.context.log.load_window(WINDOW)
        assert [(chunk.first, chunk.last) for chunk in state.chunks] == [(1, 9)]
        assert (len(state.replaced), len(state.open_jobs)) == (2, 1)
        assert [pin.pin_id for pin in current_pins(state)] == ["p2", "p3"]
        originals = ledger._parts.originals
        kept = originals.read(WINDOW)
        assert list(originals.digests(WINDOW)) == [original.digest for original in kept]
        assert (len(kept), originals.shape(WINDOW)) == (4, "openai-chat")


@pytest.mark.parametrize("folder", FORMATS, ids=lambda folder: folder.name)
def test_it_goes_on_being_written(folder: Path, tmp_path: Path) -> None:
    path = copy_ledger(folder / "ledger.db", tmp_path)
    with Ledger.open(path) as ledger:
        before = ledger.size()
        report = ledger.compact("c-1", scope="tenant-1")
        assert report.completed > 0
        assert ledger.size() > before
        assert ledger.verify().ok


@pytest.mark.slow
def test_the_script_overwrites_nothing() -> None:
    before = {path: path.read_bytes() for path in HERE.rglob("format-*/**/*") if path.is_file()}
    done = subprocess.run(
        [sys.executable, str(HERE / "make.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {
        path: path.read_bytes() for path in HERE.rglob("format-*/**/*") if path.is_file()
    } == before


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.name.removesuffix(".payload.json"))
def test_one_character_more_is_refused(path: Path) -> None:
    payload = path.read_bytes()
    for changed in (
        payload[:-1],
        payload + b"}",
        b'{"more":1,' + payload[1:],
        payload.replace(b'"', b"'"),
    ):
        with pytest.raises(LedgerError):
            codec.decode(topic_of(path), changed)
