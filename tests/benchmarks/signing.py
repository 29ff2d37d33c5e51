"""What it costs to sign a log, and to prove an event of it (K1, K2): it must not grow with the log."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from signed_logs import SignedLog, add_leaves, signed_log
from timing import median

Figures = dict[str, float]
SIZES = (1_000, 100_000, 1_000_000)
NEW = 10
"""So many events are new each time."""


def figures(rounds: int) -> Figures:
    """Milliseconds for a checkpoint at each size, with ten new events, and for a proof at the largest."""
    found: Figures = {}
    for size in SIZES:
        with (
            tempfile.TemporaryDirectory() as folder,
            signed_log(Path(folder), size) as log,
        ):
            began = time.perf_counter()
            log.signer().sign()
            found[f"checkpoint_first_s_{size}"] = time.perf_counter() - began
            found[f"checkpoint_signing_ms_{size}"] = 1e3 * median(_signing(log, rounds))
            if size == max(SIZES):
                found["inclusion_proof_ms"] = 1e3 * median(_proving(log, 20 * rounds))
    small, large = (found[f"checkpoint_signing_ms_{size}"] for size in (min(SIZES), max(SIZES)))
    found["checkpoint_signing_growth"] = large / small
    return found


def _signing(log: SignedLog, rounds: int) -> list[float]:
    seconds: list[float] = []
    for _ in range(rounds):
        add_leaves(log.path, NEW)
        signer = log.signer()
        began = time.perf_counter()
        signer.sign()
        seconds.append(time.perf_counter() - began)
    return seconds


def _proving(log: SignedLog, rounds: int) -> list[float]:
    source = random.Random(1)
    seconds: list[float] = []
    for _ in range(rounds):
        index = source.randrange(max(SIZES))
        began = time.perf_counter()
        (proof,) = log.prover().inclusion([index])
        proof.encode()
        seconds.append(time.perf_counter() - began)
    return seconds
