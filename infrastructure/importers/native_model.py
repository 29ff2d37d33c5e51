"""The records of the native format. ``native.schema.json`` is made from them (a test compares)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from compaction_ledger.domain.conversation import MessageKind, MessageStatus, Role, RunState
from compaction_ledger.domain.identifiers import MAX_ID_CHARACTERS

Id = Annotated[
    str,
    Field(
        description=(
            "1 to 512 characters of well-formed text without control characters (E4); checked when "
            "the file is read, with the line named."
        ),
        json_schema_extra={"minLength": 1, "maxLength": MAX_ID_CHARACTERS},
    ),
]


class NativeRecord(BaseModel):
    """What all records have in common: no unknown key, no conversion."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ConversationRecord(NativeRecord):
    """The conversation. Optional; if present, it is the first record."""

    type: Literal["conversation"]
    id: Id
    title: str | None = None


class RunRecord(NativeRecord):
    """A run and its state as it is now. May stand anywhere, once per run."""

    type: Literal["run"]
    id: Id
    state: RunState


class MessageRecord(NativeRecord):
    """A message. The order of these records is the order of the conversation (E3)."""

    type: Literal["message"]
    id: Id
    run: Id = Field(description="The run that this message belongs to.")
    role: Role
    status: MessageStatus = "completed"
    kind: MessageKind = "chat"
    text: str = Field(
        description="Kept exactly (E6). Lone surrogates and NUL are written as \\u escapes."
    )
    created_at: str | None = Field(
        default=None,
        description="ISO 8601 with an offset from UTC. Digits beyond the microsecond are cut off.",
        json_schema_extra={"format": "date-time"},
    )


AnyRecord = ConversationRecord | RunRecord | MessageRecord
RECORD: TypeAdapter[AnyRecord] = TypeAdapter(Annotated[AnyRecord, Field(discriminator="type")])


def json_schema() -> dict[str, Any]:
    """The JSON Schema of one line of a native file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of a native Compaction Ledger file",
        **RECORD.json_schema(),
    }
