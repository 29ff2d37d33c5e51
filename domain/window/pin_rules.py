"""Constraints found by rule, as whole sentences of the user's (T9). Every one is proven like any other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from compaction_ledger.domain.errors import PinRefused
from compaction_ledger.domain.window.pin_context import context_problem
from compaction_ledger.domain.window.pin_proof import MAX_QUOTE_CHARACTERS, check_quote
from compaction_ledger.domain.window.pin_reading import Reading, read
from compaction_ledger.domain.window.pin_tokens import boundary_problem
from compaction_ledger.domain.window.pin_words import word_set, words_of

MOST_PROPOSED = 8
MOST_CHARACTERS_READ = 100_000
"""Of a longer text only the beginning is searched for constraints."""

LONGEST_PROPOSED = 600

_ASKS = re.compile("[?？؟][\"'”’»」）) ]*$|[吗嗎呢][。.]?$|ですか[。.]?$|ますか[。.]?$|까요?[.]?$")
_SMALL_TALK = re.compile(
    r"\b(?:not sure|no problem|no worries|no idea|not yet|never mind|no,? thank|not really|no longer"
    r"|(?:don't|do not|didn't) (?:know|understand|see|think|mind|remember)"
    r"|(?:doesn't|didn't|does not|did not|isn't|not) work"
    r"|weiß (?:es )?nicht|verstehe nicht|kein problem|keine ahnung|je ne (?:sais|comprends) pas"
    r"|pas de problème|no (?:lo )?sé|no entiendo|non (?:lo )?so|non capisco|não sei|weet (?:het )?niet"
    r"|geen probleem|не знаю|не понимаю)\b"
    r"|不知道|不明白|没问题|わかりません|分かりません|知りません|모르",
    re.IGNORECASE,
)
_CODE = re.compile(r"[;{]\s*$|=>|::|\bthrow\b|</")
_ANSWER = re.compile(
    r"\W*(?:no|nein|non|não|nee),\s+", re.IGNORECASE
)  # "no, …" says nothing of the rest
_ASKING = word_set("""
    what which who when where why how is are do does did can could would should will shall may was
    welche welcher welches wer wann wo warum wie ist sind kann können darf que quel quelle quels
    quelles qui quand où pourquoi comment est-ce qué cuál cuáles quién cuándo dónde cómo che quale
    quali chi quando dove perché come qual quais quem onde como wat welke wie wanneer waar waarom
    hoe is zijn kan
    """)

_WORDS = word_set("""
    latest hard-limit нет الميزانية ميزانيتي حساس نمی مگر
    must mustn't never only no not max maximum min minimum always without limit limited budget
    deadline allergic allergy vegan vegetarian kosher halal cannot avoid exclude except unless
    require required requires forbidden exceed cap under below mandatory strictly ensure muss müssen
    nie niemals nur kein keine keinen keinem keiner höchstens maximal mindestens immer ohne budget
    frist limit grenze allergisch nicht vermeide verboten unbedingt spätestens jamais seulement
    uniquement sans maximum minimum toujours doit doivent allergique aucun aucune pas interdit
    échéance obligatoire nunca solo sólo solamente sin máximo mínimo siempre debe deben alérgico
    alérgica ningún ninguna presupuesto límite plazo prohibido jamás mai soltanto senza massimo
    minimo almeno sempre deve devono allergico allergica nessun nessuna scadenza vietato non não só
    somente apenas sem máximo mínimo sempre deve devem orçamento limite prazo proibido nenhum
    nenhuma geen nooit alleen maximaal hoogstens minstens minimaal altijd moet moeten zonder niet
    uiterlijk verboden нельзя никогда только максимум минимум всегда должен должна должны без бюджет
    аллергия срок لا فقط أبدا دائما يجب ميزانية حساسية ممنوع نباید فقط هرگز همیشه باید بودجه حساسیت
    حداکثر حداقل
    """)
"""Words that state a constraint; each is in a pin proposed by rule."""

_PAIRS = frozenset(
    {
        ("at", "most"), ("at", "least"), ("more", "than"), ("less", "than"), ("up", "to"), ("do", "not"),
        ("prefer", "not"), ("has", "to"), ("have", "to"), ("or", "newer"), ("or", "older"), ("deliver", "by"),
        ("не", "ем"), ("не", "пью"), ("не", "буду"), ("не", "нужно"),
        ("bis", "zu"), ("au", "plus"), ("au", "moins"), ("al", "menos"), ("lo", "sumo"),
        ("al", "massimo"), ("al", "più"), ("no", "máximo"), ("pelo", "menos"), ("ten", "hoogste"),
        ("не", "более"), ("не", "менее"), ("не", "больше"), ("не", "надо"), ("не", "хочу"),
    }
)  # fmt: skip

_UNSPACED = re.compile(
    "只|不要|不能|不得|不可|不许|不吃|不超过|別|别|禁止|必须|必須|务必|只要|只能|只有|仅|最多|最少|至少|至多|超过|预算|預算|过敏|過敏|"
    "截止"
    "|ないで|なければ|してはいけ|禁止|だけ|のみ|以内|以下|以上|必ず|絶対|予算|アレルギー|締め切り|までに|ません"
    "|마세요|말고|안 돼|안 됩|금지|반드시|꼭|만 |이하|이상|최대|최소|예산|알레르기|까지|없이|않"
)


def propose_by_rules(text: str) -> list[str]:
    """At most :data:`MOST_PROPOSED` quotes of ``text`` that state a constraint, in order; no questions.

    Each is a whole sentence, or several where one is not whole alone, exactly as it stands in ``text``, and
    can be proven there. Languages: English, German, French, Spanish, Italian, Portuguese, Dutch, Chinese,
    Japanese, Korean, Russian, Arabic, Persian. Takes time linear in the text.
    """
    searched = text if len(text) <= MOST_CHARACTERS_READ else text[:MOST_CHARACTERS_READ]
    reading = read(searched)
    found: list[str] = []
    for start, end in _merged(_candidates(reading)):
        quote = searched[start:end]
        if quote not in found and _can_be_proven(reading, quote, start, end):
            found.append(quote)
            if len(found) == MOST_PROPOSED:
                break
    return found


def states_constraint(sentence: str) -> bool:
    """Whether a sentence says that something must, may not, or may only so far."""
    if _SMALL_TALK.search(sentence) or _CODE.search(sentence):
        return False
    found = words_of(_ANSWER.sub("", sentence))
    if any(word in _WORDS or word in _PROHIBITING for word in found):
        return True
    if any(pair in _PAIRS for pair in pairwise(found)):
        return True
    return _UNSPACED.search(sentence) is not None


_PROHIBITING = frozenset({"don't", "mustn't", "can't", "cannot", "won't", "shouldn't"})


def _candidates(reading: Reading) -> Iterator[tuple[int, int]]:
    lead, lead_states = -1, False
    for sentence, context in zip(reading.sentences, reading.contexts, strict=True):
        span = reading.text[sentence.words : sentence.end]
        if context.others or len(span) > LONGEST_PROPOSED or is_question(span):
            continue
        if context.lead is not None and context.lead != lead:
            lead = context.lead
            lead_states = states_constraint(
                reading.text[lead : min(sentence.start, lead + LONGEST_PROPOSED)]
            )
        if (context.lead is not None and lead_states) or states_constraint(span):
            start = sentence.words if context.lead is None else context.lead
            yield start, max(sentence.end, context.tail or 0)


def _merged(spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans that overlap become one: the lines under an announcement are quoted with it, together."""
    open_span: tuple[int, int] | None = None
    for start, end in spans:
        if open_span and start < open_span[1]:
            open_span = (min(open_span[0], start), max(open_span[1], end))
            continue
        if open_span:
            yield open_span
        open_span = (start, end)
    if open_span:
        yield open_span


def _can_be_proven(reading: Reading, quote: str, start: int, end: int) -> bool:
    if len(quote) > MAX_QUOTE_CHARACTERS:
        return False
    try:
        check_quote(quote)
    except PinRefused:
        return False
    return (
        boundary_problem(reading.text, start, end) is None
        and context_problem(reading, start, end, parts=False) is None
    )


def is_question(sentence: str) -> bool:
    """Whether a sentence asks: by its mark, its particle, or its first word."""
    if _ASKS.search(sentence):
        return True
    first = words_of(sentence[:40])[:1]
    return bool(first) and first[0] in _ASKING and sentence.rstrip()[-1:] not in ".!。！"
