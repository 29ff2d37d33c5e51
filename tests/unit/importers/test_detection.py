"""Finding the format: beyond doubt or not at all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import write_document, write_lines

from compaction_ledger.domain.errors import (
    DuplicateMessageId,
    InvalidInput,
    InvalidSetting,
    MalformedRecord,
)
from compaction_ledger.domain.identifiers import is_well_formed
from compaction_ledger.infrastructure import importers
from compaction_ledger.infrastructure.importers import (
    IMPORTERS,
    MAX_DOCUMENT_BYTES,
    REASONS,
    detect,
    importer_named,
    reading,
)

NAMES = [importer.name for importer in IMPORTERS]


def fixture(repo_root: Path, name: str) -> Path:
    (path,) = (repo_root / "tests" / "fixtures" / "importers").glob(f"{name}.*")
    return path


def test_the_registry_is_sorted_and_describes_itself() -> None:
    assert sorted(NAMES) == NAMES
    assert all(importer.description and "\n" not in importer.description for importer in IMPORTERS)


def test_the_public_names() -> None:
    assert list(importers.__all__) == sorted(importers.__all__, key=lambda n: (not n.isupper(), n))
    assert all(hasattr(importers, name) for name in importers.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_found_and_documented(repo_root: Path, name: str) -> None:
    assert detect(fixture(repo_root, name)).name == name
    assert importer_named(name).name == name
    page = (repo_root / "docs" / "reference" / "import-formats.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page


def test_every_reason_is_documented(repo_root: Path) -> None:
    page = (repo_root / "docs" / "reference" / "import-formats.md").read_text(encoding="utf-8")
    for reason, meaning in REASONS.items():
        assert f"| `{reason}` | {meaning} |" in page


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidSetting) as caught:
        importer_named("csv")
    assert ", ".join(NAMES) in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        5,
        [],
        {},
        [[]],
        {"a": 1},
        [{"a": 1}],
        {"messages": []},
        [{"role": "user"}],
        [{"role": "client", "content": "x"}],
        [{"role": "tool", "content": [{"type": "tool_result"}]}],
    ],
)
def test_what_is_of_no_known_format_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(MalformedRecord, match="is of no known format; name one of") as caught:
        detect(write_document(tmp_path / "x.json", value))
    assert ", ".join(NAMES) in str(caught.value)


def test_what_could_be_two_formats_is_refused(tmp_path: Path) -> None:
    both = {"prompt": "x", "answer": "y", "type": "run", "id": "r", "state": "completed"}
    with pytest.raises(MalformedRecord, match="could be native, pairs; name one of"):
        detect(write_lines(tmp_path / "x.jsonl", [both]))


@pytest.mark.parametrize("data", [b"", b"\n", b"{", b'{"a": 1', b"[1, 2", b"text", b"\xff\xfe{}"])
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(MalformedRecord, match=r"^x\.json: "):
        detect(path)


def test_a_document_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_DOCUMENT_BYTES == 256 * 1024 * 1024
    monkeypatch.setattr(reading, "MAX_DOCUMENT_BYTES", 100)
    path = write_document(tmp_path / "x.json", ["x" * 100])
    with pytest.raises(MalformedRecord, match=r"x\.json: is larger than 100 bytes"):
        detect(path)


def test_a_name_that_is_no_text_is_shown_escaped(tmp_path: Path) -> None:
    with pytest.raises(MalformedRecord, match=r"a\\udcff\.json: cannot be read"):
        detect(tmp_path / "a\udcff.json")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["\ud83d", "user", "text", "tool_use"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def damage(data: st.DataObject, value: Any) -> Any:
    """``value`` with one place in it replaced, removed or doubled."""
    if isinstance(value, dict) and value:
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.booleans()):
            return {**value, key: damage(data, value[key])}
        if data.draw(st.booleans()):
            return {other: each for other, each in value.items() if other != key}
    if isinstance(value, list) and value:
        at = data.draw(st.integers(0, len(value) - 1))
        if data.draw(st.booleans()):
            return [*value[:at], damage(data, value[at]), *value[at + 1 :]]
        if data.draw(st.booleans()):
            return [*value[:at], *value[at:][:1], *value[at:]]
    return data.draw(json_values)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_by_name(
    repo_root: Path, tmp_path: Path, name: str, data: st.DataObject
) -> None:
    """Bad input is always a typed error with a place, and an accepted file is accounted for."""
    path = fixture(repo_root, name)
    text = path.read_text(encoding="utf-8")
    broken = tmp_path / path.name
    if path.suffix == ".jsonl":
        write_lines(broken, damage_lines(data, [json.loads(line) for line in text.splitlines()]))
    else:
        write_document(broken, damage(data, json.loads(text)))
    importer = importer_named(name)
    for problem in (problem_of(detect, broken), problem_of(importer.read, broken)):
        if problem is not None:
            assert problem.place or isinstance(problem, DuplicateMessageId)
            assert is_well_formed(str(problem))
    if problem_of(importer.read, broken) is None:
        report = importer.read(broken).report
        assert report.records == report.imported + report.left_out_records
        assert all(is_well_formed(f"{each.place}{each.detail}") for each in report.left_out)


def problem_of(step: Callable[[Path], object], path: Path) -> InvalidInput | None:
    """The typed error of a step, if it has one. Any other error fails the test."""
    try:
        step(path)
    except InvalidInput as error:
        return error
    return None


def damage_lines(data: st.DataObject, values: list[Any]) -> list[Any]:
    at = data.draw(st.integers(0, len(values) - 1))
    return [*values[:at], damage(data, values[at]), *values[at + 1 :]]
