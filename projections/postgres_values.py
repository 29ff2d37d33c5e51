"""Values of rows as PostgreSQL takes them: text without what it cannot hold, and columns as arrays.

Its text holds neither NUL nor lone surrogates (E6). Both are stored as an escape character, which no id
contains (E4), and four hexadecimal digits; so is the escape character itself, so that nothing is mistaken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args, get_type_hints

from compaction_ledger.projections.records import RECORDS, Record, columns

Values = tuple[Any, ...]

_ESCAPE = "\x1b"
_FORBIDDEN = re.compile("[\x00\x1b\ud800-\udfff]")
_ESCAPED = re.compile("\x1b([0-9a-f]{4})")
_SEPARATOR = "\x1f"


def _types_of(kind: type[Record]) -> tuple[str, ...]:
    hints = get_type_hints(kind)
    found = (get_args(hints[name]) or (hints[name],) for name in columns(kind))
    return tuple("int8" if int in allowed else "text" for allowed in found)


TYPES: dict[type[Record], tuple[str, ...]] = {kind: _types_of(kind) for kind in RECORDS}
"""The types of each table's columns, in order."""


def escaped(text: str) -> str:
    """``text`` as it is stored."""
    if _is_plain(text):
        return text
    return _FORBIDDEN.sub(lambda match: f"{_ESCAPE}{ord(match[0]):04x}", text)


def unescaped(text: str) -> str:
    """The text that is stored as ``text``."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if _ESCAPE in text else text


def escaped_column(texts: Sequence[str]) -> Sequence[str]:
    """A column of text as it is stored. Nearly always this very one."""
    return texts if _is_plain("".join(texts)) else list(map(escaped, texts))


def escaped_rows(kind: type[Record], rows: Sequence[Values]) -> Sequence[Values]:
    """Rows as they are stored. Nearly always these very rows."""
    return rows if _is_plain(_texts(kind, rows)) else [_each(escaped, row) for row in rows]


def unescaped_rows(kind: type[Record], rows: Sequence[Values]) -> Sequence[Values]:
    """The rows that are stored as ``rows``. Nearly always these very rows."""
    if _ESCAPE not in _texts(kind, rows):
        return rows
    return [_each(unescaped, row) for row in rows]


def _is_plain(text: str) -> bool:
    if "\0" in text or _ESCAPE in text:
        return False
    if text.isascii():
        return True
    try:  # many times faster than to search for surrogates
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(kind: type[Record], rows: Sequence[Values]) -> str:
    """All text in these rows, in one string."""
    if not rows:
        return ""
    by_column = zip(TYPES[kind], zip(*rows, strict=True), strict=True)
    return "".join("".join(filter(None, column)) for type_, column in by_column if type_ == "text")


def _each(change: Any, row: Values) -> Values:
    return tuple(change(value) if type(value) is str else value for value in row)


# --- arrays -----------------------------------------------------------------------------------------


def array(values: Iterable[Any], type_: str) -> str:
    """A column of values as the text of an array, which is read faster than each value by itself."""
    if type_ == "int8":
        return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"
    column = list(values)
    if None in column:
        return "{" + ",".join("NULL" if v is None else f'"{_quoted(v)}"' for v in column) + "}"
    joined = _SEPARATOR.join(column)
    if joined.count(_SEPARATOR) != len(column) - 1:  # it stands in one of them
        return "{" + ",".join(f'"{_quoted(v)}"' for v in column) + "}"
    return '{"' + _quoted(joined).replace(_SEPARATOR, '","') + '"}' if column else "{}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
