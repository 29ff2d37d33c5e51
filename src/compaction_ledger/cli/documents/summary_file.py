"""The file that `import-summary` reads: a summary made elsewhere, with what it is bound to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from compaction_ledger.domain.errors import MalformedRecord
from compaction_ledger.domain.identity import ModelIdentity

MAX_FILE_BYTES = 16 * 1024 * 1024


class SummaryModel(BaseModel):
    """The model that made the summary."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    provider: str
    name: str
    settings: dict[str, str] = Field(default_factory=dict)

    @property
    def identity(self) -> ModelIdentity:
        """As the ledger knows models. Raises :class:`InvalidInput`."""
        return ModelIdentity.of(self.provider, self.name, self.settings)


class SummaryFile(BaseModel):
    """One summary, bound by ``messages`` and ``source_hash`` or by ``bind``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    scope: str | None = Field(
        default=None, description="Else the scope that the command is called with."
    )
    conversation: str
    from_pair: Annotated[int, Field(ge=0, multiple_of=10)]
    messages: list[str] | None = Field(
        default=None,
        min_length=20,
        max_length=20,
        description="The twenty ids of the source: user, assistant, user, …",
    )
    source_hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    bind: Literal["current"] | None = Field(
        default=None, description="Bind the summary to the conversation as it is now."
    )
    model: SummaryModel
    prompt: str = Field(description="name@version")
    text: str
    origin: str = Field(description="Where the summary comes from.")

    @model_validator(mode="after")
    def _bound_in_one_way(self) -> SummaryFile:
        given = (self.messages is not None, self.source_hash is not None, self.bind is not None)
        if given not in ((True, True, False), (False, False, True)):
            raise ValueError('give either messages and source_hash, or "bind": "current"')
        return self


def read_summary_file(path: Path) -> SummaryFile:
    """Read and check the file. Raises :class:`MalformedRecord`, naming the member that is wrong."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise MalformedRecord(f"cannot be read: {error.strerror}", place=path.name) from error
    if len(data) > MAX_FILE_BYTES:
        raise MalformedRecord(f"is larger than {MAX_FILE_BYTES} bytes", place=path.name)
    try:
        return SummaryFile.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        member = ".".join(map(str, first["loc"]))
        raise MalformedRecord(
            first["msg"].removeprefix("Value error, "),
            place=f"{path.name}: {member}" if member else path.name,
        ) from error
