"""Serving a witness from the command line: ended by a signal, never in the middle of an answer."""

from __future__ import annotations

import signal
from collections.abc import Callable
from socketserver import BaseServer
from threading import Thread


def serve_until_stopped(server: BaseServer, listening: Callable[[], None]) -> None:
    """Serve, call ``listening`` once that is so, and end at SIGTERM or SIGINT.

    What was kept is kept before it is answered: an answer that is cut off is asked for again.
    """
    thread = Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    waited_for = {signal.SIGTERM, signal.SIGINT}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    try:
        thread.start()
        listening()
        signal.sigwait(waited_for)
    finally:
        if thread.ident is not None:
            server.shutdown()
            thread.join()
        server.server_close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
