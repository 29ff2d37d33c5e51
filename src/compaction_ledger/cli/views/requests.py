"""How `assemble` looks."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from compaction_ledger.cli.documents.requests import (
    AssembleDocument,
    ManifestDocument,
    Pairs,
    SummaryRejected,
)
from compaction_ledger.cli.plain import plural, size, visible
from compaction_ledger.cli.screen import facts, table

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MODES = {
    "full": "the whole conversation, with summaries for the replies of older ranges",
    "newest_originals": "it did not fit: the newest original pairs that fit",
    "newest_mixed": "it did not fit: the newest part that fits, with summaries",
}
DISPOSITIONS = {
    "verbatim": "both sides, word for word",
    "summarized": "user word for word, replies summarized",
    "left_out": "NOT SEEN by the model",
}
REJECTIONS = {
    "range_missing": "the conversation has no such range any more",
    "unknown_version": "its prompt version is unknown",
    "mixed_input": "its model was given the user's texts too",
    "not_projectable": "its prompt version is not to be used",
    "source_changed": "the messages it came from have changed",
    "identity_mismatch": "it is not what it claims to be",
    "damaged": "its text in the log cannot be read",
    "superseded": "a newer one is used",
    "not_smaller": "it is not smaller than the replies",
    "over_budget": "valid, but the request had no room for it",
}


def show_assemble(console: Console, document: AssembleDocument, *, messages: bool) -> None:
    """The manifest, and every message if asked for."""
    show_manifest(console, document.manifest)
    if document.file is not None:
        console.print(f"\nThe request's bytes are in {visible(document.file)}.", soft_wrap=True)
    if document.delivery is not None:
        console.print(f"\nRecorded as sent, at index {document.delivery.index} of the log.")
    if messages:
        _show_messages(console, document.request)


def show_manifest(console: Console, manifest: ManifestDocument) -> None:
    """What the model will see, and what it will not."""
    console.print(
        facts(
            (
                ("Request", f"{manifest.conversation}, as {manifest.shape}"),
                ("Holds", MODES[manifest.mode]),
                ("Size", f"{size(manifest.bytes_used)} of {size(manifest.bytes_allowed)} allowed"),
                ("Digest", manifest.request_digest),
            )
        )
    )
    console.print()
    rows = (
        (f"{group.from_pair}-{group.to_pair}", count_of(group), _what(group))
        for group in manifest.pairs
    )
    console.print(table("Pairs", "Count", "What the model sees", rows=rows, right=["Count"]))
    if manifest.summaries:
        console.print()
        used = (
            (
                f"{one.from_pair}-{one.to_pair}",
                one.index,
                f"{one.model}, {one.prompt}",
                one.identity,
            )
            for one in manifest.summaries
        )
        console.print(
            table("Summary of", "Index", "Made by", "Identity", rows=used, right=["Index"])
        )
    if manifest.rejected:
        console.print()
        show_rejected(console, manifest.rejected)
    if manifest.lines_left_out:
        console.print(
            f"\n{plural(len(manifest.lines_left_out), 'line')} of the conversation"
            " in no pair and never sent; see plan -v."
        )
    for message, count in manifest.replaced.items():
        console.print(
            f"\n{visible(message)}: {plural(count, 'lone surrogate')} replaced by U+FFFD."
        )


def show_rejected(console: Console, rejected: list[SummaryRejected]) -> None:
    """The summaries that were not used, and why."""
    rows = (
        (f"{one.from_pair}-{one.to_pair}", one.reason, REJECTIONS[one.reason], one.identity[:16])
        for one in rejected
    )
    console.print(table("Not used", "Reason", "That is", "Identity", rows=rows))


def count_of(group: Pairs) -> int:
    """How many pairs a group holds."""
    return group.to_pair - group.from_pair + 1


def _what(group: Pairs) -> str:
    what = DISPOSITIONS[group.disposition]
    return what if group.reason is None else f"{what} ({group.reason})"


def _show_messages(console: Console, request: dict[str, Any]) -> None:
    parts = [("system", request["system"])] if "system" in request else []
    parts += [
        (message.get("role") or message.get("kind"), message) for message in request["messages"]
    ]
    for who, message in parts:
        console.print()
        console.print(Text(str(who), style="bold"))
        console.print(Padding(Text(visible(_text(message))), (0, 0, 0, 2)))


def _text(message: Json) -> str:
    """The text of a message in any of the shapes; its JSON where there is more to it."""
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        return "\n\n".join(map(_text, message))
    if isinstance(message, dict):
        for member in ("content", "parts", "text"):
            if member in message:
                return _text(message[member])
    return json.dumps(message, ensure_ascii=False)
