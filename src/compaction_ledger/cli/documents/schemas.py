"""The JSON Schema of each document. The committed ones in ``docs/schemas`` are made from here."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, cast

from pydantic import BaseModel

from compaction_ledger.cli.demo.document import DemoDocument
from compaction_ledger.cli.documents.backfill import BackfillDocument
from compaction_ledger.cli.documents.checking import CheckDocument
from compaction_ledger.cli.documents.common import Document
from compaction_ledger.cli.documents.compaction import CompactDocument, ImportSummaryDocument
from compaction_ledger.cli.documents.delivered import DeliveredDocument
from compaction_ledger.cli.documents.diff import DiffDocument
from compaction_ledger.cli.documents.erasing import EraseDocument
from compaction_ledger.cli.documents.exporting import ExportDocument
from compaction_ledger.cli.documents.history import WindowSearchDocument
from compaction_ledger.cli.documents.operating import MigrateDocument, StatusDocument
from compaction_ledger.cli.documents.records import LogDocument, RangesDocument, ShowDocument
from compaction_ledger.cli.documents.replay import ReplayDocument
from compaction_ledger.cli.documents.requests import AssembleDocument
from compaction_ledger.cli.documents.signing import (
    CheckpointDocument,
    KeysDocument,
    ProveDocument,
)
from compaction_ledger.cli.documents.summary_file import SummaryFile
from compaction_ledger.cli.documents.transcripts import ImportDocument, PlanDocument
from compaction_ledger.cli.documents.upkeep import (
    ErrorDocument,
    RebuildDocument,
    VerifyDocument,
    VersionDocument,
)
from compaction_ledger.cli.documents.windows import WindowShowDocument
from compaction_ledger.cli.documents.witness import WitnessServeDocument, WitnessShowDocument
from compaction_ledger.cli.documents.work import WorkDocument, WorkStatusDocument
from compaction_ledger.cli.window_demo.document import WindowDemoDocument

DOCUMENTS: dict[str, type[BaseModel]] = {
    "demo": DemoDocument,
    "import": ImportDocument,
    "backfill": BackfillDocument,
    "plan": PlanDocument,
    "compact": CompactDocument,
    "work": WorkDocument,
    "work-status": WorkStatusDocument,
    "assemble": AssembleDocument,
    "ranges": RangesDocument,
    "show": ShowDocument,
    "log": LogDocument,
    "replay": ReplayDocument,
    "diff": DiffDocument,
    "delivered": DeliveredDocument,
    "status": StatusDocument,
    "verify": VerifyDocument,
    "export": ExportDocument,
    "erase": EraseDocument,
    "checkpoint": CheckpointDocument,
    "prove": ProveDocument,
    "keys": KeysDocument,
    "rebuild": RebuildDocument,
    "migrate": MigrateDocument,
    "import-summary": ImportSummaryDocument,
    "check": CheckDocument,
    "window-demo": WindowDemoDocument,
    "window-show": WindowShowDocument,
    "window-search": WindowSearchDocument,
    "witness-serve": WitnessServeDocument,
    "witness-show": WitnessShowDocument,
    "version": VersionDocument,
    "error": ErrorDocument,
}
"""What is printed, by the command's name; ``error`` is what any of them may print instead."""

FILES: dict[str, type[BaseModel]] = {"summary-file": SummaryFile}
"""What is read."""


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas by name, with the members' docstrings as descriptions."""
    return {
        **{name: _schema(model, "serialization") for name, model in DOCUMENTS.items()},
        **{name: _schema(model, "validation") for name, model in FILES.items()},
    }


def _schema(model: type[BaseModel], mode: Literal["serialization", "validation"]) -> dict[str, Any]:
    schema = model.model_json_schema(mode=mode)
    described = {part.__name__: _member_docstrings(part) for part in _parts(Document)}
    for name, part in ((model.__name__, schema), *schema.get("$defs", {}).items()):
        for member, text in described.get(name, {}).items():
            part["properties"][member].setdefault("description", text)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _parts(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for part in base.__subclasses__():
        yield part
        yield from _parts(part)


def _member_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The string behind each annotated member, read from the source: a command need not know it."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    found: dict[str, str] = {}
    for member, following in pairwise(cast(ast.ClassDef, definition).body):
        match member, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = text
            case _:
                pass
    return found
