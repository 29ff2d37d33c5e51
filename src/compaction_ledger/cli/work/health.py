"""A page on the health of a worker: `/live`, `/ready`, `/status`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from compaction_ledger.cli.documents.work import WorkStatusDocument

logger = logging.getLogger(__name__)

Ask = Callable[[], WorkStatusDocument]

READ_SECONDS = 5.0


@contextmanager
def health_page(host: str, port: int | None, ask: Ask) -> Generator[None]:
    """While this lasts, answer on ``port``, if there is one.

    `/live`: the process is there. `/ready`: it does its work (503 if not, with the reason). `/status`: all
    that is known, as JSON. Raises :class:`OSError` where the port is taken.
    """
    if port is None:
        yield
        return
    server = _Server((host, port), _handler(ask))
    thread = Thread(target=server.serve_forever, name="compaction-ledger health", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Who went away is nobody to complain about; anything else is a defect of ours."""
        error = sys.exception()
        if not isinstance(error, OSError):
            logger.error("the page on health met an error", exc_info=error)


def _handler(ask: Ask) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = READ_SECONDS
        server_version = "compaction-ledger"
        sys_version = ""

        def do_GET(self) -> None:
            """Answer."""
            if self.path == "/live":
                self._answer(HTTPStatus.OK, "text/plain", "live\n")
            elif self.path == "/ready":
                found = ask()
                status = HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(status, "text/plain", f"{found.trouble or 'ready'}\n")
            elif self.path == "/status":
                self._answer(HTTPStatus.OK, "application/json", ask().model_dump_json() + "\n")
            else:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", "/live, /ready, /status\n")

        def do_HEAD(self) -> None:
            """Answer, without a body."""
            self.do_GET()

        def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
            """Nothing: probes come every few seconds."""

    return Handler
