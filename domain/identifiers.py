"""Ids and scopes (E4), and what well-formed text is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compaction_ledger.domain.errors import InvalidId

MAX_ID_CHARACTERS = 512

# General category Cc (C0, DEL, C1) and surrogates.
_FORBIDDEN_IN_IDS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PRINTABLE_ASCII = bytes(range(0x20, 0x7F))
_SURROGATE = re.compile("[\ud800-\udfff]")
_HASH = re.compile("[0-9a-f]{64}")

# The characters with the Unicode property White_Space (PropList.txt). `str.strip()` without an
# argument also strips U+001C..U+001F, which do not have it.
WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)


def check_id(value: object, what: str) -> str:
    """Return ``value`` if it is a valid id (E4); raise :class:`InvalidId` naming ``what`` otherwise."""
    if not isinstance(value, str):
        raise InvalidId(f"must be text, not {type(value).__name__}", place=what)
    if not value:
        raise InvalidId("must not be empty", place=what)
    if len(value) > MAX_ID_CHARACTERS:
        raise InvalidId(
            f"has {len(value)} characters, at most {MAX_ID_CHARACTERS} are allowed", place=what
        )
    found = _FORBIDDEN_IN_IDS.search(value)
    if found:
        raise InvalidId(
            f"has a forbidden character U+{ord(found.group()):04X} at position {found.start()}",
            place=what,
        )
    return value


def check_ids(values: Iterable[str], what: str) -> None:
    """As :func:`check_id` for many at once; the place gets the position in the sequence."""
    ids = list(values)
    if not ids or _all_valid(ids):
        return
    for position, value in enumerate(ids):
        check_id(value, f"{what} {position}")


def _all_valid(ids: list[str]) -> bool:
    try:
        longest = max(map(len, ids))
        together = "".join(ids)
    except TypeError:  # something that is not text: found and named one by one
        return False
    if not all(ids) or longest > MAX_ID_CHARACTERS:
        return False
    if together.isascii():  # several times faster than the search
        return not together.encode().translate(None, delete=_PRINTABLE_ASCII)
    return not _FORBIDDEN_IN_IDS.search(together)


def is_blank(text: str) -> bool:
    """Whether nothing is left after trimming Unicode white space (E1)."""
    # str.isspace() knows a few characters more, and is several times faster to say no.
    return not text or (text.isspace() and not text.strip(WHITE_SPACE))


def is_well_formed(text: str) -> bool:
    """Whether ``text`` has no lone surrogate, that is, can be encoded as UTF-8."""
    return not _SURROGATE.search(text)


def replace_surrogates(text: str) -> tuple[str, int]:
    """``text`` with each lone surrogate as U+FFFD, and how many there were. For rendering only (E6)."""
    return _SURROGATE.subn("\ufffd", text)


def is_hash(text: str) -> bool:
    """Whether ``text`` is a SHA-256 digest in lower-case hexadecimal."""
    return _HASH.fullmatch(text) is not None
