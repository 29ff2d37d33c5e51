"""A witness's HTTP server (C2SP ``tlog-witness``, K3): small, bounded in bytes, seconds and threads.

::

    POST /add-checkpoint               200 with the cosignature; 400, 403, 404, 409 or 422 with why not
    GET  /checkpoint/SHA256(origin)    the checkpoint of this log that was cosigned last; 404

The second is no part of the protocol, which has no way yet to ask a witness.
"""

from __future__ import annotations

import io
import logging
import re
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

from compaction_ledger.domain.errors import LedgerError, MalformedProof, StoreError, WitnessRefused
from compaction_ledger.domain.proof.witnessing import MAX_REQUEST, SIZE_TYPE
from compaction_ledger.infrastructure.witness.bounded_reading import DeadlineReader

logger = logging.getLogger(__name__)

PLAIN = "text/plain; charset=utf-8"
STATUSES: Mapping[str, int] = {
    "unknown_log": 404,
    "unknown_key": 403,
    "stale": 409,
    "fork": 409,
    "inconsistent": 422,
}
_CHECKPOINT = re.compile(r"/checkpoint/([0-9a-f]{64})").fullmatch
_LENGTH = re.compile(r"[0-9]{1,9}").fullmatch


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much the server puts up with. Seconds are for a whole request, and for a silent connection."""

    connections: int = 64
    request_seconds: float = 10.0
    idle_seconds: float = 5.0


class Service(Protocol):
    """What is served."""

    def add(self, body: bytes) -> bytes:
        """The signature lines. Raises :class:`MalformedProof` and :class:`WitnessRefused`."""
        ...


Named = Callable[[str], "bytes | None"]
"""The checkpoint that was cosigned last, by the SHA-256 of the log's origin in hexadecimal."""


class WitnessServer(ThreadingHTTPServer):
    """Serves one witness at ``address``. More connections than allowed are closed without an answer."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self,
        address: tuple[str, int],
        service: Service,
        named: Named,
        bounds: Bounds | None = None,
    ) -> None:
        self.bounds = bounds or Bounds()
        self.service = service
        self.named = named
        self._free = threading.BoundedSemaphore(self.bounds.connections)
        super().__init__(address, WitnessHandler)

    def process_request(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Give a connection a thread, if one is free."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """One connection, with all its requests."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Note that a connection ended before its time."""
        logger.debug("a connection ended: %s", sys.exc_info()[1])


class WitnessHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "compaction-ledger-witness"
    sys_version = ""
    server: WitnessServer  # pyright: ignore[reportIncompatibleVariableOverride] - as typeshed means it

    def setup(self) -> None:
        """Read through a deadline."""
        super().setup()
        self.rfile.close()
        self._reader = DeadlineReader(self.connection)
        self.rfile = io.BufferedReader(self._reader)

    def handle_one_request(self) -> None:
        """One request, which must begin soon and be there soon."""
        bounds = self.server.bounds
        self._reader.allow(bounds.idle_seconds)
        try:
            if not self.rfile.peek(1):  # type: ignore[attr-defined]
                self.close_connection = True
                return
        except OSError:
            self.close_connection = True
            return
        self._reader.allow(bounds.request_seconds)
        self.connection.settimeout(bounds.request_seconds)
        try:
            super().handle_one_request()
        except OSError:  # it did not come, or nobody takes the answer
            self.close_connection = True

    def do_POST(self) -> None:
        """``add-checkpoint``."""
        if self.path != "/add-checkpoint":
            self._refuse(404, "there is nothing here")
            return
        body = self._body()
        if body is not None:
            self._answer(*self._added(body))

    def do_GET(self) -> None:
        """The checkpoint that was cosigned last."""
        if self.path == "/add-checkpoint":
            self._refuse(405, "this is for POST")
            return
        match = _CHECKPOINT(self.path)
        note = self._named(match[1]) if match else None
        if note is None:
            self._answer(404, PLAIN, b"there is nothing here\n")
        else:
            self._answer(200, PLAIN, note)

    def _named(self, name: str) -> bytes | None:
        return self.server.named(name)

    def _added(self, body: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body of the answer."""
        try:
            return 200, PLAIN, self.server.service.add(body)
        except MalformedProof as error:
            return 400, PLAIN, _line(error)
        except WitnessRefused as error:
            logger.info("refused: %s: %s", error.reason, error)
            if error.reason == "stale":
                return 409, SIZE_TYPE, b"%d\n" % (error.size or 0)
            return STATUSES[error.reason], PLAIN, _line(error)
        except StoreError as error:
            logger.warning("nothing can be kept: %s", error)
            return 503, PLAIN, b"the store of this witness cannot be used\n"

    def _body(self) -> bytes | None:
        """The request's body; ``None`` where that was refused."""
        if self.headers.get("Transfer-Encoding"):
            self._refuse(411, "send a Content-Length")
            return None
        lengths = self.headers.get_all("Content-Length") or []
        if len(lengths) != 1 or not _LENGTH(lengths[0].strip()):
            self._refuse(411, "send one Content-Length")
            return None
        length = int(lengths[0])
        if length > MAX_REQUEST:
            self._refuse(413, f"more than {MAX_REQUEST} bytes")
            return None
        body = self.rfile.read(length)
        if len(body) != length:
            self.close_connection = True
            return None
        return body

    def _refuse(self, status: int, why: str) -> None:
        """Answer without having read the body: whatever follows is not a request."""
        self.close_connection = True
        self._answer(status, PLAIN, f"{why}\n".encode())

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.connection.settimeout(self.server.bounds.request_seconds)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """To the log of this package, not to stderr."""
        logger.debug(format, *args)


def _line(error: LedgerError) -> bytes:
    return f"{' '.join(str(error).split())}\n".encode("utf-8", "replace")


def serve(server: WitnessServer) -> Callable[[], None]:
    """Serve in a thread; what is returned ends that."""
    thread = threading.Thread(target=partial(server.serve_forever, 0.05), daemon=True)
    thread.start()

    def end() -> None:
        server.shutdown()
        thread.join()
        server.server_close()

    return end
