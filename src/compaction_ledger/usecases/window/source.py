"""A chunk's source: its originals as the store keeps them, checked against the job (B3, T8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compaction_ledger.domain.messages.interface import Part, Wire
from compaction_ledger.domain.window.blocks import ChunkSummary, chunk_block
from compaction_ledger.domain.window.chunks import ChunkJob, chunk_source_hash
from compaction_ledger.domain.window.externalizing import large_result, result_digest, stub_text
from compaction_ledger.domain.window.originals import Original
from compaction_ledger.domain.window.structure import parse_structure
from compaction_ledger.domain.window.summarization import ChunkLine, ChunkRequest
from compaction_ledger.usecases.window.context import WindowContext
from compaction_ledger.usecases.window.kept import checked

READABLE = frozenset({"text", "call", "result"})


@dataclass(frozen=True, slots=True)
class ChunkSource:
    """What the summarizer is given, and what its summary has to be smaller than (T12)."""

    request: ChunkRequest
    replaced_bytes: int
    rendered_bytes: Callable[[str], int] = field(repr=False)


def read_source(context: WindowContext, job: ChunkJob) -> ChunkSource | None:
    """The originals of a chunk; ``None`` where they are not those of the job any more (A6).

    Raises :class:`DamagedOriginal`.
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
    lines = tuple(_lines(context, originals, messages))
    request = context.registry.request(job.prompt, lines)
    replaced = sum(len(original.wire) for original in originals if original.role != "system")
    return ChunkSource(request, replaced, lambda text: _rendered(job, text))


def _lines(
    context: WindowContext, originals: Sequence[Original], messages: Sequence[Wire]
) -> Iterator[ChunkLine]:
    entries = context.shape.read(messages, originals[0].position)
    names: dict[str, str] = {}  # whole exchanges: the calls of all results are here (T4)
    for original, message, entry in zip(originals, messages, entries, strict=True):
        for part in context.shape.parts(message):
            role = part.role or original.role
            if part.kind in READABLE and role != "system":  # instructions stay as they are
                text = _text(part, names, context.budget.externalize_over)
                yield ChunkLine(original.id, role, part.kind, part.name, text)
        names.update((call.id, call.name) for call in entry.calls)


def _text(part: Part, names: Mapping[str, str], over: int | None) -> str:
    """A part's text; of a result that is kept apart its stub, as the model has seen it (T14)."""
    content = None if over is None else large_result(part, names, over)
    if content is None:
        return part.text
    return stub_text(part.text, result_digest(content), len(content))


def _rendered(job: ChunkJob, text: str) -> int:
    """The bytes of the block that ``text`` would become, without pins."""
    summary = ChunkSummary(
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
    return len(chunk_block(summary, ()).encode("utf-8", "surrogatepass"))
