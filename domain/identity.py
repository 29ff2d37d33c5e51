"""Identity of a job (I1, I2): what exactly was summarised, by which model, under which prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction_ledger.domain.binding import message_ids, source_hash
from compaction_ledger.domain.canonical import encode_ordered, tagged_sha256, utf16_units
from compaction_ledger.domain.conversation import PAIRS_PER_RANGE, Pair
from compaction_ledger.domain.errors import InvalidInput, InvalidJob
from compaction_ledger.domain.identifiers import check_id, check_ids, is_hash, is_well_formed

JOB_TAG = b"compaction-ledger/job/v1"
_PROMPT = re.compile(r"([^@\s]+)@([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Provider, model name, and the settings that change output, as strings, in canonical order."""

    provider: str
    name: str
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls, provider: str, name: str, settings: Mapping[str, str] | None = None
    ) -> ModelIdentity:
        """Make and check an identity; raises :class:`InvalidInput` on text that cannot be stored."""
        check_id(provider, "model provider")
        check_id(name, "model name")
        pairs = tuple(sorted((settings or {}).items(), key=lambda item: utf16_units(item[0])))
        for key, value in pairs:
            _check_setting(key, value)
        return cls(provider, name, pairs)

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class PromptVersion:
    """A prompt's name and version, written ``name@version``."""

    name: str
    version: int

    @classmethod
    def parse(cls, text: str) -> PromptVersion:
        """Read ``name@version``; raises :class:`InvalidInput`."""
        match = _PROMPT.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{text!r} is not of the form name@version", place="prompt")
        return cls(check_id(match[1], "prompt name"), int(match[2]))

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Job:
    """One summary to be made: a source, a model, a prompt version.

    A plain record: what is read from history is not judged again (A10). :func:`check_job` judges new ones.
    """

    scope: str
    conversation: str
    from_pair: int
    to_pair: int
    messages: tuple[str, ...]
    source_hash: str
    model: ModelIdentity
    prompt: PromptVersion

    @property
    def key(self) -> tuple[str, str, int]:
        """Its stream: scope, conversation, first pair."""
        return (self.scope, self.conversation, self.from_pair)

    def check(self) -> None:
        """As :func:`check_job`."""
        check_job(self)

    @property
    def identity(self) -> str:
        """The job's digest, lower-case hexadecimal (I1)."""
        return tagged_sha256(
            JOB_TAG,
            encode_ordered(  # keys in canonical order
                {
                    "conversation": self.conversation,
                    "from": self.from_pair,
                    "messages": self.messages,
                    "model": {
                        "name": self.model.name,
                        "provider": self.model.provider,
                        "settings": dict(self.model.settings),
                    },
                    "prompt": str(self.prompt),
                    "scope": self.scope,
                    "source": self.source_hash,
                    "to": self.to_pair,
                    "v": 1,
                }
            ),
        )


def job_for(
    scope: str,
    conversation: str,
    pairs: Sequence[Pair],
    model: ModelIdentity,
    prompt: PromptVersion,
) -> Job:
    """The job of summarising these ten consecutive ``pairs``."""
    return Job(
        scope=scope,
        conversation=conversation,
        from_pair=pairs[0].index,
        to_pair=pairs[-1].index,
        messages=message_ids(pairs),
        source_hash=source_hash(scope, conversation, pairs),
        model=model,
        prompt=prompt,
    )


def check_job(job: Job) -> None:
    """A7: aligned, ten pairs, twenty unique ids. Raises :class:`InvalidJob` or :class:`InvalidId`."""
    check_id(job.scope, "scope")
    check_id(job.conversation, "conversation")
    check_ids(job.messages, "message id")
    if job.from_pair < 0 or job.from_pair % PAIRS_PER_RANGE:
        raise InvalidJob(
            f"a range begins on a multiple of {PAIRS_PER_RANGE}, not at {job.from_pair}"
        )
    if job.to_pair - job.from_pair + 1 != PAIRS_PER_RANGE:
        raise InvalidJob(f"a range is {PAIRS_PER_RANGE} pairs, not {job.from_pair}..{job.to_pair}")
    if len(job.messages) != 2 * PAIRS_PER_RANGE or len(set(job.messages)) != 2 * PAIRS_PER_RANGE:
        raise InvalidJob(
            f"a range has {2 * PAIRS_PER_RANGE} unique message ids, not {len(set(job.messages))}"
        )
    if not is_hash(job.source_hash):
        raise InvalidJob("the source hash is not 64 lower-case hexadecimal digits")
    check_model(job.model)
    PromptVersion.parse(str(job.prompt))


def check_model(model: ModelIdentity) -> None:
    """Raises :class:`InvalidJob`, or :class:`InvalidInput` on text that cannot be stored."""
    if ModelIdentity.of(model.provider, model.name, dict(model.settings)) != model:
        raise InvalidJob("the model's settings are not unique and in canonical order")


def _check_setting(key: str, value: object) -> None:
    check_id(key, "model setting")
    if not isinstance(value, str) or not is_well_formed(value):
        raise InvalidInput("must be well-formed text", place=f"model setting {key!r}")
