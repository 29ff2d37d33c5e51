#!/usr/bin/env python3
"""Write the JSON Schemas of the command line, and the reference page with their tables.

    python docs/schemas/make_schemas.py

A test compares what is committed with what this would write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compaction_ledger.cli.documents.schemas import FILES, schemas

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "reference" / "json-output.md"

INTRODUCTION = """\
# JSON output

Made by `docs/schemas/make_schemas.py` from the models in `compaction_ledger.cli.documents`; do not
edit.

With `--json`, a command prints exactly one JSON document on stdout, in UTF-8; `work` prints many,
each on a line of its own. What goes wrong is told by the [error](#error) document in its place, and by
the exit code ([cli.md](cli.md)). Each document has a JSON Schema in [`docs/schemas`](../schemas). All
members are always there; `null` says that there is nothing to tell.

Times are ISO 8601 in UTC with microseconds, such as `2026-03-01T12:00:00.000000Z`. Hashes and
identities are SHA-256 in lower-case hexadecimal. Pair numbers begin at 0 and ranges include both ends.
An `index` is a place in the log, from 0.

Stability: within a major version of this package no member is removed or changes its meaning, and new
members may be added. The members of `fact` in `log` follow the event's name and schema version instead.
"""


def files() -> dict[Path, str]:
    """What this script writes, by path."""
    made = schemas()
    written = {
        HERE / f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in made.items()
    }
    return {**written, PAGE: page(made)}


def page(made: dict[str, dict[str, Any]]) -> str:
    """The reference page."""
    blocks = [INTRODUCTION]
    parts: dict[str, Any] = {}
    for name, schema in made.items():
        parts |= schema.get("$defs", {})
        title = f"{name} (read by `import-summary`)" if name in FILES else name
        blocks.append("\n".join(section(2, title, name, schema)))
    blocks.append("## Parts\n\nWhat the documents above are made of.\n")
    blocks += ["\n".join(section(3, name, None, parts[name])) for name in sorted(parts)]
    return "\n".join(blocks)


def section(level: int, title: str, file: str | None, schema: dict[str, Any]) -> Iterator[str]:
    """One document or part, with a table of its members."""
    yield f"{'#' * level} {title}\n"
    text = " ".join(schema.get("description", "").replace("``", "`").split())
    _, _, rest = text.partition("`. ") if text.startswith("`compaction-ledger ") else ("", "", text)
    link = f"Schema: [{file}.schema.json](../schemas/{file}.schema.json)." if file else ""
    yield " ".join(filter(None, (rest, link))) + "\n"
    yield "| member | type | |"
    yield "|---|---|---|"
    for name, member in schema["properties"].items():
        yield f"| `{name}` | {kind_of(member)} | {member.get('description', '')} |"
    yield ""


def kind_of(member: dict[str, Any]) -> str:
    """A member's type, for people."""
    if "$ref" in member:
        name = member["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in member:
        return " or ".join(kind_of(one) for one in member["anyOf"])
    if "enum" in member:
        return ", ".join(f"`{value}`" for value in member["enum"])
    if "const" in member:
        return f"`{member['const']}`"
    if member.get("type") == "array":
        return f"list of {kind_of(member['items'])}"
    values = member.get("additionalProperties")
    if member.get("type") == "object":
        return f"object of {kind_of(values)}" if isinstance(values, dict) and values else "object"
    return str(member.get("type", "any"))


def main() -> None:
    """Write every file."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
