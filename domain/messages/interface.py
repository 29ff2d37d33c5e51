"""What the rest of the software sees of a provider's messages, whatever their wire shape (T1, T2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

Wire = Mapping[str, Any]
"""A message as it goes over the wire: a JSON object of the caller's, which nobody here ever changes."""

EntryRole = Literal["system", "user", "assistant", "tool"]
PartKind = Literal["text", "call", "result", "thinking", "media", "other"]


class Call(NamedTuple):
    """A tool call that a message opens. ``part`` is its place in the message, from zero."""

    id: str
    name: str
    part: int


class Answered(NamedTuple):
    """A tool result that a message brings: of which call, and its place in the message."""

    call_id: str
    part: int


class Entry(NamedTuple):
    """What has to be known of one message to cut a transcript safely (T4); the message is ``wire``.

    ``begins_turn``: it is a user's own message and holds no tool result, so a cut may stand before it if
    no call is open there. Instructions (role ``system``) begin no turn and are never summarized.
    """

    position: int
    role: EntryRole
    wire: Wire
    calls: Sequence[Call]
    results: Sequence[Answered]
    begins_turn: bool

    @property
    def id(self) -> str:
        """Its message id within its run: ``m`` and its position."""
        return f"m{self.position}"


class Part(NamedTuple):
    """One readable part of a message: ``part`` counts the parts of the message as they stand on the wire.

    ``text`` is exactly the wire's own text: of a call its arguments as they stand (a string as it is, an
    object as compact JSON), of a result its text (several blocks joined by a line feed), of media nothing.
    ``name`` is the tool's, of calls, and of results where the wire says it. ``call_id`` is set for calls
    and results. ``role`` says whose words they are where they are not those of the message's role: of text
    beside a tool's result, the user's; of a system prompt beside the user's, the system's (T7, T9).
    """

    part: int
    kind: PartKind
    text: str
    name: str | None = None
    call_id: str | None = None
    role: EntryRole | None = None


class Problem(NamedTuple):
    """Something that is wrong with a transcript (T2), or that its provider would refuse (T5).

    ``place`` names the message, as ``message 12`` or ``message 12 content[1]``; ``code`` is stable.
    """

    code: str
    place: str
    message: str


Lead = str | Wire
"""What stands before the retained turns, in order: the text of a block, or a message kept as it is."""


class MessageShape(Protocol):
    """One wire shape. Stateless: one instance serves every transcript."""

    @property
    def name(self) -> str:
        """``openai-chat``, ``openai-responses``, ``anthropic``, ``converse`` or ``pydantic-ai``."""
        ...

    def read(self, messages: Sequence[Wire], first: int = 0) -> list[Entry]:
        """An entry for each message; the first has position ``first``. Must be fast: it is run at each
        turn.

        Raises :class:`MalformedMessage` naming message and member where a message is not of this shape
        (no object, unknown role, a call without id or name where the shape has them). An id that is the
        empty string is an id like any other (it happens); a missing or null one is not. Unknown blocks,
        members and item types are carried along and are no error.
        """
        ...

    def parts(self, wire: Wire) -> list[Part]:
        """The readable parts of one message, in order."""
        ...

    def settled(self, wire: Wire) -> Wire:
        """The message without its cache markers, which may move (T1); itself where it has none. What is
        hashed and bound (B3).
        """
        ...

    def assemble(self, messages: Sequence[Wire], cut: int, lead: Sequence[Lead]) -> list[Wire]:
        """``lead``, then ``messages[cut:]``, as a request of this provider (T5, T10).

        ``messages[cut]`` begins a turn. Where the shape has neither a place for a message of its own before
        it nor for two user messages side by side, the texts become the first blocks of that turn, whose own
        blocks follow byte for byte. With ``cut == 0`` and no lead: the messages as they are. Messages that
        are kept are the very objects that were given; only a turn that takes blocks in is a new object.
        """
        ...

    def head(self, messages: Sequence[Wire]) -> int:
        """How many messages at the beginning are instructions (system, developer), which stay in front."""
        ...

    def with_results(self, wire: Wire, texts: Mapping[int, str]) -> Wire:
        """A copy with the text of the tool results at these parts replaced (T14); all else is as it was: also
        images and other blocks of a result that are no text.
        """
        ...

    def problems(self, messages: Sequence[Wire]) -> list[Problem]:
        """Everything for which the provider would refuse these messages as a request (T5), strictly.

        Adjacency of calls and results, first role, alternation, orphans on both sides, ids that stand twice
        in one message, empty contents where they are refused. Written from the provider's documentation and
        sharing no code with :meth:`read` or :meth:`assemble`. ``[]`` for a valid request. A transcript that
        ends in open calls is told with the code ``pending_call``; whoever assembles in the middle of a run
        may allow that one code.
        """
        ...
