"""Whether a quote takes in everything that changes what it says (T9).

A quote of whole sentences always does, unless what announces or narrows them stands outside. A part of a
sentence is judged by what it leaves out: every word of that has to be known to be harmless, so that a
word, a sign or a language that nobody thought of refuses a quote, and never lets one through.
"""

from __future__ import annotations

import re
from typing import Literal

from compaction_ledger.domain.window import pin_words as words
from compaction_ledger.domain.window.pin_beside import (
    opening_size,
    stands_among_rules,
    stands_beside_another,
    substance,
    without_and,
)
from compaction_ledger.domain.window.pin_reading import Reading
from compaction_ledger.domain.window.pin_words import words_of

LONGEST_CUT_SENTENCE = 2_000
"""Of a longer sentence only the whole can be quoted."""

_PIECE = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|\S")
_HARMLESS_SIGNS = frozenset(",;:.!-–—*、，：；。！🙏👍😊🙂")
_QUESTION = re.compile("[?？؟]|\\.\\.|…")
_END_MARKS = re.compile(r"[ \t]*[.!。！*]*[\"'”’»」』)）]*")
_CLAUSE_END = re.compile(r"\s*[,;]\s+|\s*[，；、]\s*|\s+[–—-]\s+|\s*[:：]\s+|[,;:]$")
_THANK_YOU = re.compile(r"\bthank you\b", re.IGNORECASE)
_LABEL = re.compile(r"([^:：]*)[:：]\s*")
_TRIVIAL_START = re.compile(r"[ \t*]*")


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
    if is_one and stands_among_rules(quote, after, right):
        return None
    if _asks(after):
        return "it may be a question"
    frame = words.WILLING if kind == "negation" else words.FRAME
    reasons = words.POLITE | words.FRAME | words.REASONS | substance(inside)
    ahead = _CLAUSE_END.split(after)
    behind = _CLAUSE_END.split(right)
    odd = (
        _odd_clause(ahead[:-1], words.POLITE | frame, reasons)
        or _odd_one(without_and(ahead[-1]), words.POLITE | frame)
        or _odd_subject(words_of(ahead[-1]))
        or _odd_one(behind[0], _thanks_behind(inside) | words.STRESSES)
        or _odd_clause(behind[1:], words.THANKS | words.STRESSES, reasons)
    )
    return _may_change(odd)


def _fragment_problem(quote: str, inside: list[str], left: str, right: str) -> str | None:
    """Of a part that is no rule by how it begins: nothing but polite words may be left out."""
    if inside[:1] and inside[0] in words.SPEAKERS and stands_beside_another(left, right):
        return None
    unspaced = words.UNSPACED_OPERATORS.match(quote) is not None
    if not unspaced and (len(inside) < 3 or _is_amount(quote, inside)):
        return "an amount or a name alone is no rule"
    if inside[:1] and inside[0] in words.SCOPES:
        return "it begins within a clause"
    *clauses, adjacent = _CLAUSE_END.split(left)
    link = words_of(without_and(adjacent))
    if link and link[-1] not in words.LINKS:
        return _may_change(link[-1])
    for clause in (*clauses, adjacent):
        if odd := _odd_one(without_and(clause), words.POLITE):
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
        odd = _odd_one(without_and(clause), reasons if gives_reason else known)
        if odd:
            return odd
    return None


def _kind(inside: list[str]) -> Literal["negation", "bound", "part"]:
    """What kind of rule a quote begins as; ``part`` for any other words."""
    size = opening_size(inside)
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


def _odd_one(rest: str, allowed: frozenset[str]) -> str | None:
    """The first word or sign of ``rest`` that is not known to be harmless."""
    for piece in _PIECE.findall(_THANK_YOU.sub("thanks", rest)):
        word = piece.casefold().replace("’", "'")
        if word not in allowed and piece not in _HARMLESS_SIGNS:
            return str(piece)
    return None


def _says_more(quote: str, found: list[str]) -> bool:
    """Whether a rule says what it is about, and does not break off."""
    return any(each.isnumeric() for each in quote) or any(
        word not in words.OPERATORS and word not in words.POLITE and word not in words.FRAME
        for word in found
    )


def _asks(left: str) -> bool:
    found = words_of(left)
    return bool(found) and found[0] in words.ASKING_FIRST
