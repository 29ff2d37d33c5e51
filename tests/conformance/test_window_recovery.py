"""Windows that go on where something recorded does not hold, or cannot be summarized (T8, T9, T12, A6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from window_runs import PLACE, RememberingSummarizer, growing, window_on

from compaction_ledger.composition import Parts
from compaction_ledger.domain.errors import DamagedOriginal, StoreError
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.commands import AcceptPin
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.keys import WindowKey
from compaction_ledger.domain.window.originals import Original
from compaction_ledger.domain.window.pins import pin_id
from compaction_ledger.usecases.window_session import WindowSession

KEY = WindowKey(*PLACE)


class Damaging:
    """Originals of which one message cannot be read."""

    def __init__(self, within: Any, position: int) -> None:
        self._within = within
        self._position = position

    def __getattr__(self, name: str) -> Any:
        return getattr(self._within, name)

    def read(self, key: WindowKey, start: int = 0, stop: int | None = None) -> Sequence[Original]:
        return [
            replace(original, wire=b"[[") if original.position == self._position else original
            for original in self._within.read(key, start, stop)
        ]


def test_a_damaged_original_is_tried_at_each_turn_and_nothing_is_recorded(parts: Parts) -> None:
    """A6: it is seen before the claim."""
    originals: Any = Damaging(parts.originals, 2)
    window = window_on(replace(parts, originals=originals), summarizer := RememberingSummarizer())
    refused = 0
    for messages in growing(20):
        if window.prepare(messages).due is not None:
            with pytest.raises(DamagedOriginal, match="message m2 of run 'run-1'"):
                window.compact()
            refused += 1
    assert refused >= 10
    assert len(parts.context.log.history(KEY)) == 0
    assert summarizer.requests == []


def test_an_error_of_giving_back_does_not_hide_the_first_one(parts: Parts) -> None:
    """A6, A5: the store of originals fails behind the claim, and then the log."""
    reads: list[int] = []
    appends: list[int] = []

    class Failing(Damaging):
        def read(
            self, key: WindowKey, start: int = 0, stop: int | None = None
        ) -> Sequence[Original]:
            reads.append(start)
            if len(reads) == 2:
                raise StoreError("the originals are away")
            return super().read(key, start, stop)

    class Log:
        def __getattr__(self, name: str) -> Any:
            return getattr(parts.context.log, name)

        def append(self, *args: Any, **kwargs: Any) -> Any:
            appends.append(len(reads))
            if len(reads) >= 2:
                raise StoreError("the log is away")
            return parts.context.log.append(*args, **kwargs)

    log: Any = Log()
    originals: Any = Failing(parts.originals, -1)
    broken = replace(parts, originals=originals, context=replace(parts.context, log=log))
    window = window_on(broken, RememberingSummarizer())
    assert any(window.prepare(messages).due is not None for messages in growing(20))
    with pytest.raises(StoreError, match="the originals are away"):
        window.compact()
    assert appends == [1, 2]


@pytest.mark.parametrize(
    ("message", "quote", "reason"),
    [
        (0, "You look at cases.", "not_users_words"),
        (1, "Look at case 0, please.", None),
        (2, '{"number": 0}', "not_users_words"),
        (3, "case 0 is open", "not_users_words"),
        (4, "Its ticket is INC-00000.", "not_users_words"),
    ],
)
def test_a_recorded_pin_of_anybody_elses_words_is_not_used(
    parts: Parts, message: int, quote: str, reason: str | None
) -> None:
    """T9: whoever recorded it, and although the words do stand there."""
    window = window_on(parts)
    messages = list(growing(3))[-1]
    window.prepare(messages)
    (shape_part,) = [
        part for part in shape_named("openai-chat").parts(messages[message]) if quote in part.text
    ]
    start = shape_part.text.index(quote)
    place = message, shape_part.part, start, start + len(quote)
    pin = PinAccepted(
        window=KEY,
        pin_id=pin_id(KEY, *place),
        message=message,
        digest=parts.originals.digests(KEY)[message],
        part=shape_part.part,
        start=start,
        end=start + len(quote),
        quote=quote,
        exchange=0,
        proposer="caller",
        supersedes=None,
    )
    WindowSession(parts.context.log, KEY).execute(lambda _: AcceptPin(pin))
    prepared = window.prepare(messages)
    rejected = [(item.identity, item.reason) for item in prepared.rejected]
    assert rejected == ([] if reason is None else [(pin.pin_id, reason)])
