"""Whether a quote takes in everything that changes what it says (T9).

A quote of whole sentences always does, unless what announces or narrows them stands outside. A part of a
sentence is judged by what it leaves out: every word of that has to be known to be harmless, so that a
word, a sign or a language that nobody thought of refuses a quote, and never lets one through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from compaction_ledger.domain.window import pin_words as words
from compaction_ledger.domain.window.pin_corrections import units_of
from compaction_ledger.domain.window.pin_reading import Reading
from compaction_ledger.domain.window.pin_words import has_operator, words_of

LONGEST_CUT_SENTENCE = 2_000
"""Of a longer sentence only the whole can be quoted."""

_PIECE = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|\S")
_HARMLESS_SIGNS = frozenset(",;:.!-–—*、，：；。！")
_QUESTION = re.compile("[?？؟]|\\.\\.|…")
_END_MARKS = re.compile(r"[ \t]*[.!。！*]*[\"'”’»」』)）]*")
_CLAUSE_END = re.compile(r"\s*[,;]\s+|\s*[，；、]\s*|\s+[–—-]\s+|\s*[:：]\s+|[,;:]$")
_SPLIT = re.compile(
    r"\s*[,;](?:\s+|$)|\s*[，；、]\s*|\s+(?=(?:and|und|et|y|e|en)\s)", re.IGNORECASE
)
_THANK_YOU = re.compile(r"\bthank you\b", re.IGNORECASE)
_AND = re.compile(r"(?:and|und|et|y|e|en)\s+", re.IGNORECASE)
_AND_AT_END = re.compile(r"\s(?:and|und|et|y|e|en)$", re.IGNORECASE)
_COMMAS = frozenset(",;，；、")
_LABEL = re.compile(r"([^:：]*)[:：]\s*")
_TRIVIAL_START = re.compile(r"[ \t*]*")
_MOST_SIBLING_WORDS = 7


def context_problem(reading: Reading, start: int, end: int, *, parts: bool = True) -> str | None:
    """Why ``start`` to ``end`` would say something else alone, or ``None``.

    Without ``parts`` only whole sentences are looked at, in constant time but for the quote's own length.
    """
    first, last = reading.sentence_at(start), reading.sentence_at(end - 1)
    if first < 0 or reading.regions.cut_by(start, end):
        return "it stands within a quotation, code or pasted text"
    for context in reading.contexts[first : last + 1]:
        if context.lead is not None and start > context.lead:
            return "what is announced before it belongs to it"
        if context.tail is not None and end < context.tail:
            return "what narrows it or takes it back follows it"
    opening, closing = reading.sentences[first], reading.sentences[last]
    text = reading.text
    left = text[opening.words : start] if start - opening.words <= LONGEST_CUT_SENTENCE else None
    right = text[end : closing.end] if closing.end - end <= LONGEST_CUT_SENTENCE else None
    if left is None or right is None:
        return "it is a part of a very long sentence"
    if _TRIVIAL_START.fullmatch(left) and _END_MARKS.fullmatch(right) and ".." not in right:
        return None
    if not parts:
        return "it is a part of a sentence"
    if _QUESTION.search(left) or _QUESTION.search(right):
        return "it leaves out that it is a question, or not finished"
    return _partial_problem(text[start:end], left, right, is_one=first == last)


def _partial_problem(quote: str, left: str, right: str, *, is_one: bool) -> str | None:
    """The same of a part of a sentence, by what stands ``left`` and ``right`` of it there."""
    inside = words_of(quote)
    kind = _kind(inside) if _says_more(quote, inside) else "part"
    before, after = _label_and_rest(left)
    label = words.POLITE if kind == "part" else words.POLITE | words.FRAME
    if odd := _odd_one(before, label):
        return f"{odd!r} in front of the colon belongs to it"
    if odd := _open_end(right):
        return _may_change(odd)
    if kind == "part":
        return _fragment_problem(quote, inside, after, right)
    if is_one and _stands_among_rules(quote, after, right):
        return None
    if _asks(after):
        return "it may be a question"
    frame = words.WILLING if kind == "negation" else words.FRAME
    reasons = words.POLITE | words.FRAME | words.REASONS | _substance(inside)
    ahead = _CLAUSE_END.split(after)
    behind = _CLAUSE_END.split(right)
    odd = (
        _odd_clause(ahead[:-1], words.POLITE | frame, reasons)
        or _odd_one(_without_and(ahead[-1]), words.POLITE | frame)
        or _odd_subject(words_of(ahead[-1]))
        or _odd_one(behind[0], _thanks_behind(inside) | words.STRESSES)
        or _odd_clause(behind[1:], words.THANKS | words.STRESSES, reasons)
    )
    return _may_change(odd)


def _fragment_problem(quote: str, inside: list[str], left: str, right: str) -> str | None:
    """Of a part that is no rule by how it begins: nothing but polite words may be left out."""
    unspaced = words.UNSPACED_OPERATORS.match(quote) is not None
    if not unspaced and (len(inside) < 3 or _is_amount(quote, inside)):
        return "an amount or a name alone is no rule"
    if inside[:1] and inside[0] in words.SCOPES:
        return "it begins within a clause"
    *clauses, adjacent = _CLAUSE_END.split(left)
    link = words_of(_without_and(adjacent))
    if link and link[-1] not in words.LINKS:
        return _may_change(link[-1])
    for clause in (*clauses, adjacent):
        if odd := _odd_one(_without_and(clause), words.POLITE):
            return _may_change(odd)
    return _may_change(_odd_one(right, _thanks_behind(inside)))


def _thanks_behind(inside: list[str]) -> frozenset[str]:
    """The polite words that may follow: none where they may be what is to be said, as in "say please"."""
    return frozenset() if inside[-1:] and inside[-1] in words.SPEAKING else words.THANKS


def _open_end(right: str) -> str | None:
    """The sign with which a sentence goes on after its end, as a colon does."""
    last = right.strip(" \t\n*")[-1:]
    return last if last and last in ",;:，；：、-–—" else None


def _odd_subject(adjacent: list[str]) -> str | None:
    """A subject whose verb is in the quote, so that without it a statement becomes an order."""
    subject = next((word for word in adjacent if word in words.SUBJECTS), None)
    return None if any(word in words.VERBS for word in adjacent) else subject


def _may_change(odd: str | None) -> str | None:
    return f"{odd!r} in the same sentence may change it" if odd else None


def _odd_clause(clauses: list[str], known: frozenset[str], reasons: frozenset[str]) -> str | None:
    """The first word that is not known, in clauses that give no reason, or not even of those."""
    for clause in clauses:
        gives_reason = any(word in words.STATES for word in words_of(clause))
        odd = _odd_one(_without_and(clause), reasons if gives_reason else known)
        if odd:
            return odd
    return None


def _kind(inside: list[str]) -> Literal["negation", "bound", "part"]:
    """What kind of rule a quote begins as; ``part`` for any other words."""
    size = _opening(inside)
    if size == 0:
        return "part"
    first = inside[0]
    if first in {"do", "don't", "pas"} or (size == 1 and first in words.NEGATIONS):
        return "negation"
    return "bound"


def _is_amount(quote: str, inside: list[str]) -> bool:
    """Whether a quote holds nothing but an amount and what it counts."""
    has_number = any(each.isnumeric() for each in quote)
    return has_number and len([word for word in inside if word not in words.FRAME]) < 3


def _label_and_rest(left: str) -> tuple[str, str]:
    label = _LABEL.match(left)
    while label and (further := _LABEL.match(left, label.end())):
        label = further
    return (left[: label.end()], left[label.end() :]) if label else ("", left)


def _stands_among_rules(quote: str, left: str, right: str) -> bool:
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
        yield _without_and(piece)


def _without_and(piece: str) -> str:
    joined = _AND.match(piece.lstrip() + " ")
    return (piece.lstrip() + " ")[joined.end() if joined else 0 :].strip()


def _is_rule_of_its_own(piece: str, quote: str) -> bool:
    """Whether ``piece`` is a short rule with one beginning, about something else than ``quote``."""
    found = words_of(piece)
    if _all_known(found, words.POLITE) and not any(each.isdigit() for each in piece):
        return True
    size = _opening(found)
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
    return not (units_of(piece) & units_of(quote)) and not (_substance(rest) & set(words_of(quote)))


def _odd_one(rest: str, allowed: frozenset[str]) -> str | None:
    """The first word or sign of ``rest`` that is not known to be harmless."""
    for piece in _PIECE.findall(_THANK_YOU.sub("thanks", rest)):
        word = piece.casefold().replace("’", "'")
        if word not in allowed and piece not in _HARMLESS_SIGNS:
            return str(piece)
    return None


def _opening(found: list[str]) -> int:
    """With how many words a rule begins that are a negation or a bound of its own; 0 for none."""
    for phrase in words.OPENERS:
        if tuple(found[: len(phrase)]) == phrase:
            return len(phrase)
    return 0


def _says_more(quote: str, found: list[str]) -> bool:
    """Whether a rule says what it is about, and does not break off."""
    return any(each.isnumeric() for each in quote) or any(
        word not in words.OPERATORS and word not in words.POLITE and word not in words.FRAME
        for word in found
    )


def _asks(left: str) -> bool:
    found = words_of(left)
    return bool(found) and found[0] in words.ASKING_FIRST


def _substance(found: list[str]) -> frozenset[str]:
    changing = words.OPERATORS | words.SCOPES | words.REPORTS | words.EXAMPLES
    return frozenset(
        word for word in found if word not in changing and not has_operator(word, [word])
    )


def _all_known(found: list[str], known: frozenset[str]) -> bool:
    return all(word in known for word in found)
