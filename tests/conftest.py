"""What every test may ask for."""

import os
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
if profile := os.environ.get("HYPOTHESIS_PROFILE"):
    settings.load_profile(profile)

ROOT = Path(__file__).resolve().parents[1]


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
