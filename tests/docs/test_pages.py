"""Every block that a page shows for running is run, and every link leads somewhere."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = pages.markdown(ROOT)
RUN = [page for page in PAGES if any(block.runs for block in pages.blocks(page))]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _is_slow(page: Path) -> bool:
    """Whether it starts commands, each of which is a process; the README is run every time."""
    commands = any(block.runs and block.words[0] == "console" for block in pages.blocks(page))
    return commands and page.name != "README.md"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * _is_slow(page)) for page in RUN],
    ids=_name,
)
def test_what_a_page_shows_is_what_happens(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COMPACTION_LEDGER", raising=False)
    reader = pages.Reader(folder, pages.environment(tmp_path / "shims"))
    for block in pages.blocks(page):
        if block.runs:
            reader.run(block)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in pages.links(page):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} in {_name(page)}"
        if anchor:
            assert anchor in pages.anchors(target), f"{link} in {_name(page)}"


def test_every_page_can_be_reached() -> None:
    """From the README, by links alone."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        waiting += [
            (page.parent / link.partition("#")[0]).resolve()
            for link in pages.links(page)
            if not link.startswith(("https://", "http://", "#"))
        ]
    unreached = {_name(page) for page in PAGES if page not in seen and page.parent != ROOT}
    assert not unreached


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("one\ntwo\n", "one\ntwo"),
        ("index 12, abc\n", "index …, abc"),
        ("a\nb\nc\nd\n", "a\n…\nd"),
        ("a\nd\n", "a\n…\nd"),
        ("a\nb\nc\n", "a\n…"),
        ("cut…\n", "cut…"),
    ],
)
def test_comparison_accepts(printed: str, shown: str) -> None:
    pages.compare(printed, shown, "here")


@pytest.mark.parametrize(
    ("printed", "shown"),
    [("one\ntwo\n", "one"), ("1.5\n", "125"), ("a\nb\n", "a…b"), ("b\n", "a\n…")],
)
def test_comparison_refuses(printed: str, shown: str) -> None:
    with pytest.raises(AssertionError, match="here"):
        pages.compare(printed, shown, "here")
