"""Real HTTP servers on the loopback interface that behave as a provider at its worst."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


@dataclass
class ModelServer:
    """A running server: its address, the requests it got, and what they wait for."""

    url: str
    asked: Event = field(default_factory=Event)
    answer: Event = field(default_factory=Event)
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@contextmanager
def model_server(
    text: str = "",
    *,
    status: int = 200,
    finish: str = "stop",
    hangs: bool = False,
    waits: bool = False,
) -> Iterator[ModelServer]:
    """A server that speaks OpenAI Chat Completions; one that ``hangs`` never answers.

    One that ``waits`` answers when ``answer`` is set.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            served.requests.append(json.loads(self.rfile.read(length)))
            served.asked.set()
            if hangs or waits:
                served.answer.wait(60)
            if hangs:
                return
            body = json.dumps(_completion(text, finish) if status == 200 else _error()).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = ModelServer(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.answer.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _completion(text: str, finish: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def _error() -> dict[str, Any]:
    return {"error": {"message": "try later", "type": "server_error", "param": None, "code": None}}
