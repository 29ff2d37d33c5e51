"""What every test may ask for."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# For mutation testing: few examples, the same ones each time, and nothing that depends on the time they take.
settings.register_profile(
    "mutation",
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# Otherwise as many as is usual; but an example that takes its time on a busy machine is no failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "busy")

# Whoever starts the tests in the background may have SIGINT ignored, and that goes down to every program that
# they start. A handler of our own goes no further: programs find the signal as it is usually.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


# Where the keys of ledgers on PostgreSQL are by default: not among the user's own things.
_state = tempfile.TemporaryDirectory(prefix="compaction-ledger-state-")
os.environ["XDG_STATE_HOME"] = _state.name


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """What ``-n auto`` means: three processes for two cores, as many tests wait for others."""
    named = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    if named:
        return int(named)
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return -(-3 * cores // 2)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked ``slow_on("postgres")`` is slow in its cases of that name, and in no others."""
    for item in items:
        case = item.name.partition("[")[2].rstrip("]").split("-")
        if any(name in case for mark in item.iter_markers("slow_on") for name in mark.args):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The folder that holds pyproject.toml."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public transcripts: beside the repository, or where the variable says."""
    named = os.environ.get("COMPACTION_LEDGER_CORPUS")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no public transcripts at {folder}; name a folder in COMPACTION_LEDGER_CORPUS")
    return folder
