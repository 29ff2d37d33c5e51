"""What may stand beside a quote in its sentence, because it is complete in itself (T9)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compaction_ledger.domain.window import pin_words as words
from compaction_ledger.domain.window.pin_corrections import units_of
from compaction_ledger.domain.window.pin_words import has_operator, words_of

_SPLIT = re.compile(
    r"\s*[,;](?:\s+|$)|\s*[，；、]\s*|\s+(?=(?:and|und|et|y|e|en)\s)", re.IGNORECASE
)
_AND = re.compile(r"(?:and|und|et|y|e|en)\s+", re.IGNORECASE)
_AND_AT_END = re.compile(r"\s(?:and|und|et|y|e|en)$", re.IGNORECASE)
_COMMAS = frozenset(",;，；、")
_AND_I = re.compile(r",?\s+and\s+(?=(?:i|we|my|our)\b)", re.IGNORECASE)
_I_AND = re.compile(r",?\s+and\s+$", re.IGNORECASE)
_MOST_SIBLING_WORDS = 7


_QUESTION = re.compile("[?？؟]|\\.\\.|…")


def stands_among_rules(quote: str, left: str, right: str) -> bool:
    """Whether the rest of the sentence is complete rules of their own: "no nuts, | at most 400 EUR"."""
    before, after = list(_siblings(left, at_end=True)), list(_siblings(right, at_end=False))
    if None in before or None in after:
        return False
    siblings = [each for each in (*before, *after) if each]
    beside = [*[each for each in before if each][-1:], *[each for each in after if each][:1]]
    begins_with_only = any(
        words_of(each)[:1] and words_of(each)[0] in words.ONLY for each in beside
    )
    if begins_with_only and words_of(quote)[0] in words.NEGATIONS:
        return False  # "no meat, only fish" is one rule
    return all(_is_rule_of_its_own(each, quote) for each in siblings)


def _siblings(rest: str, *, at_end: bool) -> Iterator[str | None]:
    """The pieces of what stands beside a quote; ``None`` where the quote is no piece of its own."""
    if not rest.strip(" \t.!。！*"):
        return
    stripped = rest.strip(" \t\n.!。！*")
    if at_end:
        joined = _AND_AT_END.search(stripped)
        is_set_off = joined is not None or stripped[-1] in _COMMAS
        stripped = stripped[: joined.start()] if joined else stripped
    else:
        is_set_off = stripped[0] in _COMMAS or _AND.match(stripped) is not None
    if not is_set_off:
        yield None
    for piece in _SPLIT.split(stripped):
        yield without_and(piece)


def without_and(piece: str) -> str:
    joined = _AND.match(piece.lstrip() + " ")
    return (piece.lstrip() + " ")[joined.end() if joined else 0 :].strip()


def _is_rule_of_its_own(piece: str, quote: str) -> bool:
    """Whether ``piece`` is a short rule with one beginning, about something else than ``quote``."""
    found = words_of(piece)
    if _all_known(found, words.POLITE) and not any(each.isdigit() for each in piece):
        return True
    size = opening_size(found)
    rest = found[size:]
    has_number = any(each.isdigit() for each in piece)
    if size == 0 or len(rest) > _MOST_SIBLING_WORDS or not (rest or has_number):
        return False
    if found[0] in words.NEGATIONS and size == 1 and has_number:
        return False  # "at most 500, no 700" takes it back
    changing = words.OPERATORS | words.SCOPES | words.REPORTS
    if any(each in changing or each.endswith("n't") for each in rest) or _QUESTION.search(piece):
        return False
    if any(
        each not in "$€£¥%.,'’-" and not each.isalnum() and not each.isspace() for each in piece
    ):
        return False
    return not (units_of(piece) & units_of(quote)) and not (substance(rest) & set(words_of(quote)))


def stands_beside_another(left: str, right: str) -> bool:
    """Whether the rest is plain clauses of the same speaker's: "I'm allergic to nuts | and I love fish"."""
    joined = _AND_I.match(right)
    if not joined and right.strip(" \t\n.!"):
        return False
    before = _I_AND.search(left)
    if not before and left.strip(" \t\n*"):
        return False
    return all(
        not clause.strip() or _is_plain(clause)
        for clause in (
            left[: before.start()] if before else "",
            right[joined.end() :] if joined else "",
        )
    )


def _is_plain(clause: str) -> bool:
    """Whether a clause tells of its speaker, with a verb that says nothing of what stands beside it."""
    found = words_of(clause)
    verb = found[0] if found[0] in words.SPEAKERS_WITH_VERB else [*found, ""][1]
    changing = (words.OPERATORS - words.STATES) | words.REPORTS | words.EXAMPLES | words.POINTERS
    return (
        found[0] in words.SPEAKERS
        and verb in words.PLAIN_VERBS | words.SPEAKERS_WITH_VERB
        and not any(word in changing or word.endswith("n't") for word in found)
        and all(each.isalnum() or each in " '’-.!" for each in clause.strip())
    )


def opening_size(found: list[str]) -> int:
    """With how many words a rule begins that are a negation or a bound of its own; 0 for none."""
    for phrase in words.OPENERS:
        if tuple(found[: len(phrase)]) == phrase:
            return len(phrase)
    return 0


def substance(found: list[str]) -> frozenset[str]:
    changing = words.OPERATORS | words.SCOPES | words.REPORTS | words.EXAMPLES
    return frozenset(
        word for word in found if word not in changing and not has_operator(word, [word])
    )


def _all_known(found: list[str], known: frozenset[str]) -> bool:
    return all(word in known for word in found)
