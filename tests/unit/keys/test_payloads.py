"""How payloads are encrypted (S1): each with a key of its own, bound to its place, and to one text."""

from __future__ import annotations

import secrets

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from compaction_ledger.infrastructure.event_store.envelope import key_of
from compaction_ledger.infrastructure.keys import payloads

SECRET = bytes(range(32))
KEY = "ab" * 16
ABOUT = payloads.identity(KEY, "5" * 32, 3, "RangeCompleted@1")


def test_the_identity_is_what_the_envelope_says_before_the_event_has_a_place() -> None:
    assert ABOUT == (
        b'{"event":"RangeCompleted","format":1,"key":"abababababababababababababababab","schema":1,'
        b'"stream":"55555555555555555555555555555555","version":3}'
    )


@given(plain=st.binary(max_size=300))
def test_what_is_encrypted_comes_back(plain: bytes) -> None:
    stored = payloads.encrypt(SECRET, KEY, ABOUT, plain)
    assert stored[:1] == b"\x01"
    assert key_of(stored) == KEY
    assert payloads.decrypt(SECRET, ABOUT, stored) == plain


@given(plain=st.binary(min_size=1, max_size=40), data=st.data())
def test_any_byte_changed_does_not_open(plain: bytes, data: st.DataObject) -> None:
    stored = bytearray(payloads.encrypt(SECRET, KEY, ABOUT, plain))
    place = data.draw(st.integers(17, len(stored) - 1))  # what stands before it names the key
    stored[place] ^= data.draw(st.integers(1, 255))
    assert payloads.decrypt(SECRET, ABOUT, bytes(stored)) is None


@given(length=st.integers(0, 76))
def test_what_is_cut_off_does_not_open(length: int) -> None:
    stored = payloads.encrypt(SECRET, KEY, ABOUT, b"")
    assert payloads.decrypt(SECRET, ABOUT, stored[:length]) is None


def test_no_payload_opens_in_anothers_place_or_under_anothers_key() -> None:
    stored = payloads.encrypt(SECRET, KEY, ABOUT, b"{}")
    for other in (
        payloads.identity(KEY, "6" * 32, 3, "RangeCompleted@1"),
        payloads.identity(KEY, "5" * 32, 4, "RangeCompleted@1"),
        payloads.identity(KEY, "5" * 32, 3, "RangeClaimed@1"),
        payloads.identity(KEY, "5" * 32, 3, "RangeCompleted@2"),
        payloads.identity("cd" * 16, "5" * 32, 3, "RangeCompleted@1"),
    ):
        assert payloads.decrypt(SECRET, other, stored) is None
    assert payloads.decrypt(bytes(32), ABOUT, stored) is None


def test_neither_nonces_nor_keys_of_events_repeat() -> None:
    stored = [payloads.encrypt(SECRET, KEY, ABOUT, b"the same") for _ in range(10_000)]
    assert len({one[17:29] for one in stored}) == len(stored)  # nonces
    assert len({one[29:61] for one in stored}) == len(stored)  # commitments, and so the keys
    assert len({one[61:] for one in stored}) == len(stored)


def test_an_opening_opens_one_event_and_no_other() -> None:
    first, second = (payloads.encrypt(SECRET, KEY, ABOUT, text) for text in (b"one", b"two"))
    opening = payloads.opening(SECRET, ABOUT, first)
    assert opening is not None
    assert opening != SECRET
    assert payloads.open_with(opening, ABOUT, first) == b"one"
    assert payloads.open_with(opening, ABOUT, second) is None
    assert payloads.opening(bytes(32), ABOUT, first) is None


def test_a_ciphertext_that_two_keys_open_is_refused() -> None:
    """AES-GCM alone commits to no key; the stored commitment does."""
    stored = payloads.encrypt(SECRET, KEY, ABOUT, b"what was said")
    nonce = stored[17:29]
    other = secrets.token_bytes(32)
    forged = stored[:61] + AESGCM(other).encrypt(nonce, b"another text ", ABOUT)
    assert payloads.open_with(other, ABOUT, forged) == b"another text "
    assert payloads.decrypt(SECRET, ABOUT, forged) is None
