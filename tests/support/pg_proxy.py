"""A TCP proxy that knows where PostgreSQL's messages begin and end, and does to them what networks do.

It stands on the loopback interface between clients and a server. A fault is either set to happen at one
message (``cut_before``, ``cut_after_forwarding``, ``cut_within``, ``cut_before_reply``), or it begins when
it is asked for (``black_hole``, ``half_open``, ``freeze``, ``refuse``, ``delay``, ``cut_all``).

Messages are named by the letter that the protocol gives them. Those with which a connection begins have
none; they are called ``startup``, ``cancel`` and ``encryption``. To requests for encryption the proxy itself
answers no. What psycopg sends for a statement is ``P``, ``B``, ``D``, ``E``, ``S`` (parse, bind, describe,
execute, sync), and for one without parameters, as for BEGIN and COMMIT, often one ``Q``. The server's answer
ends in ``C`` (complete) and ``Z`` (ready).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Self
from urllib.parse import urlsplit, urlunsplit

from kept_processes import free_port, wait_until

Side = Literal["client", "server"]
Then = Literal["cut", "silence"]
CHUNK = 65_536
FIRST = {80877102: "cancel", 80877103: "encryption", 80877104: "encryption"}


@dataclass(frozen=True)
class Message:
    """One whole message."""

    kind: str
    data: bytes


@dataclass
class Fault:
    """What is to happen at one message; ``wait`` until it does."""

    side: Side
    kind: str
    nth: int
    containing: bytes
    how: Callable[[Link, Message], None]
    fired: threading.Event = field(default_factory=threading.Event)
    seen: int = 0

    def wait(self, seconds: float = 30) -> None:
        """Until it happens."""
        if not self.fired.wait(seconds):
            raise TimeoutError(f"the fault at message {self.kind!r} did not happen")

    def meets(self, side: Side, message: Message) -> bool:
        """Whether this message is the one; each is asked about once."""
        if side != self.side or message.kind != self.kind or self.containing not in message.data:
            return False
        self.seen += 1
        return self.seen == self.nth


class _Stream:
    """Bytes in, whole messages out."""

    def __init__(self, *, begun: bool) -> None:
        self.begun = begun
        self._held = bytearray()

    def fed(self, data: bytes) -> Iterator[Message]:
        """The messages that these bytes complete."""
        self._held += data
        while message := self._next():
            yield message

    def _next(self) -> Message | None:
        start = 1 if self.begun else 0
        if len(self._held) < start + 4:
            return None
        size = start + int.from_bytes(self._held[start : start + 4], "big")
        if len(self._held) < max(size, 8 - 8 * start):
            return None
        data = bytes(self._held[:size])
        del self._held[:size]
        if self.begun:
            return Message(chr(data[0]), data)
        kind = FIRST.get(int.from_bytes(data[4:8], "big"), "startup")
        self.begun = kind == "startup"
        return Message(kind, data)


class Link:
    """One client's connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket | None) -> None:
        self.client = client
        self.server = server
        # Bytes are swallowed, and neither side learns that the other one left.
        self.hole = False
        # The server's side is gone; the client is kept, and hears nothing.
        self.silent = False
        # No more of what the client says is carried.
        self.deaf = False
        # Answers are due for so many requests, and so many were given.
        self.asked = 0
        self.answered = 0
        self._proxy = proxy
        self._last: tuple[int, Callable[[], None]] | None = None
        self._open = {"client"} if server is None else {"client", "server"}
        self._threads = [threading.Thread(target=self._carry_requests, daemon=True)]
        if server is not None:
            self._threads.append(threading.Thread(target=self._carry_answers, daemon=True))

    def start(self) -> None:
        """Begin to carry messages."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Until it carries nothing more."""
        for thread in self._threads:
            thread.join()

    @property
    def alive(self) -> bool:
        """Whether the client's side is open."""
        return "client" in self._open

    @property
    def over(self) -> bool:
        """Whether both sides are closed."""
        return not self._open

    # --- what may befall it ---------------------------------------------------------------------

    def cut(self) -> None:
        """Close both sides."""
        _shut(self.client)
        if self.server is not None:
            _shut(self.server)

    def silence(self) -> None:
        """Close the server's side, and keep the client's open and silent."""
        self.silent = True
        if self.server is not None:
            _shut(self.server)

    def end(self, then: Then) -> None:
        """Cut it or silence it."""
        if then == "cut":
            self.cut()
        else:
            self.silence()

    def forward(self, data: bytes | bytearray) -> None:
        """Hand bytes to the server."""
        if self.server is not None:
            self.server.sendall(data)

    def after_answer(self, act: Callable[[], None]) -> None:
        """Withhold the answer to the last request so far, and act when the server has given all of it."""
        self._last = (self.asked, act)

    # --- carrying -------------------------------------------------------------------------------

    def _carry_requests(self) -> None:
        stream = _Stream(begun=False)
        with _left_alone(self.client, lambda: self._left("client")):
            while data := self.client.recv(CHUNK):
                self._proxy.pass_gate()
                if not (self.hole or self.silent or self.deaf):
                    self._forward_requests(stream.fed(data))
            self._proxy.pass_gate()

    def _forward_requests(self, messages: Iterator[Message]) -> None:
        held = bytearray()
        for message in messages:
            fault = self._proxy.noticed("client", message)
            if message.kind == "encryption":
                self.client.sendall(b"N")
            elif fault is not None:
                self.forward(held)
                self.deaf = True
                fault.how(self, message)
                return
            else:
                self.asked += message.kind in {"S", "Q", "startup"}
                held += message.data
        self.forward(held)

    def _carry_answers(self) -> None:
        assert self.server is not None
        stream = _Stream(begun=True)
        with _left_alone(self.server, lambda: self._left("server")):
            while data := self.server.recv(CHUNK):
                self._proxy.pass_gate()
                if not (self.hole or self.silent):
                    self._forward_answers(stream.fed(data))
            self._proxy.pass_gate()

    def _forward_answers(self, messages: Iterator[Message]) -> None:
        held = bytearray()
        for message in messages:
            fault = self._proxy.noticed("server", message)
            if not (fault or self._withheld()):
                held += message.data
            self.answered += message.kind == "Z"
            if fault is not None:
                self._send_answers(held)
                fault.how(self, message)
                return
            if self._last is not None and self.answered >= self._last[0]:
                self._send_answers(held)
                self._act()
                return
        self._send_answers(held)

    def _withheld(self) -> bool:
        return self._last is not None and self.answered >= self._last[0] - 1

    def _act(self) -> None:
        if self._last is not None:
            act = self._last[1]
            self._last = None
            act()

    def _send_answers(self, data: bytes | bytearray) -> None:
        if data:
            self.client.sendall(data)

    def _left(self, side: Side) -> None:
        self._open.discard(side)
        if side == "server":
            self._act()
        if self.hole or (self.silent and side == "server"):
            return
        if side == "client" and self._last is not None:
            return  # the server may finish what it is at
        self.cut()


@contextlib.contextmanager
def _left_alone(end: socket.socket, left: Callable[[], None]) -> Iterator[None]:
    """Whatever ends the reading from a socket is no error; it is closed, and then others are told."""
    try:
        with end, contextlib.suppress(OSError):
            yield
    finally:
        left()


def _shut(end: socket.socket) -> None:
    """Wake up who reads from the socket, who closes it, and tell the other side."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Stands before the server of a URL. ``url`` is the same, but for the host and the port."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._target = (parts.hostname, parts.port or 5432)
        self.port = free_port()
        place = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{self.port}".lstrip("@")
        self.url = urlunsplit(parts._replace(netloc=place))
        # How many messages of each kind came from each side, and how many connections there were.
        self.client_messages: Counter[str] = Counter()
        self.server_messages: Counter[str] = Counter()
        self.accepted = 0
        self._faults: list[Fault] = []
        self._links: list[Link] = []
        self._hole = False
        self._delay = 0.0
        self._lock = threading.Lock()
        self._flowing = threading.Event()
        self._flowing.set()
        self._closing = threading.Event()
        self._welcoming: tuple[socket.socket, threading.Thread] | None = None
        self.welcome()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cut all, and listen no more."""
        self._closing.set()
        self._flowing.set()
        self.refuse()
        self.cut_all()
        for link in self._links:
            link.join()

    # --- faults at one message ------------------------------------------------------------------

    def cut_before(
        self, kind: str, nth: int = 1, *, containing: bytes = b"", then: Then = "cut"
    ) -> Fault:
        """The nth such message of a client from now on does not reach the server."""

        def how(link: Link, _: Message) -> None:
            fault.fired.set()
            link.end(then)

        fault = self._expect(Fault("client", kind, nth, containing, how))
        return fault

    def cut_within(self, kind: str, nth: int = 1, *, containing: bytes = b"") -> Fault:
        """Only the first half of the nth such message of a client from now on reaches the server."""

        def how(link: Link, message: Message) -> None:
            link.forward(message.data[: len(message.data) // 2])
            fault.fired.set()
            link.cut()

        fault = self._expect(Fault("client", kind, nth, containing, how))
        return fault

    def cut_after_forwarding(
        self,
        kind: str,
        nth: int = 1,
        *,
        containing: bytes = b"",
        then: Then = "cut",
        at_once: bool = False,
    ) -> Fault:
        """The server gets the nth such message of a client from now on; the client never sees the answer.

        The client is cut off when the server has answered in full, so what it did is done by then; with
        ``at_once`` it is cut off as soon as the message is on its way, and the server left to finish.
        Messages that get no answer of their own (``P``, ``B``, ``E``, before a sync) are always cut at once.
        """

        def how(link: Link, message: Message) -> None:
            def act() -> None:
                fault.fired.set()
                link.end(then)

            answered = message.kind in {"S", "Q", "startup"}
            link.asked += answered
            if answered:
                link.after_answer(act)
            link.forward(message.data)
            if not answered:
                act()
            elif at_once and then == "cut":
                _shut(link.client)

        fault = self._expect(Fault("client", kind, nth, containing, how))
        return fault

    def cut_before_reply(
        self, kind: str, nth: int = 1, *, containing: bytes = b"", then: Then = "cut"
    ) -> Fault:
        """The nth such message of the server from now on does not reach the client; those before it do."""

        def how(link: Link, _: Message) -> None:
            fault.fired.set()
            link.end(then)

        fault = self._expect(Fault("server", kind, nth, containing, how))
        return fault

    def _expect(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def noticed(self, side: Side, message: Message) -> Fault | None:
        """Count a message; the fault that is to happen at it, if any."""
        with self._lock:
            counter = self.client_messages if side == "client" else self.server_messages
            counter[message.kind] += 1
            met = [fault for fault in self._faults if fault.meets(side, message)]
            for fault in met:
                self._faults.remove(fault)
            return met[0] if met else None

    # --- faults from now on ---------------------------------------------------------------------

    def black_hole(self) -> None:
        """Swallow all bytes both ways, on connections that stay open, and on new ones; until ``heal``."""
        with self._lock:
            self._hole = True
            for link in self._links:
                link.hole = True

    def heal(self) -> None:
        """Carry new connections again. What was in the black hole is cut on both sides."""
        self._hole = False
        for link in self._links:
            if link.hole:
                link.cut()

    def half_open(self) -> None:
        """Close the server's side of each connection; the client's stays open and silent."""
        for link in self._links:
            link.silence()

    def freeze(self) -> None:
        """Hold back all bytes, both ways, until ``thaw``; none is lost."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Let go what was held back."""
        self._flowing.set()

    def delay(self, seconds: float) -> None:
        """Let whatever arrives wait so long, on either way."""
        self._delay = seconds

    def cut_all(self) -> None:
        """Close both sides of every connection."""
        for link in list(self._links):
            link.cut()

    def refuse(self) -> None:
        """Do not listen any more: who connects is refused. What is connected stays."""
        if self._welcoming is None:
            return
        listener, thread = self._welcoming
        self._welcoming = None
        _shut(listener)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            pass  # where the shutting wakes nobody up, this does
        thread.join()

    def welcome(self) -> None:
        """Listen, after ``refuse``."""
        listener = socket.create_server(("127.0.0.1", self.port), backlog=200)
        thread = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._welcoming = (listener, thread)
        thread.start()

    # --- looking --------------------------------------------------------------------------------

    def connections(self) -> int:
        """How many clients are connected."""
        return sum(link.alive for link in self._links)

    def wait_for_connections(self, number: int, seconds: float = 30) -> None:
        """Until so many clients are connected."""
        wait_until(lambda: self.connections() == number, seconds, f"{number} connections")

    def round_trips(self) -> int:
        """How often clients waited for an answer so far: syncs and simple queries."""
        return self.client_messages["S"] + self.client_messages["Q"]

    def reset_counters(self) -> None:
        """Count from nothing again."""
        with self._lock:
            self.client_messages.clear()
            self.server_messages.clear()
            self.accepted = 0

    # --- the work -------------------------------------------------------------------------------

    def pass_gate(self) -> None:
        """What arrived waits as long as it is told to."""
        if self._delay:
            self._closing.wait(self._delay)
        self._flowing.wait()

    def _accept(self, listener: socket.socket) -> None:
        with listener, contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                if self._welcoming is None or self._welcoming[0] is not listener:
                    client.close()
                    return
                self.accepted += 1
                self._join_ends(client)

    def _join_ends(self, client: socket.socket) -> None:
        server = None
        if not self._hole:
            try:
                server = socket.create_connection(self._target, 10)
            except OSError:
                client.close()
                return
            server.settimeout(None)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(self, client, server)
        with self._lock:
            link.hole = server is None or self._hole
            self._links = [known for known in self._links if not known.over] + [link]
        link.start()
