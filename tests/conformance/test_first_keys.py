"""A new ledger that several processes begin to use at once: who has keys, and what is encrypted (S1, K1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
from backends import PostgresBackend, SQLiteBackend
from histories import Worker, fill, present_job
from interleaving import just_after, just_before
from key_stores import database_of_keys
from pydantic import SecretStr

from compaction_ledger import Ledger, erasure_parts, signing_parts
from compaction_ledger.domain.errors import DamagedLog, KeyMissing
from compaction_ledger.infrastructure.proof.keys import SignerKeys
from compaction_ledger.settings import Settings

Open = Callable[..., Any]
"""A session, with encryption or without: the ledger, of whose parts a test may change what it likes."""


@pytest.fixture(params=["postgres", "sqlite", "keys in a database"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    store = PostgresBackend(tmp_path) if request.param == "postgres" else SQLiteBackend(tmp_path)
    in_database = request.param == "keys in a database"
    data_keys = SecretStr(database_of_keys()) if in_database else None
    with ExitStack() as stack:
        stack.callback(store.close)

        def open_ledger(encryption: Literal["on", "off"] = "on") -> Any:
            settings = Settings(
                encryption=encryption, keys_folder=tmp_path / "keys", data_keys=data_keys
            )
            place = store.url if isinstance(store, PostgresBackend) else store.path
            return stack.enter_context(Ledger.open(place, settings=settings))

        yield open_ledger


def begin(ledger: Any, conversation: str) -> Callable[[], object]:
    """What claims a range of the conversation, whose lines are there then."""
    parts = ledger._parts
    fill(parts, 40, conversation)
    return Worker(parts, present_job(parts, 0, conversation=conversation)).claim


def is_sound(ledger: Any, events: int) -> bool:
    return ledger.verify().findings == () and len(list(ledger.events())) == events


# --- whose keys are missing ---


def test_keys_that_another_process_made_just_now_are_not_missing(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:  # S1
    one, other = opened(), opened()
    first, second = begin(one, "c-1"), begin(other, "c-2")
    just_after(monkeypatch, other._parts.ring._store, "count", first)
    second()
    assert is_sound(opened(), 2)


def test_a_keyring_that_another_process_made_just_now_is_not_missing(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:  # S1
    one, other = opened(), opened()
    first, second = begin(one, "c-1"), begin(other, "c-2")
    making: Any = erasure_parts
    named = making.provider_named

    def provider_named(*arguments: Any, **how: Any) -> Any:
        try:
            return named(*arguments, **how)
        except KeyMissing:
            monkeypatch.setattr(making, "provider_named", named)
            first()
            raise

    monkeypatch.setattr(making, "provider_named", provider_named)
    second()
    assert is_sound(opened(), 2)


def test_a_keyring_that_is_missing_is_not_made_anew(opened: Open, tmp_path: Path) -> None:  # S1
    begin(opened(), "c-1")()
    (tmp_path / "keys" / "keyring.json").unlink()
    with pytest.raises(KeyMissing):
        begin(opened(), "c-2")()
    assert not (tmp_path / "keys" / "keyring.json").exists()


def test_a_signer_s_key_that_another_process_made_just_now_is_not_missing(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:  # K1
    one, other = opened(), opened()
    begin(one, "c-1")()
    real = SignerKeys.active_keys

    def active_keys(keys: SignerKeys) -> Any:
        found = real(keys)
        monkeypatch.setattr(SignerKeys, "active_keys", real)
        signing_parts.log_signer(one._parts).sign()
        return found

    monkeypatch.setattr(SignerKeys, "active_keys", active_keys)
    signing_parts.log_signer(other._parts).sign()
    assert opened().verify().findings == ()


# --- what is encrypted ---


def test_who_looked_before_all_was_encrypted_says_that_it_is_not_any_more(opened: Open) -> None:
    encrypting, plain = opened("on"), opened("off")
    assert plain.verify().findings == ()  # which asks whether it may be plain
    first, second = begin(encrypting, "c-1"), begin(plain, "c-2")
    first()
    second()
    assert is_sound(opened(), 2)


@pytest.mark.parametrize("moment", ["is_new", "add", "find", "replace"])
@pytest.mark.parametrize("order", [just_before, just_after])
def test_a_log_is_not_said_to_be_encrypted_beside_what_is_not(
    opened: Open, monkeypatch: pytest.MonkeyPatch, moment: str, order: Callable[..., None]
) -> None:
    """One process begins a new log, and another one puts a plain event there at any moment of it."""
    encrypting, plain = opened("on"), opened("off")
    first, second = begin(encrypting, "c-1"), begin(plain, "c-2")
    ring = encrypting._parts.ring
    owner, name = (ring, "_is_new") if moment == "is_new" else (ring._store, moment)
    order(monkeypatch, owner, name, second)
    first()
    assert is_sound(opened(), 2)


@pytest.mark.parametrize("name", ["fresh", "allow_plain"])
@pytest.mark.parametrize("order", [just_before, just_after])
def test_a_plain_event_is_not_put_into_what_was_said_to_be_encrypted_meanwhile(
    opened: Open, monkeypatch: pytest.MonkeyPatch, name: str, order: Callable[..., None]
) -> None:
    encrypting, plain = opened("on"), opened("off")
    first, second = begin(encrypting, "c-1"), begin(plain, "c-2")
    order(monkeypatch, plain._parts.ring, name, first)
    second()
    assert is_sound(opened(), 2)


def test_what_is_encrypted_from_the_first_event_on_is_said_to_be(opened: Open) -> None:
    ledger, earlier = opened(), opened()
    assert earlier.verify().findings == ()
    begin(ledger, "c-1")()
    begin(opened(), "c-2")()
    for one in (ledger, earlier, opened()):
        assert not one._parts.ring.may_be_plain()
    with pytest.raises(DamagedLog, match="not encrypted"):
        earlier._parts.ring.decrypt("5" * 32, 1, "RangeClaimed@1", b"{}")


def test_a_ledger_that_is_plain_has_no_keys(opened: Open, tmp_path: Path) -> None:
    ledger = opened("off")
    begin(ledger, "c-1")()
    begin(ledger, "c-2")()
    assert is_sound(ledger, 2)
    assert not (tmp_path / "keys").exists()
    assert ledger._parts.ring.may_be_plain()
    assert ledger._parts.ring._store.find(ledger._parts.ring._mark("").id) is None
