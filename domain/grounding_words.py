"""The few words that grounding knows: months, scales, and the names of currencies, as parts of patterns.

They make a date or an amount be looked for as a whole: without an entry its figures are still looked for.
"""

from __future__ import annotations

from typing import Final

CURRENCY: Final = (
    "$\u00a2-\u00a5\u058f\u060b\u07fe\u07ff\u09f2\u09f3\u09fb\u0af1\u0bf9\u0e3f\u17db\u20a0-\u20cf"
    "\ufdfc\ufe69\uff04\uffe0\uffe1\uffe5\uffe6"
)
"""Currency signs (general category Sc), for use inside a character class."""

_MONTHS = """
    January February March April June July August September October November December
    Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
    Januar Jänner Februar März Mai Juni Juli Oktober Dezember Mär Okt Dez
    janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    gennaio febbraio aprile maggio giugno luglio settembre ottobre novembre dicembre
    janeiro fevereiro março maio junho julho setembro outubro dezembro
    januari februari maart mei augustus oktober
    января февраля марта
    апреля мая июня июля
    августа сентября
    октября ноября декабря
"""

_CURRENCIES = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD
    CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ
    GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR
    LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN
    PGK PHP PKR PLN PYG QAR RMB RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB
    TJS TMT TND TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
    BTC ETH USDC USDT
"""
_UNIT_WORDS = """
    [Ee]uros? [Dd]ollars? [Pp]ounds? [Ff]rancs? [Ff]ranken [Yy]en [Cc]ents? [Pp]ercent [Pp]rozent
    [Pp]our\\s?cent [Pp]or\\s?ciento [Pp]er\\s?cento [Pp]or\\s?cento [Pp]rocent
"""
# Written behind a number without a space, in scripts that have none.
_UNSPACED_UNITS = """
    人民币 美元 欧元 英镑 港元 日元 元 圆 圓
    円 ドル ユーロ ポンド 원 달러 유로
"""
_SCALES = """
    thousand million billion trillion millions billions Tausend Million Millionen Milliarde Milliarden Mio\\.?
    Mrd\\.? Tsd\\.? mille millions milliard milliards mil millones millon millón millardos mila milioni
    miliardi milhões bilhões miljoen miljard mln mrd bn tn
    тыс\\.? млн млрд
"""
_UNSPACED_SCALES = "千万 百万 十万 [千百万萬億亿兆万천만억조]"


def _either(words: str) -> str:
    """A pattern of alternatives, the longer first."""
    return "|".join(sorted(set(words.split()), key=lambda word: (-len(word), word)))


# In English "may" is a verb, too.
MONTHS: Final = f"May|(?i:{_either(_MONTHS)})"
CODES: Final = _either(_CURRENCIES + _UNIT_WORDS)
SCALES: Final = _either(_SCALES)
UNSPACED_UNITS: Final = _either(_UNSPACED_UNITS)
UNSPACED_SCALES: Final = _either(_UNSPACED_SCALES)
