"""Corrections in the user's own words, and which pin one of them is about (T9). Never a guess."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction_ledger.domain.window import pin_words as words
from compaction_ledger.domain.window.events import PinAccepted
from compaction_ledger.domain.window.pin_words import word_set

_TAKES_BACK = re.compile(
    r"\W*(?:(?:oh|ah|hm+|oops|well|and|but|no),?\s+)?(?:wait|scratch that|strike that"
    r"|forget (?:that|it|what i said)"
    r"|never ?mind|just kidding|kidding|jk\b|ignore (?:that|what i said)|i take (?:that|it) back|correction\b"
    r"|sorry,? (?:i (?:meant|mean)|not|make)|i (?:meant|mean)\b|my mistake|make that\b|not really"
    r"|korrektur|quatsch|vergiss (?:das|es)|ich meinte|nein,? doch|(?:nur )?(?:ein )?scherz\b|nur spaß"
    r"|pardon,? je voulais dire|je voulais dire|oubliez? (?:ça|cela)|je plaisante"
    r"|perdón,? quise decir|quise decir|olvida (?:eso|lo)|corrección|era broma"
    r"|scusa,? volevo dire|volevo dire|correzione|lascia perdere|scherzavo"
    r"|desculpe?,? quis dizer|quis dizer|correção|esquece isso|brincadeira"
    r"|sorry,? ik bedoel|ik bedoel(?:de)?\b|correctie|vergeet (?:dat|het)|grapje"
    r"|更正|说错了|說錯了|不对|不對|等等|开玩笑|算了|訂正|間違え|やっぱり|冗談|정정|아니 다시|농담"
    r"|поправка|я имел[аи]? в виду|забудь|шучу|تصحيح|أقصد|أمزح|اصلاح|منظورم|شوخی)",
    re.IGNORECASE,
)
_MARKED = re.compile(
    r"\W*(?:(?:oh|ah|and|but|so|ok|okay|no|sorry|well|hi|please)\W+){0,2}(?:actually|instead|rather|make it\b"
    r"|(?:let's |please )?change\b.{1,80}\bto\b|on second thoughts?|after all"
    r"|eigentlich|doch lieber|stattdessen|ändere\b.{1,80}\b(?:auf|zu)\b|mach daraus"
    r"|en fait|finalement|plutôt|changez?\b.{1,80}\b(?:en|à|par)\b"
    r"|en realidad|mejor|en vez de eso|cambia\b.{1,80}\b(?:a|por)\b"
    r"|in realtà|anzi|invece|cambia\b.{1,80}\bin\b"
    r"|na verdade|em vez disso|muda\b.{1,80}\bpara\b"
    r"|eigenlijk|toch liever|in plaats daarvan|verander\b.{1,80}\bin\b"
    r"|其实|其實|改成|改为|改為|实际上|実は|実際は|変更|사실|대신|변경|на самом деле|вместо этого|измени"
    r"|في الواقع|بدلا من ذلك|در واقع|به جای آن)",
    re.IGNORECASE | re.DOTALL,
)
_MARKED_ANYWHERE = re.compile(
    r"\b(?:no longer|not anymore|not any more|instead of|nicht mehr|ne\b.{1,40}\bplus|ya no|non più"
    r"|não mais|niet meer)\b"
    r"|\bactually\b|\binstead\b|\bi meant\b|改成|改为|改為|不再|に変更|больше не|вместо",
    re.IGNORECASE,
)
_CURRENCIES = {
    sign: code
    for code, signs in {
        "USD": "$ us$ usd dollar dollars dólares dollari dólar доллар долларов 美元 ドル 달러 دولار دلار",
        "EUR": "€ eur euro euros евро 欧元 ユーロ 유로 يورو یورو",
        "GBP": "£ gbp pound pounds sterling 英镑",
        "JPY": "jpy yen 円 日元 日圓",
        "CNY": "cny rmb yuan 元 块 人民币",
        "CHF": "chf franken francs",
        "KRW": "₩ krw won 원",
        "INR": "₹ inr rupees",
        "RUB": "₽ rub руб рублей",
        "%": "% percent prozent pourcent procent ciento cento процентов",
    }.items()
    for sign in signs.split()
}
_NUMBER = re.compile(
    r"[\d一二三四五六七八九十百千万萬億][\d.,'’ \u00a0\u202f一二三四五六七八九十百千万萬億]*"
)
_NEAR = re.compile(r"\s*([^\W\d_]+|[$€£¥₩₹₽%])")
_BEFORE = re.compile(r"([^\W\d_]+|[$€£¥₩₹₽])\s*$")
_HAN_UNIT = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W\d_]{3,}|[\u3400-\u9fff]{2}")
_LONGEST_UNIT = 24
_MOST_NUMBERS = 64


def corrects(text: str) -> bool:
    """Whether ``text`` begins like a correction of what was said before."""
    return _TAKES_BACK.match(text) is not None or _MARKED.match(text) is not None


def takes_back(text: str) -> bool:
    """Whether ``text`` begins by taking back what was said directly before it."""
    return _TAKES_BACK.match(text) is not None


def without_mark(text: str) -> str:
    """What ``text`` says behind the words that mark it as a correction."""
    mark = _MARKED.match(text) or _TAKES_BACK.match(text)
    return text[mark.end() :] if mark else text


def units_of(text: str) -> frozenset[str]:
    """What the numbers of ``text`` count: currencies by their code, other units by the word behind."""
    found: set[str] = set()
    for count, number in enumerate(_NUMBER.finditer(text)):
        if count == _MOST_NUMBERS:
            break
        before = _BEFORE.search(text[max(0, number.start() - _LONGEST_UNIT) : number.start()])
        code = _CURRENCIES.get(before[1].casefold()) if before else None
        behind = _NEAR.match(text, number.end(), number.end() + _LONGEST_UNIT)
        unit = behind[1].casefold() if behind else None
        code = code or (_CURRENCIES.get(unit) or _CURRENCIES.get(unit[0]) if unit else None)
        if code:
            found.add(code)
        elif unit:
            found.add(unit[0] if _HAN_UNIT.match(unit) else unit)
    return frozenset(found)


def subjects_of(text: str) -> frozenset[str]:
    """The words that say what ``text`` is about: none of those that rules, frames and marks are made of."""
    units = units_of(text)
    found = (word.casefold() for word in _WORD.findall(text))
    return frozenset(word for word in found if word not in _SAY_NOTHING and word not in units)


_SAY_NOTHING = (
    words.POLITE
    | words.FRAME
    | words.OPERATORS
    | words.OPENING_WORDS
    | words.SCOPES
    | frozenset(_CURRENCIES)
    | word_set("""
    actually instead make change changed correction sorry meant mean longer that this will new now
    total maximal budget spending spend amount money book want wants like eigentlich doch
    stattdessen jetzt neu finalement fait maintenant nouveau realidad ahora nuevo realtà adesso
    nuovo verdade agora novo eigenlijk toch nieuw rather anymore don didn isn one them they you your
    """)
)


def superseded_by_rules(
    new_quote: str, new_text: str, current: Sequence[PinAccepted]
) -> str | None:
    """The id of the pin that ``new_quote`` corrects, or ``None``: only where the text leaves no doubt.

    ``new_text`` is the part that the quote is from: the quote, or the sentence it stands in, has to be
    marked as a correction there. ``current`` are the current pins of the same conversation, of which
    exactly one must be about the same thing: a shared unit or currency, or shared words of substance.
    """
    if not _is_marked(new_quote, new_text):
        return None
    about = [pin.pin_id for pin in current if same_thing(new_quote, pin.quote)]
    return about[0] if len(about) == 1 else None


def same_thing(new: str, old: str) -> bool:
    """Whether two rules are about the same: what they count, and what they name."""
    new_units, old_units = units_of(new), units_of(old)
    new_subjects, old_subjects = subjects_of(new), subjects_of(old)
    if new_units or old_units:
        shared = bool(new_units & old_units)
        alike = not new_subjects or not old_subjects or bool(new_subjects & old_subjects)
        return shared and alike
    return bool(new_subjects & old_subjects)


def _is_marked(quote: str, text: str) -> bool:
    if corrects(quote) or _MARKED_ANYWHERE.search(quote):
        return True
    start = text.find(quote)
    before = text[max(0, start - 120) : max(0, start)]
    sentence = re.split(r"[.!?。！？\n]", before)[-1]
    return corrects(sentence) or _MARKED_ANYWHERE.search(sentence) is not None
