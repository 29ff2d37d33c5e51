"""Every way in which one connection can be cut while something is done over it, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pg_proxy import Fault, Proxy

How = Literal["before", "within", "after", "after, at once", "before the reply"]
OF_REQUESTS: tuple[How, ...] = ("before", "within", "after", "after, at once")
# What cannot be cut: the proxy itself answers the one, and after the other there is nothing to be lost.
LEFT_OUT = ("encryption", "X")


@dataclass(frozen=True)
class Cut:
    """The connection is cut at the nth message of a kind."""

    how: How
    kind: str
    nth: int

    def set_up(self, proxy: Proxy) -> Fault:
        """Have it happen from now on."""
        match self.how:
            case "before":
                return proxy.cut_before(self.kind, self.nth)
            case "within":
                return proxy.cut_within(self.kind, self.nth)
            case "after":
                return proxy.cut_after_forwarding(self.kind, self.nth)
            case "after, at once":
                return proxy.cut_after_forwarding(self.kind, self.nth, at_once=True)
            case "before the reply":
                return proxy.cut_before_reply(self.kind, self.nth)


@dataclass(frozen=True)
class Messages:
    """How many messages of each kind there were."""

    requests: Counter[str]
    replies: Counter[str]

    def cuts(self) -> Iterator[Cut]:
        """Every cut that there can be."""
        for kind, count in self.requests.items():
            for nth in range(1, count + 1):
                for how in OF_REQUESTS:
                    yield Cut(how, kind, nth)
        for kind, count in self.replies.items():
            for nth in range(1, count + 1):
                yield Cut("before the reply", kind, nth)


def messages_of(proxy: Proxy, act: Callable[[], object]) -> Messages:
    """The messages that an act consists of."""
    proxy.reset_counters()
    act()
    requests, replies = Counter(proxy.client_messages), Counter(proxy.server_messages)
    for kind in LEFT_OUT:
        del requests[kind]
    return Messages(requests, replies)
