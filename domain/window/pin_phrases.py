"""Turns of phrase by which a sentence says something of those before or behind it (T9)."""

from __future__ import annotations

import re

FOLLOWING = re.compile(
    r"\b(?:the following|as follows|below|folgende[ns]?|unten|suivante?s?|ci-dessous|siguientes?"
    r"|seguent[ei]"
    r"|seguintes?|volgende|hieronder|следующ\w+|ниже)\b|以下の|以下は|下面|次の|下記|다음|التالي|زیر",
    re.IGNORECASE,
)
"""What a sentence says that is about the next ones."""

LOOKING_BACK = re.compile(
    r"(?:that|this|it|those|these|they)(?:['’]s)?\b.{0,40}?\b(?:not|no longer|was|were|wrong|false"
    r"|untrue|example"
    r"|joke|only applies|only counts|just an?|optional|flexible|negotiable|said|says|n['’]t)\b"
    r"|(?:that|this|it|those|these|they) (?:is|are|do|does|did|was|were)n['’]t\b"
    r"|(?:das|dies) (?:war|stimmt nicht|gilt nicht|gilt nur|ist (?:nicht|nur|falsch|optional))\b"
    r"|(?:c['’](?:était|est (?:faux|un exemple|une blague))|ce n['’]est|cela ne|ça ne)"
    r"|(?:eso|esto) (?:no|era|es (?:falso|un ejemplo|broma))\b|(?:questo|quello) (?:non|era)\b"
    r"|(?:isso|isto) (?:não|era)\b|(?:dat|dit) (?:was|is niet|geldt niet|klopt niet)\b|это (?:не|было)\b"
    r"|这不|那是以前|这是(?:假|例)|那不|それは(?:違|嘘|例)|그건",
    re.IGNORECASE,
)
"""How a sentence begins that says of the one before it that it does not, or not quite, hold."""

EMPHASIZING = re.compile(
    r"not (?:negotiable|optional|a joke|up for|to be)|nicht verhandelbar|no exceptions"
    r"|not kidding|non négociable",
    re.IGNORECASE,
)

MATERIAL = re.compile(
    r"\b(?:translate|summari[sz]e|paraphrase|proofread|rewrite|rephrase|reword|correct|fix|improve"
    r"|shorten|edit"
    r"|übersetze|korrigiere|traduis|traduisez|corrige|corrigez|traduce|traduci|correggi|traduz"
    r"|vertaal|corrigeer)\b"
    r".{0,60}\b(?:text|sentences?|paragraphs?|essay|email|e-mail|letter|article|message|passage"
    r"|story|abstract|grammar"
    r"|satz|sätze|brief|texte|phrases?|lettre|texto|frases?|carta|testo|frase|lettera|zin|tekst|brief)\b"
    r"|\b(?:does|do) (?:this|that|it|the following) mean\b|\bis (?:this|that|it) (?:correct|right"
    r"|true|grammatical)\b"
    r"|翻译|翻譯|总结(?:一下)?这|翻訳|要約して|번역|переведи",
    re.IGNORECASE,
)
"""How a line ends that asks for something to be done with the text under it."""

HANDING_OVER = re.compile(
    r"(?:here(?:'s|’s| is| are| comes)|(?:this|that|the following) is|see|hier (?:ist|kommt|sind)"
    r"|voici|voilà"
    r"|aquí|ecco|aqui|hier is|вот)\b",
    re.IGNORECASE,
)
"""How a sentence begins that hands something over: "Here is …"."""
