"""The messages of Pydantic AI, as its ``ModelMessagesTypeAdapter`` writes them to JSON (T1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from compaction_ledger.domain.messages.interface import (
    Answered,
    Call,
    Entry,
    EntryRole,
    Lead,
    Part,
    PartKind,
    Problem,
    Wire,
)
from compaction_ledger.domain.messages.validity import pydantic_ai
from compaction_ledger.domain.messages.wires import (
    NO_TURN,
    as_text,
    compact,
    items,
    malformed,
    members,
    no_such_role,
    not_a_result,
    text_id,
)

_KINDS: dict[str, EntryRole] = {"request": "user", "response": "assistant"}
_PARTS: dict[object, PartKind] = {
    "system-prompt": "text",
    "user-prompt": "text",
    "text": "text",
    "retry-feedback": "text",
    "thinking": "thinking",
    "file": "media",
}
_SPEAKERS: dict[object, EntryRole] = {
    "system-prompt": "system",
    "user-prompt": "user",
    "tool-return": "tool",
    "retry-prompt": "tool",
    "retry-feedback": "tool",
}
_MEDIA = frozenset(
    {"image-url", "audio-url", "video-url", "document-url", "binary", "uploaded-file"}
)


class PydanticAI:
    """Messages with ``kind`` request or response; their parts are what ``parts`` holds, by ``part_kind``.

    A request that holds a tool return has the role ``tool``; else, if it holds a user's prompt, ``user``,
    and it begins a turn; else ``system``, unless there is a retry in it: that is the framework speaking in
    the user's place, which begins no turn, and its part has the role ``tool``: nobody's own words. A retry
    with a tool's name answers a call. Calls of tools that
    the provider runs itself have their return in the same response. Cache markers are the pieces of kind
    ``cache-point`` in a user's prompt.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The shape's name."""
        return "pydantic-ai"

    def read(self, messages: Sequence[Wire], first: int = 0) -> list[Entry]:
        """See :meth:`MessageShape.read`."""
        entries: list[Entry] = []
        add = entries.append
        position = first
        for message in messages:
            try:
                role = _KINDS[message["kind"]]
                parts = message.get("parts")
            except (KeyError, TypeError, AttributeError):
                raise no_such_role(message, position, "kind", tuple(_KINDS)) from None
            if not isinstance(parts, list):
                raise malformed(position, "parts", f"is no list but {type(parts).__name__}")
            each = cast("list[object]", parts)
            if role == "assistant":
                calls, results = _response(each, position)
                add(Entry(position, role, message, calls, results, NO_TURN))
            else:
                add(_request(message, each, position))
            position += 1
        return entries

    def parts(self, wire: Wire) -> list[Part]:
        """See :meth:`MessageShape.parts`."""
        parts = [members(part) for part in items(wire.get("parts"))]
        read = [_part(index, part) for index, part in enumerate(parts)]
        if wire.get("kind") != "request":
            return read
        role = _request(wire, parts, 0).role
        speakers = [_speaker(part) for part in parts]
        return [
            part if speaker in (None, role) else part._replace(role=speaker)
            for part, speaker in zip(read, speakers, strict=True)
        ]

    def settled(self, wire: Wire) -> Wire:
        """See :meth:`MessageShape.settled`."""
        parts = items(wire.get("parts"))
        settled = [_settled_part(part) for part in parts]
        same = all(new is old for new, old in zip(settled, parts, strict=True))
        return wire if same else {**wire, "parts": settled}

    def assemble(self, messages: Sequence[Wire], cut: int, lead: Sequence[Lead]) -> list[Wire]:
        """See :meth:`MessageShape.assemble`; the texts become user prompts ahead of the turn's own parts,
        or before a message of ``lead`` a request of their own.

        System prompts beside other parts stay, of all requests that are cut away, in order: those of the
        first request in a request of their own, in front; those of later ones behind the texts, ahead of
        the turn's own parts, for what stands before them must not change when a later cut adds to them
        (T10). The parts made here have no time stamp: nothing in them may differ from one request to the
        next.
        """
        head = self.head(messages)
        start = max(cut, head)
        left = messages[head:start]
        alone = {id(each) for each in lead if not isinstance(each, str)}
        made, before = _in_order(lead)
        for each in left[1:]:
            before += _prompts(each) if id(each) not in alone else []
        retained = list(messages[start:])
        if before and retained and retained[0]["kind"] == "request":
            turn = retained[0]
            rest = {key: value for key, value in turn.items() if key != "parts"}
            retained[0] = {"parts": [*before, *turn["parts"]], **rest}
        elif before:
            retained.insert(0, _texts(before))
        return [*messages[:head], *_first_prompts(left, alone), *made, *retained]

    def head(self, messages: Sequence[Wire]) -> int:
        """See :meth:`MessageShape.head`."""
        count = 0
        while count < len(messages) and self._instructs(messages[count], count):
            count += 1
        return count

    def with_results(self, wire: Wire, texts: Mapping[int, str]) -> Wire:
        """See :meth:`MessageShape.with_results`; the content becomes a string, before media a piece."""
        if not texts:
            return wire
        parts = [members(part) for part in items(wire.get("parts"))]
        for place, text in texts.items():
            if not 0 <= place < len(parts) or not _is_result(parts[place]):
                raise not_a_result(place)
            others = [p for p in items(parts[place].get("content")) if _piece_kind(p) in _MEDIA]
            parts[place] = {**parts[place], "content": [text, *others] if others else text}
        return {**wire, "parts": parts}

    def problems(self, messages: Sequence[Wire]) -> list[Problem]:
        """See :meth:`MessageShape.problems`."""
        return pydantic_ai.problems(messages)

    @staticmethod
    def _instructs(message: Wire, position: int) -> bool:
        if message["kind"] != "request":
            return False
        return _request(message, message["parts"], position).role == "system"


def _prompt(text: str) -> Wire:
    return {"content": text, "part_kind": "user-prompt"}


def _texts(prompts: Sequence[Wire]) -> Wire:
    return {"parts": prompts, "kind": "request"}


def _in_order(lead: Sequence[Lead]) -> tuple[list[Wire], list[Wire]]:
    """The messages of ``lead`` with requests of the texts between them, and the texts behind the last."""
    made: list[Wire] = []
    texts: list[Wire] = []
    for each in lead:
        if isinstance(each, str):
            texts.append(_prompt(each))
            continue
        if texts:
            made.append(_texts(texts))
            texts = []
        made.append(each)
    return made, texts


def _prompts(message: Wire) -> list[Wire]:
    """The system prompts of a request, none of a response."""
    if message["kind"] != "request":
        return []
    return [part for part in message["parts"] if part["part_kind"] == "system-prompt"]


def _first_prompts(left: Sequence[Wire], alone: set[int]) -> list[Wire]:
    """Of the first request, if it is cut away: a request of only its system prompts, if it has any."""
    prompts = _prompts(left[0]) if left and id(left[0]) not in alone else []
    if not prompts:
        return []
    return [{key: prompts if key == "parts" else value for key, value in left[0].items()}]


def _kind(part: object, position: int, index: int) -> str:
    kind = members(part).get("part_kind")
    if isinstance(kind, str):
        return kind
    raise malformed(position, f"parts[{index}]", "is no part with a part_kind")


def _request(message: Wire, parts: Sequence[Any], position: int) -> Entry:
    results: list[Answered] = []
    prompted = retried = False
    for index, part in enumerate(parts):
        kind = _kind(part, position, index)
        if kind == "user-prompt" or (kind == "speech" and part.get("speaker") == "user"):
            prompted = True
        elif kind == "tool-return" or (
            kind == "retry-prompt" and part.get("tool_name") is not None
        ):
            call_id = text_id(part, "tool_call_id", position, f"parts[{index}]")
            results.append(Answered(call_id, index))
        elif kind in ("retry-prompt", "retry-feedback"):
            retried = True
    if results:
        return Entry(position, "tool", message, (), results, NO_TURN)
    role: EntryRole = "user" if prompted or retried else "system"
    return Entry(position, role, message, (), (), prompted)


def _response(parts: Sequence[Any], position: int) -> tuple[Sequence[Call], Sequence[Answered]]:
    """The calls that a response leaves open, and the results it brings of a provider's own calls before."""
    calls: list[Call] = []
    results: list[Answered] = []
    for index, part in enumerate(parts):
        kind = _kind(part, position, index)
        if kind in ("tool-call", "builtin-tool-call"):
            place = f"parts[{index}]"
            call_id = text_id(part, "tool_call_id", position, place)
            calls.append(Call(call_id, text_id(part, "tool_name", position, place), index))
        elif kind == "builtin-tool-return":
            call_id = text_id(part, "tool_call_id", position, f"parts[{index}]")
            own = next((call for call in calls if call.id == call_id), None)
            if own is None:
                results.append(Answered(call_id, index))
            else:
                calls.remove(own)
    return calls or (), results or ()


def _is_result(part: Wire) -> bool:
    kind = part["part_kind"]
    return kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name") is not None)


def _speaker(part: Wire) -> EntryRole | None:
    """Who says a part of a request; ``None`` where its kind is unknown."""
    if part["part_kind"] == "speech":
        return "user" if part.get("speaker") == "user" else "assistant"
    return _SPEAKERS.get(part["part_kind"])


def _part(index: int, part: Wire) -> Part:
    kind = part["part_kind"]
    name, call_id = part.get("tool_name"), part.get("tool_call_id")
    if kind in ("tool-call", "builtin-tool-call"):
        return Part(index, "call", as_text(part.get("args")), name, call_id)
    if _is_result(part):
        return Part(index, "result", _content_text(part.get("content")), name, call_id)
    if kind == "builtin-tool-return":
        return Part(index, "other", _content_text(part.get("content")), name, call_id)
    if kind == "speech":
        return Part(index, "text", as_text(part.get("transcript")))
    if kind == "retry-prompt":
        return Part(index, "text", _content_text(part.get("content")))
    named = _PARTS.get(kind, "other")
    text = _content_text(part.get("content")) if named in ("text", "thinking") else ""
    return Part(index, named, text)


def _content_text(content: object) -> str:
    """A string as it is. Of a list with pieces of kinds the texts, other values as compact JSON."""
    pieces = items(content)
    if any(_piece_kind(piece) for piece in pieces):
        texts = [_piece_text(piece) for piece in pieces]
        return "\n".join(text for text in texts if text is not None)
    return as_text(content)


def _piece_kind(piece: object) -> object:
    kind = members(piece).get("kind")
    known = isinstance(kind, str) and (kind in _MEDIA or kind in ("text-content", "cache-point"))
    return kind if known else None


def _piece_text(piece: object) -> str | None:
    kind = _piece_kind(piece)
    if kind == "text-content":
        return as_text(members(piece).get("content"))
    if kind is not None:
        return None
    return piece if isinstance(piece, str) else compact(piece)


def _settled_part(part: Any) -> Any:
    fields = members(part)
    if fields.get("part_kind") != "user-prompt":
        return part
    pieces = items(fields.get("content"))
    kept = [piece for piece in pieces if members(piece).get("kind") != "cache-point"]
    return part if len(kept) == len(pieces) else {**fields, "content": kept}
