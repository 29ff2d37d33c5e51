"""What stands before the retained turns, for the two ways a provider can take it (T5, T10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compaction_ledger.domain.messages.interface import Lead, Wire

Block = Callable[[str], Wire]


def with_messages(
    messages: Sequence[Wire],
    cut: int,
    head: int,
    lead: Sequence[Lead],
    message: Callable[[str], Wire],
) -> list[Wire]:
    """Each text becomes a message of its own between the instructions at the head and ``messages[cut:]``."""
    front = [message(each) if isinstance(each, str) else each for each in lead]
    return [*messages[:head], *front, *messages[max(cut, head) :]]


def with_first_blocks(
    messages: Sequence[Wire], cut: int, head: int, lead: Sequence[Lead], block: Block
) -> list[Wire]:
    """The texts become the first blocks of ``messages[cut]``: two user messages may not stand side by side.

    Where that is no user's message (a transcript that starts with an answer), they become one. Kept
    instructions go directly behind the user's messages there: the only place where these providers
    take a message of role ``system``, and never two of them in a row, so that several are made one.
    """
    start = max(cut, head)
    retained = list(messages[start:])
    blocks = [block(each) for each in lead if isinstance(each, str)]
    if blocks:
        if retained and retained[0].get("role") == "user":
            retained[0] = _behind(blocks, retained[0], block)
        else:
            retained.insert(0, {"role": "user", "content": blocks})
    kept = [each for each in lead if not isinstance(each, str)]
    if kept:
        _insert_instructions(retained, kept, block)
    return [*messages[:head], *retained]


def _behind(blocks: Sequence[Wire], turn: Wire, block: Block) -> Wire:
    """The turn with ``blocks`` before its own. Its role stands first, so that one more block in front of
    its own only inserts bytes behind the earlier blocks.
    """
    rest = {key: value for key, value in turn.items() if key not in ("role", "content")}
    content = [*blocks, *_blocks(turn, block)]
    return {"role": turn["role"], "content": content, **rest}


def _insert_instructions(retained: list[Wire], kept: Sequence[Wire], block: Block) -> None:
    place = 0
    while place < len(retained) and retained[place].get("role") == "user":
        place += 1
    together = list(kept)
    if place < len(retained) and retained[place].get("role") == "system":
        together.append(retained.pop(place))
    if len(together) == 1:
        retained.insert(place, together[0])
    else:
        content = [each for message in together for each in _blocks(message, block)]
        retained.insert(place, {"role": "system", "content": content})


def _blocks(message: Wire, block: Block) -> Sequence[Wire]:
    content = message.get("content")
    if isinstance(content, str):
        return [block(content)]
    return content or ()
