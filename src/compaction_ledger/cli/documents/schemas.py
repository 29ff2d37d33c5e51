"""The JSON Schema of each document. The committed ones in ``docs/schemas`` are made from here."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from compaction_ledger.cli.demo.document import DemoDocument
from compaction_ledger.cli.documents.compaction import CompactDocument, ImportSummaryDocument
from compaction_ledger.cli.documents.records import LogDocument, RangesDocument, ShowDocument
from compaction_ledger.cli.documents.requests import AssembleDocument
from compaction_ledger.cli.documents.summary_file import SummaryFile
from compaction_ledger.cli.documents.transcripts import ImportDocument, PlanDocument
from compaction_ledger.cli.documents.upkeep import (
    ErrorDocument,
    RebuildDocument,
    VerifyDocument,
    VersionDocument,
)

DOCUMENTS: dict[str, type[BaseModel]] = {
    "demo": DemoDocument,
    "import": ImportDocument,
    "plan": PlanDocument,
    "compact": CompactDocument,
    "assemble": AssembleDocument,
    "ranges": RangesDocument,
    "show": ShowDocument,
    "log": LogDocument,
    "verify": VerifyDocument,
    "rebuild": RebuildDocument,
    "import-summary": ImportSummaryDocument,
    "version": VersionDocument,
    "error": ErrorDocument,
}
"""What is printed, by the command's name; ``error`` is what any of them may print instead."""

FILES: dict[str, type[BaseModel]] = {"summary-file": SummaryFile}
"""What is read."""


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas by name."""
    made: dict[str, dict[str, Any]] = {}
    for mode, models in (("serialization", DOCUMENTS), ("validation", FILES)):
        for name, model in models.items():
            schema = model.model_json_schema(
                mode="serialization" if mode == "serialization" else "validation"
            )
            made[name] = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return made
