"""When a window is compacted and how much is kept (T3): one frozen value, checked, recorded with each
claim.
"""

from __future__ import annotations

from dataclasses import dataclass

from compaction_ledger.domain.errors import InvalidPolicy

Outgrown = str
REGROUP, LEAVE_TO_SEARCH = "regroup", "search"


@dataclass(frozen=True, slots=True)
class BudgetNumbers:
    """The numbers as recorded with a claim. Not checked: old history loads for ever (A10)."""

    limit: int
    trigger: int
    keep: int
    summaries: int


@dataclass(frozen=True, slots=True)
class WindowBudget:
    """All in tokens, as the window's counter counts them. Raises :class:`InvalidPolicy` on construction.

    ``limit``: no request goes beyond it (T5, T6), what stands apart from the messages (system prompt,
    tools) included in so far as it is told. ``trigger``: from here on a chunk is planned (default: 70 % of
    the limit). ``keep``: about so much of the newest turns stays as it is (default 40 %). ``summaries``:
    when all blocks together, without their pins, are above this, the oldest are regrouped (T8) or, with
    ``when_outgrown="search"``, left to search (default 20 %); counted without corrections, so that what is
    left to search stays so (T10). ``externalize_over``: a tool result of more
    bytes is kept apart and stands in requests as a stub (T14); ``None``: never.
    """

    limit: int
    trigger: int = 0
    keep: int = 0
    summaries: int = 0
    when_outgrown: Outgrown = REGROUP
    externalize_over: int | None = None

    def __post_init__(self) -> None:
        if type(self.limit) is not int:
            raise InvalidPolicy(f"limit must be a whole number of tokens, not {self.limit!r}")
        for name, share in (("trigger", 70), ("keep", 40), ("summaries", 20)):
            if getattr(self, name) == 0:
                object.__setattr__(self, name, self.limit * share // 100)
        numbers = (self.limit, self.trigger, self.keep, self.summaries)
        if any(type(number) is not int or number < 1 for number in numbers):
            raise InvalidPolicy(
                f"limit, trigger, keep and summaries must be whole and above zero, not {numbers}"
            )
        if not self.keep < self.trigger < self.limit:
            raise InvalidPolicy(
                f"keep {self.keep} must be below trigger {self.trigger}, and that below limit {self.limit}"
            )
        if self.summaries + self.keep >= self.limit:
            raise InvalidPolicy(
                f"summaries {self.summaries} and keep {self.keep} must be below limit {self.limit} together"
            )
        if self.when_outgrown not in (REGROUP, LEAVE_TO_SEARCH):
            raise InvalidPolicy(
                f"when_outgrown is 'regroup' or 'search', not {self.when_outgrown!r}"
            )
        if self.externalize_over is not None and (
            type(self.externalize_over) is not int or self.externalize_over < 1_000
        ):
            raise InvalidPolicy("externalize_over is at least 1000 bytes, or None")

    def trigger_with(self, beside: int) -> int:
        """From how many tokens on a chunk is planned, where so many stand beside the messages (tools,
        system prompt): the same share of what they leave of the limit, and they themselves.
        """
        return beside + self.trigger * max(0, self.limit - beside) // self.limit

    def keep_with(self, beside: int, fixed: int) -> int:
        """About how many tokens of the newest turns stay, where ``fixed`` ones stand in any case (what is
        beside included): so many that there is room for several turns before the next chunk is due.
        """
        share = self.keep * max(0, self.limit - beside) // self.limit
        return max(0, min(share, (self.trigger_with(beside) - fixed) * 4 // 5))

    @property
    def numbers(self) -> BudgetNumbers:
        """The numbers, to be recorded with a claim."""
        return BudgetNumbers(self.limit, self.trigger, self.keep, self.summaries)
