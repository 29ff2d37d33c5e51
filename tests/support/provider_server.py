"""A real HTTP server on the loopback interface that answers as a model provider would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server sends back. ``hang``: nothing, until the server is closed."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = "application/json"
    hang: bool = False
    drop: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """What the server was sent."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


class ProviderServer:
    """Gives the same ``reply`` to every request until it is changed, and keeps what it received."""

    def __init__(self, reply: Reply | None = None) -> None:
        self.reply = reply or Reply()
        self.received: list[Received] = []
        self.arrived = Event()
        self.closing = Event()
        self._server = _server(self)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _server(owner: ProviderServer) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            headers = {name.lower(): value for name, value in self.headers.items()}
            owner.received.append(Received(self.path, headers, self.rfile.read(length)))
            owner.arrived.set()
            reply = owner.reply
            if reply.hang or reply.drop:
                if reply.hang:
                    owner.closing.wait(30)
                self.close_connection = True
                return
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def completion(
    content: str | None = "A summary.",
    finish: str | None = "stop",
    *,
    message: Mapping[str, object] | None = None,
    choices: int = 1,
) -> Reply:
    """A Chat Completions body. ``message`` adds to the message's fields."""
    said = {"role": "assistant", "content": content, **(message or {})}
    choice = {"index": 0, "finish_reason": finish, "message": said}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [choice] * choices,
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
    return Reply(json.dumps(body).encode())


def anthropic_message(
    content: list[dict[str, object]], stop_reason: str | None, **fields: object
) -> Reply:
    """An Anthropic Messages body."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
        **fields,
    }
    return Reply(json.dumps(body).encode())


def converse_message(text: str, stop_reason: str) -> Reply:
    """A Bedrock Converse body."""
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": stop_reason,
        "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18},
        "metrics": {"latencyMs": 1},
    }
    return Reply(json.dumps(body).encode())
