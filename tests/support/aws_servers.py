"""Servers that speak the protocols of S3 and DynamoDB over HTTP, on the loopback interface: moto's.

One server serves both, in a thread of the test process; other processes reach it by its address. One
request is answered after the other, so that a condition is judged and a write done in one step, as in the
real services.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from threading import Lock, Thread
from typing import Any

import boto3
import pytest
from botocore.config import Config

REGION = "eu-central-1"
_names = count()


@contextmanager
def running_aws() -> Iterator[str]:
    """The address of a server of S3 and DynamoDB that is ended with the context."""
    why = "moto and its server are not installed"
    moto_server = pytest.importorskip("moto.moto_server.werkzeug_app", reason=why)
    inner = moto_server.DomainDispatcherApplication(moto_server.create_backend_app)
    turn = Lock()

    def app(environ: Mapping[str, Any], start_response: Any) -> list[bytes]:
        with turn:
            answer = inner(environ, start_response)
            try:
                return list(answer)
            finally:
                if hasattr(answer, "close"):
                    answer.close()

    with serving(app) as url:
        yield url


@contextmanager
def answering(status: int, body: bytes, content_type: str = "application/xml") -> Iterator[str]:
    """The address of a server that gives this answer to whatever it is asked."""

    def app(environ: Mapping[str, Any], start_response: Any) -> list[bytes]:
        start_response(f"{status} said", [("Content-Type", content_type)])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    with serving(app) as url:
        yield url


@contextmanager
def serving(app: Any, certificate: tuple[str, str] | None = None) -> Iterator[str]:
    """The address of a server for a WSGI application, ended with the context.

    With the paths of a certificate and its key it speaks TLS.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    werkzeug = pytest.importorskip("werkzeug.serving", reason="werkzeug is not installed")
    server = werkzeug.make_server("127.0.0.1", 0, app, threaded=True, ssl_context=certificate)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client(kind: str, url: str, *, tries: int = 3, read_timeout: float = 20) -> Any:
    """A client of ``s3`` or ``dynamodb`` at ``url``."""
    return _session().client(
        kind,
        endpoint_url=url,
        config=Config(
            connect_timeout=5,
            read_timeout=read_timeout,
            retries={"mode": "standard", "total_max_attempts": tries},
        ),
    )


@cache
def _session() -> Any:
    """What clients are made by: it has read their descriptions once."""
    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)


def fresh_name() -> str:
    """A name that no bucket or table of this process has yet."""
    return f"ledger-{next(_names)}"


def make_bucket(s3: Any, name: str) -> None:
    """An empty bucket."""
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
