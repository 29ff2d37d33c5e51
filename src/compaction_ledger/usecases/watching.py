"""What is told of conversations, ranges and attempts (see the module on telemetry)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import perf_counter

from compaction_ledger.domain.errors import LedgerError, Refused
from compaction_ledger.domain.events import AttemptFailed, RangeCompleted, RangeFact
from compaction_ledger.domain.finish import Answer, FailureCode, failures
from compaction_ledger.domain.identity import Job, ModelIdentity
from compaction_ledger.domain.ports import Log, ReadModels, WorkList
from compaction_ledger.usecases.telemetry import Attributes, OfJob, OfModel, Span, Telemetry

Answered = Callable[[Answer, tuple[FailureCode, ...]], None]
"""Called with the answer of a model as soon as it is there, and what was found in one that ended well."""


def of_model(model: ModelIdentity) -> OfModel:
    """Which model it is about; its settings are not told."""
    return {"provider": model.provider, "model": model.name}


def of_job(job: Job) -> OfJob:
    """Which range, model and prompt version it is about, and nothing that says whose."""
    return {
        "provider": job.model.provider,
        "model": job.model.name,
        "from_pair": job.from_pair,
        "to_pair": job.to_pair,
        "prompt_name": job.prompt.name,
        "prompt_version": str(job.prompt.version),
    }


@contextmanager
def watched_call(telemetry: Telemetry, job: Job, number: int | None) -> Generator[Answered]:
    """Around one call of a model, the ``number``-th attempt at ``job``.

    An answer that breaks the contract has failed (C4), as has a call that raises.
    """
    model = of_model(job.model)
    began = perf_counter()
    failed: str | None = "provider_error"
    with telemetry.span("attempt", attempt=number, **of_job(job)) as span:

        def answered(answer: Answer, found: tuple[FailureCode, ...] = ()) -> None:
            nonlocal failed
            codes = failures(answer) or found
            failed = codes[0] if codes else None
            _tell_answer(telemetry, span, answer, model)

        try:
            yield answered
        except BaseException as error:
            failed = "provider_error" if isinstance(error, Exception) else "cancelled"
            raise
        finally:
            span.tell(error=failed)
            telemetry.record("attempt_seconds", perf_counter() - began, error=failed, **model)


def _tell_answer(telemetry: Telemetry, span: Span, answer: Answer, model: OfModel) -> None:
    """How it ended and what was counted; of the text nothing. Where no end was told, that is an error."""
    finish, usage = answer.finish.signals or ("error",), answer.usage
    span.tell(finish=finish, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    if usage.input_tokens is not None:
        telemetry.count("input_tokens", usage.input_tokens, **model)
    if usage.output_tokens is not None:
        telemetry.count("output_tokens", usage.output_tokens, **model)


@contextmanager
def counted_claim(telemetry: Telemetry, job: Job) -> Generator[None]:
    """Around the making of a claim: counts refusals, by reason."""
    try:
        yield
    except Refused as refusal:
        telemetry.count("claims_refused", error=refusal.code, **of_model(job.model))
        raise


@contextmanager
def counted_finish(telemetry: Telemetry, job: Job) -> Generator[list[RangeFact]]:
    """Around the recording of how an attempt ended, which the facts say that are put into the list.

    ``refused``: it came too late, or another was first. ``unrecorded``: the store could not take it.
    """
    facts: list[RangeFact] = []
    model = of_model(job.model)
    try:
        yield facts
    except LedgerError as error:
        result = "refused" if isinstance(error, Refused) else "unrecorded"
        telemetry.count("attempts", result=result, error=error.code, **model)
        raise
    for fact in facts:
        if isinstance(fact, AttemptFailed):
            telemetry.count("attempts", result="failed", error=fact.failure, **model)
        elif isinstance(fact, RangeCompleted):
            telemetry.count("attempts", result="completed", **model)


class Gauges:
    """The present numbers of an open ledger, read when somebody asks for them."""

    def __init__(self, log: Log, read_models: ReadModels, work: WorkList) -> None:
        self._log = log
        self._read_models = read_models
        self._work = work

    def read(self, gauge: str) -> list[tuple[int, Attributes]]:
        """Raises kinds of :class:`StoreError`, and whatever belongs to a ledger that is closed."""
        if gauge == "projection_lag":
            position = self._read_models.position()  # before the log, which only grows
            return [(max(0, self._log.size() - position), {})]
        backlog = self._work.backlog()
        return [
            (backlog.due, {"state": "due"}),
            (backlog.leased, {"state": "leased"}),
            (backlog.waiting, {"state": "waiting"}),
        ]
