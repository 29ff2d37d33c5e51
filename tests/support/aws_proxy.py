"""A TCP proxy that loses answers: what was asked is carried out, and nobody hears of it (A9)."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Self
from urllib.parse import urlsplit

_CONTINUE = b"HTTP/1.1 100"


class LosingProxy:
    """Stands between a client and a server of HTTP, where each connection has one request."""

    def __init__(self, url: str) -> None:
        there = urlsplit(url)
        self._server = (str(there.hostname), int(there.port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = Lock()
        self._threads: list[Thread] = []
        self.to_lose: list[bytes] = []
        """What a request begins with whose answer is lost, such as ``PUT ``; one for each request."""
        self.lost = 0

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, action: object, *arguments: object) -> None:
        thread = Thread(target=action, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server, _ended(client, server):
            first = client.recv(65_536)
            loses = self._is_to_lose(first)
            server.sendall(first)
            self._start(_pump, client, server)
            for data in _received(server):
                if loses and not data.startswith(_CONTINUE):
                    while server.recv(65_536):  # until it has answered wholly
                        pass
                    with self._lock:
                        self.lost += 1
                    return
                client.sendall(data)

    def _is_to_lose(self, request: bytes) -> bool:
        with self._lock:
            for beginning in self.to_lose:
                if request.startswith(beginning):
                    self.to_lose.remove(beginning)
                    return True
        return False


@contextmanager
def _ended(*sides: socket.socket) -> Iterator[None]:
    """Both sides learn at once that it is over, also while another thread waits for one of them."""
    try:
        yield
    finally:
        for side in sides:
            with contextlib.suppress(OSError):  # it has gone already
                side.shutdown(socket.SHUT_RDWR)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side was closed meanwhile
        for data in _received(source):
            target.sendall(data)


def _received(source: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(ConnectionError):
        while data := source.recv(65_536):
            yield data


@contextmanager
def losing(url: str) -> Iterator[LosingProxy]:
    """A proxy in front of the server at ``url``."""
    with LosingProxy(url) as proxy:
        yield proxy
