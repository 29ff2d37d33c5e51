"""What `window search` prints."""

from __future__ import annotations

from typing import Literal

from compaction_ledger.cli.documents.common import Count, Document, Time, moment_or_none
from compaction_ledger.domain.history import Found, Hit


class HitRecord(Document):
    """A place where it stands, with an exact quote (T15)."""

    source: Literal["run", "conversation"]
    """Whether it is a message of an agent's run, or a line of the conversation."""

    run: str | None
    """The run, of a message of one."""

    message: str
    """The message's id: `m` and its place in the run, or the line's own."""

    part: Count
    """Which part of the message it is."""

    role: Literal["system", "user", "assistant", "tool"]
    pair: int
    """The exchange of the run, or the index of the eligible pair, from 0; -1 where there is none."""

    at: Time | None
    """When it was recorded; lines of conversations have no time."""

    quote: str
    """The original's own text, nothing put in, left out or put differently."""

    start: Count
    """The first character of the quote in the part."""

    end: Count
    """The character behind it."""

    @classmethod
    def of(cls, hit: Hit) -> HitRecord:
        return cls(
            source=hit.source,
            run=hit.run,
            message=hit.message_id,
            part=hit.part,
            role=hit.role,
            pair=hit.pair,
            at=moment_or_none(hit.at),
            quote=hit.quote,
            start=hit.start,
            end=hit.end,
        )


class WindowSearchDocument(Document):
    """One page of what was found, the exact phrase first, then the newest."""

    scope: str
    conversation: str
    query: str
    hits: list[HitRecord]
    next_offset: Count | None
    """The `--offset` of the next page; null behind the last one."""

    unreadable: Count
    """At how many places the original is missing or is not what was kept."""

    cut_short: bool
    """Whether the search was given up, because too many places have the words and not as asked."""

    @classmethod
    def of(cls, scope: str, conversation: str, query: str, found: Found) -> WindowSearchDocument:
        return cls(
            scope=scope,
            conversation=conversation,
            query=query,
            hits=[HitRecord.of(hit) for hit in found.hits],
            next_offset=found.next_offset,
            unreadable=found.unreadable,
            cut_short=found.cut_short,
        )
