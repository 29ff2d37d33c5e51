"""The words that the rules of pins know (T9), in the languages they know.

Everything is case-folded, with a straight apostrophe. Where a script writes no spaces, or joins words, the
entries are found anywhere in a text; the others only as whole words. A word that is missing here never
makes a pin: what is not known to be harmless is not left out of a quote.
"""

from __future__ import annotations

import re


def word_set(text: str) -> frozenset[str]:
    """The words of ``text``."""
    return frozenset(text.split())


THANKS = word_set("""
    please thanks thank bitte danke vielen dank merci s'il vous plaît te por favor gracias per
    grazie obrigado obrigada alsjeblieft alstublieft bedankt пожалуйста спасибо شكرا لطفا ممنون
    谢谢 謝謝 ありがとう ありがとうございます お願いします 감사합니다
    """)
"""What may be left out on both sides of a quote: it asks nicely, and says nothing."""

SPEAKING = word_set("""
    say says saying write writing type print reply answer respond word words with exactly as sag sage sagen
    schreib schreibe schreiben antworte mit dis dire écris réponds avec di decir escribe responde con scrivi
    rispondi dire diz escreve com zeg schrijf antwoord met 说 言う
    """)
"""Behind one of these a polite word may be what is to be said."""

LINKS = word_set("""
    please also so bitte auch aussi también anche também ook пожалуйста также لطفا
    """)
"""Those of :data:`POLITE` behind which a quote may begin without a comma."""

POLITE = (
    THANKS
    | LINKS
    | word_set("""
    ok okay hi hello hey dear note important remember reminder yes constraint constraints rule rules
    requirement requirements conditions limits hallo wichtig hinweis regel regeln vorgabe vorgaben
    bonjour salut note règle règles contrainte contraintes hola importante nota regla reglas ciao
    salve regola regole olá oi regra regras hoi belangrijk regels привет здравствуйте важно
    مرحبا سلام 你好 您好 另外 注意 重要 こんにちは 안녕하세요
    """)
)
"""What may be left out before any quote: it greets, announces, or asks nicely."""

FRAME = word_set("""
    i we i'm we're i've we've i'll my our the a an is are be it it's want need have has me us budget
    limit cap price absolutely strictly definitely whatsoever keep make spend ich wir mein meine
    unser unsere das der die es ist sind brauche brauchen habe haben grenze preis je j'ai nous mon
    mes notre le la est sont ai avons veux limite prix c'est mi mis nuestro nuestra el tengo quiero
    necesito presupuesto límite precio il mio mia nostro nostra è sono ho voglio prezzo meu minha
    nosso nossa é são tenho quero preciso orçamento preço ik wij mijn ons onze het heb wil limiet
    prijs
    """)
"""What may be left out before a quote that begins with its own bound: "my budget is | at most"."""

WILLING = word_set("""
    i we want absolutely strictly definitely ich wir will je nous veux quiero voglio quero ik wil
    """)
"""The same before "no" and its like: "I want | no nuts", and not "we have | no nuts"."""

SUBJECTS = word_set("i we ich wir je nous ik")
VERBS = word_set("""
    is are be it's want need have has keep make spend ist sind brauche brauchen habe haben will est sont ai
    avons veux c'est tengo quiero necesito è sono ho voglio é são tenho quero preciso heb wil i've we've j'ai
    """)
"""One of them goes with a subject that is left out: "I want | no nuts", and not "I | never eat nuts"."""

STRESSES = word_set("absolutely strictly definitely whatsoever")

ASKING_FIRST = word_set("is are have has be ist sind habe haben est sont ai avons è é são")
"""With one of these in front, words of :data:`FRAME` may be a question without its mark."""

REASONS = word_set("""
    am allergic allergy allergies vegan vegetarian intolerant diabetic celiac coeliac pregnant
    kosher halal to because bin allergisch gegen weil denn vegetarisch schwanger suis allergique aux
    à car soy alérgico alérgica porque allergico allergica perché sou tenho ben omdat
    """)
"""With these a clause beside the quote gives the reason for it: "no nuts, | I'm allergic"."""

STATES = word_set("""
    allergic allergy allergies vegan vegetarian intolerant diabetic celiac coeliac pregnant kosher
    halal allergisch vegetarisch schwanger allergique alérgico alérgica allergico allergica
    """)
"""One of them has to be in such a clause."""

SPEAKERS_WITH_VERB = word_set("i'm i've we're we've")
SPEAKERS = word_set("i we my our") | SPEAKERS_WITH_VERB
PLAIN_VERBS = word_set("""
    am are have need want love like eat drink live work travel fly go stay come arrive leave start use
    book pay
    """)
POINTERS = word_set(
    "it that this them those these so which one same such opposite contrary reverse too"
)
"""A clause with one of these may speak of what stands beside it."""

OPENERS = tuple(
    tuple(phrase.split())
    for phrase in """
    no more than;no less than;no later than;not more than;at most;at least;less than;more than;up to;do not
    no;never;only;max;maximum;min;minimum;must;don't;always;without;under;below;not
    kein;keine;keinen;keinem;keiner;nie;niemals;nur;höchstens;maximal;mindestens;nicht mehr als;nicht;ohne
    immer;muss;unter;bis zu
    au plus;au maximum;au moins;moins de;pas plus de;pas de;pas;jamais;seulement;uniquement;sans;aucun;aucune
    toujours;ne
    nunca;solo;sólo;solamente;máximo;como máximo;a lo sumo;al menos;como mínimo;sin;siempre
    non;mai;soltanto;massimo;al massimo;al più;almeno;senza;niente;nessun;nessuna;sempre
    não;só;somente;apenas;no máximo;pelo menos;sem
    geen;nooit;alleen;maximaal;hoogstens;ten hoogste;minstens;minimaal;niet;zonder;altijd
    """.strip()
    .replace("\n", ";")
    .split(";")
)
"""How a constraint of its own begins. A quote that is no whole sentence begins with one of them."""

OPENING_WORDS = frozenset(phrase[0] for phrase in OPENERS)

ONLY = word_set("only nur seulement uniquement solo sólo solamente soltanto só apenas alleen")
NEGATIONS = word_set("""
    no not never none nothing nobody neither nor cannot without kein keine keinen keinem keiner
    keines nie niemals nicht nichts ohne weder pas ne jamais aucun aucune sans ni rien nunca jamás
    ningún ninguna sin tampoco nada non mai nessun nessuna nessuno senza niente não nem nenhum
    nenhuma sem geen nooit niet niets zonder noch не нет нельзя никогда без ни لا ليس لن لم ليست
    بدون نه بدونِ هرگز نباید
    """)
BOUNDS = word_set("""
    only just most least max maximum min minimum under below over above beyond exceed exceeding
    exceeds less more fewer limit cap within until before after by than least must always should
    required allergic nur höchstens maximal mindestens unter über bis vor nach weniger mehr muss
    müssen immer plus moins maximum minimum seulement uniquement avant après toujours doit solo sólo
    solamente máximo mínimo menos más antes después siempre debe soltanto massimo minimo almeno meno
    più prima dopo sempre deve só somente apenas mais até depois alleen maximaal hoogstens minstens
    minimaal onder boven minder meer altijd moet только максимум минимум более менее больше меньше
    до свыше всегда должен должна فقط أقصى أقل أكثر حداکثر حداقل باید همیشه
    """)
NARROWING = word_set("""
    if unless except excluding excepting provided providing assuming otherwise but however although
    though while when whenever or depending instead save apart besides wenn falls sofern außer
    ausser ausgenommen aber jedoch sondern oder solange ansonsten sonst si sauf excepté hormis mais
    cependant ou lorsque quand pourvu salvo excepto pero aunque cuando sino siempre se tranne
    eccetto ma però quando oppure purché exceto mas porém caso als tenzij behalve maar of mits
    wanneer если кроме но однако или когда إذا إلا باستثناء لكن أو اگر مگر اما یا
    """)
HEDGES = word_set("""
    may might maybe perhaps possibly probably could would can ideally preferably prefer roughly
    about around approximately approx almost nearly usually normally generally sometimes mostly
    guess think believe suppose hope wish seems kidding joking mind wait wrong false untrue lied
    pretend fine allowed acceptable vielleicht eventuell möglicherweise ungefähr etwa circa ca
    könnte würde kann darf meist normalerweise glaube denke lieber hoffentlich idealerweise
    peut-être peut pourrait environ probablement plutôt normalement idéalement crois pense quizás
    quizá tal vez aproximadamente puede podría probablemente creo preferiblemente forse circa può
    potrebbe probabilmente credo preferibilmente talvez cerca pode poderia provavelmente acho
    misschien ongeveer kan mag zou waarschijnlijk liever может возможно примерно около наверное
    лучше ربما تقريبا قد شاید تقریبا حدود
    """)
SCOPES = word_set("""
    for in on at during with from to of by per each every within until till before after since
    between as für im in am an bei während mit von pro je jede jeden bis vor nach seit zwischen pour
    dans en sur à au aux pendant avec de du des chaque para en el los durante con del cada per nel
    nella su con di del ogni para em no na durante com do da voor op bij tijdens met van elke
    """)
MODALS = word_set(
    "must always should required limit allergic muss müssen immer doit toujours debe siempre deve sempre moet"
    " altijd должен должна всегда باید همیشه"
)
"""Of the bounds these only say that what follows counts."""

TITLES = word_set("""
    constraint constraints rule rules requirement requirements conditions limits regel regeln vorgabe
    vorgaben règle règles contrainte contraintes regla reglas regola regole regra regras regels important
    note remember reminder wichtig importante belangrijk важно 注意 重要
    """)

AVERSIONS = word_set("""
    avoid avoids exclude exclusions hate hates dislike dislikes stop skip ignore forget refuse reject ban
    banned bans forbidden prohibited remove drop omit delete disregard no-gos no-go nogos taboo taboos
    don'ts blacklist vermeide vermeiden hasse verboten verbote ignoriere vergiss weglassen stopp
    évite évitez éviter déteste interdit interdits ignore ignorez supprime evita evite evitar odio prohibido
    prohibidos ignora evitare vietato vietati proibido proibidos vermijd vermijden haat verboden negeer
    избегай избегайте ненавижу запрещено تجنب اجتناب
    """)
"""In a title they turn around what stands under it."""

UNSPACED_AVERSIONS = re.compile("避免|避け|讨厌|討厭|嫌い|忽略|禁止|排除|피하|싫|금지|제외")

LABELS = word_set(
    "restriction restrictions preferences needs boundaries must-haves musts dealbreakers deadline details"
    " notes points wishes facts summary bedarf wünsche hinweise souhaits besoins notas deseos note"
    " appunti desideri wensen"
    " 要求 需求 条件 限制 要件 요구사항 조건 требования условия ограничения пожелания"
    " شروط متطلبات شرایط"
    " info general dietary diet constraint constraints requirement requirements vorgaben bedingungen"
    " contraintes exigences restricciones requisitos restrizioni requisiti restrições eisen"
)
"""With one of these, what stands over a list is its title."""

OPERATORS = NEGATIONS | BOUNDS | NARROWING | HEDGES
"""Words that change what a rule beside them says."""

UNSPACED_OPERATORS = re.compile(
    "[不没沒無无别別勿莫非未禁只仅僅若如但]|除|最多|最少|至少|至多|超过|超過|以内|以下|以上|必须|必須|可能|大约|大約|也许|或"
    "|ない|ません|なく|ずに|以外|だけ|しか|まで|もし|場合|たぶん|かも|ぐらい|くらい|約|ただし"
    "|않|못|없|말고|마세요|하지|아니|만 |까지|이하|이상|미만|최대|최소|경우|아마|약 |제외"
)

REPORTS = word_set("""
    said says say saying told tells wrote writes write written asked asks claims claimed thinks
    thought according quote quoted quotes quoting forwarded fwd fw email e-mail mail article policy
    document transcript letter review contract log logs website blog message post pasted paste
    system assistant bot sagte sagt gesagt schrieb schreibt geschrieben meinte meint laut zitat
    artikel brief vertrag protokoll nachricht dit disait écrit selon citation courriel texte lettre
    contrat demandé demande dijo dice dicho escribió según cita correo artículo texto carta contrato
    mensaje disse detto scritto scrive citazione articolo testo lettera contratto messaggio diz
    escreveu segundo citação artigo mensagem zei zegt schreef volgens citaat tekst bericht сказал
    сказала говорит написал написала пишет согласно цитата письмо статья قال قالت كتب كتبت وفقا
    اقتباس رسالة مقال گفت نوشت نقل ایمیل مقاله
    """)
"""Behind a colon after one of these stand the words of somebody else."""

UNSPACED_REPORTS = re.compile(
    "[说說]|写道|寫道|告诉|告訴|引用|邮件|郵件|原文|文章|言った|言って|書いた|によると|メール|記事|말했|썼|따르면|인용|메일|기사"
)

EXAMPLES = word_set("""
    example examples instance suppose imagine hypothetical hypothetically sample e.g beispiel
    beispiele angenommen exemple exemples supposons ejemplo esempio exemplo voorbeeld например
    пример مثال مثلا
    """)
UNSPACED_EXAMPLES = re.compile("例如|比如|假如|假设|例えば|예를|예:")

DANGLING = (
    word_set("""
    and any the a an this that these those your my our their his her its not und oder ein eine einen
    einem einer der die das den dem kein keine keinen et ou un une le la les des mon ma y o un una
    el los las e il lo gli um uma os as en of een de het
    """)
    | SCOPES
    | OPERATORS
)
"""A line that ends with one of these goes on in the next."""

FRAGMENTS = word_set("""
    unless except excluding excepting provided assuming or außer ausser ausgenommen sofern oder sauf
    excepté hormis pourvu salvo excepto tranne eccetto purché exceto tenzij behalve mits кроме مگر
    إلا
    """)
"""A sentence that begins with one of these belongs to the one before it."""

CONDITIONS = word_set("if only wenn falls nur si seulement se solo als alleen если اگر إذا")
"""Where these begin a sentence of a few words, without a comma, it belongs to the one before it."""

BUTS = word_set("""
    but however though although aber jedoch mais cependant pero aunque ma però mas porém maar но
    однако
    """)
PERMISSIONS = word_set("""
    fine ok okay allowed acceptable can may except unless if exception exceptions only not okay
    erlaubt ausnahme ausgenommen außer darf wenn geht permis autorisé sauf si peut exception
    permitido vale bien excepto si puede va bene tranne se può permitido exceto se pode mag prima
    behalve tenzij als можно кроме если
    """)
UNSPACED_FRAGMENTS = re.compile("除非|除了|但|不过|不過|ただし|でも|しかし|단,|다만|하지만|그러나")

HEDGING_FRAGMENTS = word_set("""
    wrong false psych april fools
    i think i guess maybe perhaps probably ideally if possible roughly usually normally mostly more
    or less or so for now at least not just kidding lol haha jk joking well almost kind of sort
    vielleicht eventuell wenn möglich ungefähr im moment scherz nur spaß peut-être si possible
    environ je plaisante quizás si es posible tal vez forse se possibile scherzo talvez misschien
    indien mogelijk
    """)
JOKES = frozenset("😉😜😝🙃😂🤣😏")

OTHERS = word_set(
    "he she they said says my sagte er sie dijo dit il elle ha disse zei hij zij он она сказал"
)
"""Where a few words begin that say who said it."""

_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")


def words_of(text: str) -> list[str]:
    """The words of ``text``, case-folded, with straight apostrophes."""
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text)]


def has_operator(text: str, found: list[str] | None = None) -> bool:
    """Whether a negation, bound, exception, condition or hedge is in ``text``, in any language known."""
    each = words_of(text) if found is None else found
    return (
        any(word in OPERATORS or word.endswith("n't") for word in each)
        or UNSPACED_OPERATORS.search(text) is not None
    )
