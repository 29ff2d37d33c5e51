"""When a range of pairs becomes a target (W1, W2). A threshold only plans (W3)."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_ledger.domain.conversation import PAIRS_PER_RANGE
from compaction_ledger.domain.errors import InvalidPolicy


@dataclass(frozen=True, slots=True)
class Range:
    """``from_pair..to_pair``, zero-based and inclusive, aligned on a multiple of ten."""

    from_pair: int
    to_pair: int

    @classmethod
    def at(cls, from_pair: int) -> Range:
        """The range that begins at ``from_pair``."""
        return cls(from_pair, from_pair + PAIRS_PER_RANGE - 1)

    @property
    def is_aligned(self) -> bool:
        """Whether this is exactly ten pairs that begin on a multiple of ten (A7)."""
        ten = self.to_pair - self.from_pair + 1 == PAIRS_PER_RANGE
        return ten and self.from_pair >= 0 and self.from_pair % PAIRS_PER_RANGE == 0

    def __str__(self) -> str:
        return f"{self.from_pair}-{self.to_pair}"


@dataclass(frozen=True, slots=True)
class PolicyNumbers:
    """The three numbers as recorded with a claim. Not checked: old history loads for ever (A10)."""

    minimum_pairs: int
    range_pairs: int
    keep_newest: int


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The policy: no target below ``minimum_pairs``, targets of ten pairs, ``keep_newest`` stay outside.

    Raises :class:`InvalidPolicy` on construction (W2).
    """

    minimum_pairs: int = 30
    range_pairs: int = PAIRS_PER_RANGE
    keep_newest: int = 20

    def __post_init__(self) -> None:
        numbers = (self.minimum_pairs, self.range_pairs, self.keep_newest)
        if any(type(number) is not int or number < 0 for number in numbers):
            raise InvalidPolicy(f"the three numbers must be whole and not negative, not {numbers}")
        if self.range_pairs != PAIRS_PER_RANGE:
            raise InvalidPolicy(f"a range is {PAIRS_PER_RANGE} pairs, not {self.range_pairs}")
        if self.minimum_pairs < self.range_pairs + self.keep_newest:
            raise InvalidPolicy(
                f"minimum_pairs {self.minimum_pairs} must be at least range_pairs {self.range_pairs}"
                f" plus keep_newest {self.keep_newest}"
            )

    @property
    def numbers(self) -> PolicyNumbers:
        """The three numbers, to be recorded with a claim."""
        return PolicyNumbers(self.minimum_pairs, self.range_pairs, self.keep_newest)

    def count(self, pairs: int) -> int:
        """How many ranges are targets where there are ``pairs`` eligible pairs."""
        if pairs < self.minimum_pairs:
            return 0
        return (pairs - self.keep_newest) // self.range_pairs

    def targets(self, pairs: int) -> list[Range]:
        """The targets, oldest first."""
        return [Range.at(number * self.range_pairs) for number in range(self.count(pairs))]
