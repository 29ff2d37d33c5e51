"""A chunk's source: its originals as the store keeps them, checked against the job (B3, T8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from compaction_ledger.domain.canonical import encode_ordered
from compaction_ledger.domain.messages.interface import Wire
from compaction_ledger.domain.window.blocks import ChunkSummary, chunk_block
from compaction_ledger.domain.window.chunks import ChunkJob, chunk_source_hash
from compaction_ledger.domain.window.originals import Original
from compaction_ledger.domain.window.structure import parse_structure
from compaction_ledger.domain.window.summarization import ChunkLine, ChunkRequest
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.holding import chunk_now, sorted_record
from compaction_ledger.usecases.window.kept import checked
from compaction_ledger.usecases.window.reading import Externalized, encode_all, externalized

READABLE = frozenset({"text", "call", "result"})


@dataclass(frozen=True, slots=True)
class ChunkSource:
    """What the summarizer is given, and what its summary has to be smaller than (T12): bytes of JSON as
    they would be sent.
    """

    request: ChunkRequest
    replaced_bytes: int
    rendered_bytes: Callable[[str], int] = field(repr=False)


def read_source(context: WindowContext, job: ChunkJob) -> ChunkSource | None:
    """The originals of a chunk; ``None`` where they are not those of the job any more (A6).

    Large results are in it as the model has seen them: stubs (T14). Raises :class:`DamagedOriginal`.
    """
    originals = context.originals.read(context.key, job.first, job.last + 1)
    if len(originals) != job.last + 1 - job.first:
        return None
    messages = [checked(original, context.shape, context.key.run) for original in originals]
    source = chunk_source_hash(
        context.key, context.shape.name, job.first, [original.digest for original in originals]
    )
    if source != job.source_hash:
        return None
    entries = context.shape.read(messages, job.first)
    given = externalized(  # whole exchanges: the calls of all results are here (T4)
        context.shape, messages, entries, encode_all(messages), context.budget.externalize_over, {}
    )
    request = context.registry.request(
        job.prompt, tuple(_lines(context, originals, given.messages))
    )
    replaced = _replaced_bytes(context, job, originals, given)
    return ChunkSource(request, replaced, lambda text: _rendered(job, text))


def _lines(
    context: WindowContext, originals: Sequence[Original], sent: Sequence[Wire]
) -> Iterator[ChunkLine]:
    for original, message in zip(originals, sent, strict=True):
        for part in context.shape.parts(message):
            role = part.role or original.role
            if part.kind in READABLE and role != "system":  # instructions stay as they are
                yield ChunkLine(original.id, role, part.kind, part.name, part.text)


def _replaced_bytes(
    context: WindowContext,
    job: ChunkJob,
    originals: Sequence[Original],
    given: Externalized,
) -> int:
    """The bytes that a summary would stand for (T12): of the blocks that it replaces, without their pins,
    and of the messages that are in none.

    A replaced chunk that may not be used any more stands in no request, nor does any behind it.
    """
    total, start = 0, job.first
    if job.replaces:
        record = sorted_record(context.log.history(context.key))
        digests = context.originals.digests(context.key)
        for identity in job.replaces:
            chunk = chunk_now(context, record, identity, digests)
            if isinstance(chunk, str):
                break
            total, start = total + _block_bytes(chunk), chunk.last + 1
    behind = slice(start - job.first, None)
    each = zip(originals[behind], given.messages[behind], given.encoded[behind], strict=True)
    return total + sum(
        len(wire) - _staying(context, original, message) for original, message, wire in each
    )


def _staying(context: WindowContext, original: Original, message: Wire) -> int:
    """The bytes of a message that stay in a request whatever becomes of it: its instructions."""
    if original.role == "system":
        return len(encode_ordered(message))
    return sum(
        len(encode_ordered(part.text))
        for part in context.shape.parts(message)
        if part.role == "system"
    )


def _rendered(job: ChunkJob, text: str) -> int:
    """The bytes of the block that ``text`` would become, without pins."""
    return _block_bytes(
        ChunkSummary(
            first=job.first,
            last=job.last,
            identity=job.identity,
            source_hash=job.source_hash,
            model=job.model,
            prompt=job.prompt,
            recorded_at=0,
            index=0,
            lines=parse_structure(text).lines(),
        )
    )


def _block_bytes(chunk: ChunkSummary) -> int:
    return len(encode_ordered(chunk_block(chunk, ())))
