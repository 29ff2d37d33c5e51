"""Importers: files that other programs wrote, made into conversations of messages and runs."""

from compaction_ledger.infrastructure.importers.interface import (
    REASONS,
    ImportedConversation,
    Importer,
    ImportReport,
    ImportResult,
    LeftOutRecord,
    ReasonCode,
)
from compaction_ledger.infrastructure.importers.native_writer import native_lines, write_native
from compaction_ledger.infrastructure.importers.reading import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES
from compaction_ledger.infrastructure.importers.registry import IMPORTERS, detect, importer_named

__all__ = [
    "IMPORTERS",
    "MAX_DOCUMENT_BYTES",
    "MAX_LINE_BYTES",
    "REASONS",
    "ImportReport",
    "ImportResult",
    "ImportedConversation",
    "Importer",
    "LeftOutRecord",
    "ReasonCode",
    "detect",
    "importer_named",
    "native_lines",
    "write_native",
]
