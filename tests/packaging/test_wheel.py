"""What a stranger installs: the files of the archives, and an import from an empty environment."""

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

LAYERS = ("domain", "infrastructure", "projections")

LOOK_AROUND = """
import json, sys
import compaction_ledger, compaction_ledger.domain, compaction_ledger.infrastructure
import compaction_ledger.projections, compaction_ledger.cli

json.dump({
    "files": [module.__file__ for name, module in sys.modules.items()
              if name.split(".")[0] == "compaction_ledger"],
    "bare": sorted({"domain", "infrastructure", "projections"} & set(sys.modules)),
}, sys.stdout)
"""


@dataclass(frozen=True)
class Archives:
    """The source archive, the wheel built from it, and the wheel built from the tree."""

    sdist: Path
    wheel: Path
    wheel_of_tree: Path


def run(*words: str | Path) -> str:
    done = subprocess.run(
        words,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def only(folder: Path, pattern: str) -> Path:
    [found] = folder.glob(pattern)
    return found


def digests(wheel: Path) -> dict[str, str]:
    """Each file of a wheel and the digest of its bytes."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def package_files(root: Path) -> set[str]:
    """What the wheel must hold, read off the tree."""
    homes = {layer: root / layer for layer in LAYERS} | {"": root / "src" / "compaction_ledger"}
    wanted = {
        Path("compaction_ledger", inside, file.relative_to(home)).as_posix()
        for inside, home in homes.items()
        for folder, _, names in os.walk(home)
        for file in (Path(folder, name) for name in names)
        if "__pycache__" not in file.parts and not file.name.startswith(".")
    }
    assert f"compaction_ledger/{LAYERS[0]}/__init__.py" in wanted
    return wanted


@pytest.fixture(scope="module")
def archives(repo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Archives:
    through_sdist, from_tree = tmp_path_factory.mktemp("sdist"), tmp_path_factory.mktemp("tree")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir")
    run(*build, through_sdist, repo_root)
    run(*build, from_tree, "--wheel", repo_root)
    return Archives(
        sdist=only(through_sdist, "*.tar.gz"),
        wheel=only(through_sdist, "*.whl"),
        wheel_of_tree=only(from_tree, "*.whl"),
    )


@pytest.fixture(scope="module")
def installed(archives: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and can see its dependencies."""
    home = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
        *("--no-deps", "--no-index", "--disable-pip-version-check", archives.wheel),
    )
    # A folder named in a .pth file is searched, but its own .pth files are not read: an editable
    # install in there stays unseen.
    packages = only(home, "lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return python


@pytest.mark.slow
def test_the_wheel_holds_the_files_of_the_tree_and_nothing_else(
    archives: Archives, repo_root: Path
) -> None:
    files = {name for name in digests(archives.wheel) if ".dist-info/" not in name}
    assert files == package_files(repo_root)
    for layer in LAYERS:
        assert f"compaction_ledger/{layer}/__init__.py" in files
    assert "compaction_ledger/py.typed" in files


def test_the_wheel_holds_every_sql_file(archives: Archives, repo_root: Path) -> None:
    written = {
        f"compaction_ledger/{file.relative_to(repo_root).as_posix()}"
        for layer in LAYERS
        for file in (repo_root / layer).rglob("*.sql")
    }
    assert {name for name in digests(archives.wheel) if name.endswith(".sql")} == written


def test_the_wheel_installs_one_name(archives: Archives) -> None:
    tops = {name.split("/")[0] for name in digests(archives.wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"compaction_ledger"}


def test_the_wheel_is_the_same_through_the_source_archive(archives: Archives) -> None:
    assert digests(archives.wheel) == digests(archives.wheel_of_tree)


def test_the_source_archive_holds_files_and_no_links(archives: Archives) -> None:
    with tarfile.open(archives.sdist) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    assert {f"{layer}/__init__.py" for layer in LAYERS} <= members.keys()
    assert {"pyproject.toml", "README.md", "LICENSE", "tests/conftest.py"} <= members.keys()
    assert [name for name, member in members.items() if not member.isfile()] == []


def test_the_wheel_imports_from_a_clean_environment(installed: Path) -> None:
    seen = json.loads(run(installed, "-I", "-c", LOOK_AROUND))
    home = installed.parents[1]
    assert seen["bare"] == []
    assert len(seen["files"]) > len(LAYERS)
    assert [file for file in seen["files"] if not Path(file).is_relative_to(home)] == []


@pytest.mark.slow
def test_the_installed_command_starts(installed: Path) -> None:
    assert "compaction-ledger" in run(installed.parent / "compaction-ledger", "--help")
    assert "compaction-ledger" in run(installed, "-I", "-m", "compaction_ledger", "--help")
