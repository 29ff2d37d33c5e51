"""How a command names the model that summarizes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from compaction_ledger.domain.ports import Summarizer

EXTRACTIVE = "extractive"

ModelOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="extractive (offline, built in), or provider:name, such as openai:gpt-5-mini.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Of a server, for openai-compatible:name and its like."),
]
ApiKeyEnvOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The environment variable that holds the provider's key."),
]
MaxTokensOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="The most tokens the model may answer with.")
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="How long one call of the model may take."),
]
UpgradeOption = Annotated[
    bool,
    typer.Option(
        "--upgrade", help="Ranges whose summary is of an older prompt version are due too."
    ),
]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What the options say about the model."""

    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    max_tokens: int | None = None
    timeout: float | None = None

    @contextmanager
    def open(self) -> Generator[Summarizer]:
        """The summarizer, closed at the end. Raises :class:`InvalidSetting`."""
        from compaction_ledger import composition
        from compaction_ledger.domain.errors import InvalidSetting

        settings = asdict(self)
        name = settings.pop("model")
        if name != EXTRACTIVE:
            with composition.model_summarizer(name, **settings) as summarizer:
                yield summarizer
            return
        for option, given in settings.items():
            if given is not None:
                raise InvalidSetting(
                    "is for models of a provider, name one with --model",
                    place=f"--{option.replace('_', '-')}",
                )
        yield composition.default_summarizer()
