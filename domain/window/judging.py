"""What an answer to a chunk's request is worth (C1 to C4, T7, T12, T13). Pure: whoever records it decides
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compaction_ledger.domain.errors import InvalidInput
from compaction_ledger.domain.finish import Answer, FailureCode, failures
from compaction_ledger.domain.grounding import ungrounded
from compaction_ledger.domain.window.structure import parse_structure
from compaction_ledger.domain.window.summarization import ChunkRequest, ChunkVerdict

RenderedBytes = Callable[[str], int]
"""How many bytes a structured summary (its canonical JSON) takes up in the request, its block included."""


def judge(
    answer: Answer,
    request: ChunkRequest,
    *,
    replaced_bytes: int,
    rendered_bytes: RenderedBytes,
    strict: bool,
) -> ChunkVerdict:
    """The failures of ``answer`` in the order of the codes, or the summary that is accepted.

    An answer that breaks the contract of a finish is not looked into; one without the structure of T7 is
    neither measured nor compared. ``replaced_bytes``: what the summary would stand for, as it would be sent
    (T12). With ``strict`` what the source does not say is a failure (T13), else it is only listed.
    """
    codes = failures(answer)
    if codes:
        return ChunkVerdict(codes)
    try:
        summary = parse_structure(answer.text)
    except InvalidInput:
        return ChunkVerdict(("invalid_structure",))
    text = summary.canonical()
    invented = ungrounded(summary.texts(), source_texts(request))
    found: list[FailureCode] = []
    if rendered_bytes(text) >= replaced_bytes:
        found.append("not_smaller")
    if strict and invented:
        found.append("ungrounded")
    return ChunkVerdict(tuple(found)) if found else ChunkVerdict((), text, invented)


def source_texts(request: ChunkRequest) -> Iterator[str]:
    """What a summary of this request may repeat: texts, names of tools, ids of messages."""
    for line in request.lines:
        yield line.text
        if line.name is not None:
            yield line.name
    yield " ".join(dict.fromkeys(line.message_id for line in request.lines))
