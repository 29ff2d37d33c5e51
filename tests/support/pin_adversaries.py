"""Quotes that no pin may ever be made of (T9), with the user's text each was said to be from.

Written without the word lists of the rules, from what can go wrong: a value cut out of a longer one, a rule
without its negation, bound, exception or condition, characters that only look alike, the words of others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple


class PinCase(NamedTuple):
    """A user's text and a quote that is proposed of it."""

    kind: str
    text: str
    quote: str


def adversaries() -> list[PinCase]:
    """All of them, each once."""
    return list(dict.fromkeys(case for family in _FAMILIES for case in family()))


def _amounts() -> Iterator[PinCase]:
    """A value that is a part of another one: $500 in $5,000, in both directions."""
    values = [
        (
            "$5,000",
            ("$500", "$5", "5,000", "$5,00", "000", "5", ",000", "$", "$50,000", "$5,000,000"),
        ),
        ("$500", ("$5,000", "$50", "500", "00", "$5", "$500.00", "$1,500")),
        ("$500.50", ("$500", "500.50", "500", "50", "$500.5")),
        ("5.000 EUR", ("5", "5.000", "000 EUR", "500 EUR", "50.000 EUR", "5.00 EUR")),
        ("1 500 EUR", ("500 EUR", "1 500", "500", "1 50", "11 500 EUR")),
        ("1\u202f500\u00a0€", ("500\u00a0€", "1\u202f500", "500", "1 500 €")),
        ("€1,250,000", ("€1,250", "250,000", "1,250,000", "€1", "€1.25")),
        ("-5 °C", ("5 °C", "5", "-5", "-5 °")),
        ("±3 mm", ("3 mm", "3", "±3")),
        ("12.5%", ("12", "12.5", "5%", "2.5%", "12.5")),
        ("10–12 people", ("12 people", "10", "10–12", "2 people")),
        ("10-12 people", ("12 people", "10", "10-12", "0-12 people")),
        ("2026-03-12", ("2026", "03-12", "2026-03", "2026-03-1", "26-03-12", "2026-03-21")),
        ("12/03/2026", ("12/03", "03/2026", "2/03/2026", "12/03/202")),
        ("14:30", ("14", "30", "4:30", "14:3")),
        ("3x2 m", ("2 m", "3", "x2 m")),
        ("500k USD", ("500", "500k", "k USD")),
        ("USD 500", ("500", "USD", "USD 50", "USD 5000")),
        ("5'000 CHF", ("000 CHF", "5", "5'000")),
        ("½ litre", ("litre", "½")),
        ("10² m", ("10", "² m")),
        ("~500 EUR", ("500 EUR", "500")),
        ("<500 EUR", ("500 EUR",)),
        ("≤ 500 EUR", ("500 EUR", "500")),
        ("> 500 EUR", ("500 EUR", "500")),
        ("≠ 500 EUR", ("500 EUR",)),
        ("#42", ("42",)),
        ("@rome", ("rome",)),
        ("500/night", ("500", "night")),
        ("５００円", ("500円", "５０円", "５００", "00円")),
        ("٥٠٠ ريال", ("500 ريال", "٥٠ ريال", "٥٠٠")),
        ("五千元", ("五千", "千元", "五", "五百元")),
    ]
    frames = [
        "My budget is {}.",
        "Keep it at {} in total",
        "The limit is {}, please.",
        "{} or less, thanks",
    ]
    for value, cuts in values:
        for frame in frames:
            for cut in cuts:
                yield PinCase("amount", frame.format(value), cut)


_NEGATED = [
    (
        "I do not want hotels over $500.",
        "want hotels over $500.",
        "hotels over $500.",
        "hotels over $500",
    ),
    ("Never book Ryanair.", "book Ryanair.", "book Ryanair", "Ryanair"),
    ("No nuts at all.", "nuts at all.", "nuts"),
    ("Don't use the red theme.", "use the red theme.", "use the red theme", "t use the red theme."),
    ("We won't pay by credit card.", "pay by credit card.", "pay by credit card", "We won"),
    ("I can't eat gluten.", "eat gluten.", "I can", "eat gluten"),
    ("There must be no smoking rooms.", "smoking rooms.", "There must be", "smoking rooms"),
    ("Under no circumstances sell the Luxembourg funds.", "sell the Luxembourg funds."),
    ("I'd rather die than fly with Wizz.", "fly with Wizz.", "fly with Wizz"),
    ("Avoid flights with more than one stop.", "flights with more than one stop."),
    ("Please refrain from using any dairy.", "using any dairy.", "any dairy"),
    ("Neither beef nor pork, please.", "beef nor pork, please.", "pork, please."),
    ("It is not true that I only eat vegan.", "I only eat vegan.", "only eat vegan."),
    ("This is a non-refundable trip.", "refundable trip.", "refundable"),
    ("My trip is un-cancellable", "cancellable"),
    (
        "Bitte buche auf keinen Fall ein Zimmer über 500 EUR.",
        "ein Zimmer über 500 EUR.",
        "über 500 EUR.",
    ),
    ("Ich esse kein Schweinefleisch.", "Schweinefleisch.", "Schweinefleisch", "Ich esse"),
    ("Nimm nicht die Bahn.", "die Bahn.", "die Bahn", "Nimm"),
    ("Keinesfalls mehr als zwei Nächte.", "mehr als zwei Nächte.", "zwei Nächte"),
    ("Ich will nie wieder höchstens 3 Sterne.", "höchstens 3 Sterne.", "höchstens 3 Sterne"),
    ("Je ne veux pas de noix.", "de noix.", "noix", "pas de noix.", "Je", "veux pas de noix"),
    (
        "Il ne faut jamais dépasser 500 EUR.",
        "dépasser 500 EUR.",
        "500 EUR",
        "jamais dépasser 500 EUR.",
    ),
    ("Aucun hôtel avec piscine.", "hôtel avec piscine.", "hôtel avec piscine"),
    ("No quiero vuelos con escala.", "quiero vuelos con escala.", "vuelos con escala."),
    ("Nunca reserves con Ryanair.", "reserves con Ryanair.", "Ryanair"),
    ("Sin frutos secos.", "frutos secos.", "frutos secos"),
    ("Non voglio hotel sopra i 500 euro.", "voglio hotel sopra i 500 euro.", "sopra i 500 euro."),
    ("Niente noci, per favore.", "noci, per favore.", "noci"),
    ("Não quero voos com escala.", "quero voos com escala.", "voos com escala."),
    ("Nunca mais de 500 euros.", "mais de 500 euros.", "500 euros"),
    ("Geen noten alsjeblieft.", "noten alsjeblieft.", "noten"),
    ("Ik wil niet meer dan 500 euro betalen.", "meer dan 500 euro betalen.", "500 euro"),
    ("不要超过五千。", "要超过五千。", "超过五千。", "超过五千", "五千。"),
    ("我不吃花生。", "吃花生。", "花生。", "我"),
    ("请不要订瑞安航空", "订瑞安航空", "瑞安航空", "要订瑞安航空"),
    ("别超过 500 元。", "超过 500 元。", "500 元。", "500 元"),
    ("不要 超过五千", "超过五千"),
    ("预算没有上限，随便。", "预算"),
    ("500円以上は払いません。", "500円以上は払い", "500円以上", "500円以上は払"),
    ("ナッツを入れないでください。", "ナッツを入れ", "ナッツ", "ナッツを入れない", "ナッツを"),
    ("喫煙室は嫌いです。", "喫煙室", "喫煙室は"),
    ("ホテル は 500円 以上 に しません。", "ホテル は 500円 以上", "500円 以上"),
    ("견과류를 넣지 마세요.", "견과류를 넣지", "견과류를", "넣지"),
    ("500달러 이상은 안 됩니다.", "500달러 이상은", "500달러", "500달러 이상"),
    ("لا أريد المكسرات.", "أريد المكسرات.", "المكسرات.", "المكسرات"),
    ("لا تحجز فندقا فوق 500 دولار.", "تحجز فندقا فوق 500 دولار.", "فوق 500 دولار"),
    ("آجیل نمی‌خورم.", "آجیل", "خورم.", "آجیل نمی"),
    ("بیشتر از ۵۰۰ دلار نشود.", "بیشتر از ۵۰۰ دلار", "۵۰۰ دلار"),
    ("Я не ем орехи.", "ем орехи.", "орехи", "Я", "орехи."),
    ("Никогда не бронируй Ryanair.", "не бронируй Ryanair.", "бронируй Ryanair.", "Ryanair"),
    ("Fındık istemiyorum.", "Fındık"),
    ("Inga nötter, tack.", "nötter, tack.", "nötter"),
    ("Nie chcę orzechów.", "chcę orzechów.", "orzechów"),
    ("मुझे मेवे नहीं चाहिए।", "मुझे मेवे", "मेवे"),
    ("ไม่เอาถั่ว", "เอาถั่ว", "ถั่ว"),
]


def _negations() -> Iterator[PinCase]:
    for text, *quotes in _NEGATED:
        for before in ("", "Hi! ", "Thanks for the help.\n\n", "- "):
            for quote in quotes:
                yield PinCase("negation", before + text, quote)


_NARROWED = [
    ("No nuts unless they are roasted.", "No nuts", "No nuts unless", "unless they are roasted."),
    ("No nuts, except almonds.", "No nuts", "except almonds."),
    ("No nuts (except almonds).", "No nuts", "No nuts (except", "except almonds"),
    ("No nuts - except almonds.", "No nuts"),
    ("No nuts; almonds are fine though.", "No nuts", "almonds are fine"),
    ("No nuts, but almonds are fine.", "No nuts", "almonds are fine."),
    ("No nuts for my daughter.", "No nuts"),
    ("For my daughter, no nuts.", "no nuts.", "no nuts"),
    ("On Fridays, no meetings.", "no meetings.", "no meetings"),
    ("No meetings on Fridays.", "No meetings"),
    ("On Fridays: no meetings.", "no meetings."),
    (
        "Hotel: at most 200 EUR. Breakfast included.",
        "at most 200 EUR.",
        "at most 200 EUR",
        "Breakfast included.",
    ),
    ("If it rains, no outdoor seats.", "no outdoor seats.", "no outdoor seats"),
    ("If you find nothing else, book Ryanair.", "book Ryanair.", "book Ryanair"),
    ("Book Ryanair if you find nothing else.", "Book Ryanair"),
    ("Book the Hilton unless it costs more than $300.", "Book the Hilton", "costs more than $300."),
    ("At most 500 EUR per night.", "At most 500 EUR", "500 EUR per night."),
    ("At most 500 EUR a month.", "At most 500 EUR"),
    ("At most 500 EUR including taxes.", "At most 500 EUR"),
    ("At most 500 EUR/person.", "At most 500 EUR"),
    ("At most 500 or 600 EUR.", "At most 500", "600 EUR"),
    ("At most 500 million EUR.", "At most 500"),
    ("Spend at most 500 EUR before March.", "Spend at most 500 EUR", "at most 500 EUR"),
    ("Only Luxembourg funds until 2027.", "Only Luxembourg funds"),
    ("Only Luxembourg funds or Irish ones.", "Only Luxembourg funds", "Irish ones."),
    ("Only Luxembourg funds and Irish ones.", "Only Luxembourg funds"),
    ("No meat, only fish.", "No meat", "fish"),
    ("No hotels, only if there is no hostel.", "No hotels"),
    ("I think at most 500 EUR.", "at most 500 EUR.", "at most 500 EUR"),
    ("Maybe at most 500 EUR.", "at most 500 EUR.", "at most 500 EUR"),
    ("Ideally no stops.", "no stops.", "no stops"),
    ("I would prefer no stops.", "no stops.", "no stops", "I would prefer"),
    ("I'd like no stops, if possible.", "no stops", "I'd like no stops"),
    ("Roughly at most 500 EUR", "at most 500 EUR"),
    ("You may book at most 3 rooms.", "at most 3 rooms.", "book at most 3 rooms."),
    ("It would be nice to have no stops.", "no stops.", "no stops", "have no stops."),
    (
        "Last year my budget was at most 500 EUR.",
        "at most 500 EUR.",
        "my budget was at most 500 EUR.",
    ),
    ("My wife's budget is at most 500 EUR.", "at most 500 EUR.", "budget is at most 500 EUR."),
    ("The hotel budget is at most 500 EUR.", "at most 500 EUR.", "at most 500 EUR"),
    ("We have no nuts.", "no nuts.", "no nuts"),
    ("I have no preference.", "no preference.", "no preference"),
    ("It is no problem.", "no problem."),
    ("Is my budget at most 500 EUR?", "at most 500 EUR", "my budget at most 500 EUR"),
    ("Only vegan food?", "Only vegan food"),
    ("Should I say no nuts?", "no nuts", "I say no nuts"),
    ("No nuts...", "No nuts"),
    ("No nuts… well", "No nuts"),
    ("At most $500*\n\n*plus taxes", "At most $500"),
    ("No nuts 😉", "No nuts"),
    ("At most 500 EUR, no, 700 EUR.", "At most 500 EUR", "700 EUR."),
    ("At most 500 EUR, no 700 EUR.", "At most 500 EUR"),
    ("At most 500 EUR, max 700 EUR.", "At most 500 EUR"),
    ("no nuts, never mind", "no nuts"),
    ("no nuts, no wait", "no nuts"),
    ("No nuts, I'm kidding.", "No nuts"),
    ("No nuts, I lied.", "No nuts"),
    ("Höchstens 500 EUR, außer in Rom.", "Höchstens 500 EUR", "außer in Rom."),
    ("Höchstens 500 EUR pro Nacht.", "Höchstens 500 EUR"),
    ("Wenn es regnet, keine Plätze draußen.", "keine Plätze draußen.", "keine Plätze draußen"),
    ("Vielleicht höchstens 500 EUR.", "höchstens 500 EUR.", "höchstens 500 EUR"),
    ("Ich glaube, höchstens 500 EUR.", "höchstens 500 EUR.", "höchstens 500 EUR"),
    ("Keine Nüsse, aber Mandeln gehen.", "Keine Nüsse", "Mandeln gehen."),
    ("Pas de noix, sauf les amandes.", "Pas de noix", "les amandes."),
    ("Au plus 500 EUR par nuit.", "Au plus 500 EUR"),
    ("S'il pleut, pas de terrasse.", "pas de terrasse.", "pas de terrasse"),
    ("Peut-être au plus 500 EUR.", "au plus 500 EUR."),
    ("Sin nueces, salvo almendras.", "Sin nueces", "almendras."),
    ("Como máximo 500 EUR por noche.", "Como máximo 500 EUR"),
    ("Si llueve, sin terraza.", "sin terraza.", "sin terraza"),
    ("Quizás como máximo 500 EUR.", "como máximo 500 EUR."),
    ("Senza noci, tranne le mandorle.", "Senza noci"),
    ("Al massimo 500 EUR a notte.", "Al massimo 500 EUR"),
    ("Se piove, senza terrazza.", "senza terrazza."),
    ("Sem nozes, exceto amêndoas.", "Sem nozes", "amêndoas."),
    ("No máximo 500 EUR por noite.", "No máximo 500 EUR"),
    ("Geen noten, behalve amandelen.", "Geen noten"),
    ("Maximaal 500 EUR per nacht.", "Maximaal 500 EUR"),
    ("Als het regent, geen terras.", "geen terras."),
    ("最多五千，除非是头等舱。", "最多五千", "除非是头等舱。"),
    ("如果下雨，不要室外座位。", "不要室外座位。", "不要室外座位"),
    ("也许最多五千。", "最多五千。", "最多五千"),
    ("每晚最多500元。", "最多500元。", "最多500元"),
    ("最多五千，大概。", "最多五千"),
    ("5000円以内、ただし税別。", "5000円以内", "税別。"),
    ("雨なら、屋外席は不要。", "屋外席は不要。", "屋外席は不要"),
    ("5000円以内かもしれません。", "5000円以内", "5000円以内かも"),
    ("一泊5000円以内です。", "5000円以内です。", "5000円以内"),
    ("최대 500달러, 단 세금 제외.", "최대 500달러", "세금 제외."),
    ("비가 오면, 야외석은 안 돼요.", "야외석은 안 돼요.", "야외석은"),
    ("Не более 500 евро, кроме Рима.", "Не более 500 евро", "кроме Рима."),
    ("Если дождь, без террасы.", "без террасы.", "без террасы"),
    ("Возможно, не более 500 евро.", "не более 500 евро.", "не более 500 евро"),
    ("بحد أقصى 500 دولار، إلا في روما.", "بحد أقصى 500 دولار", "إلا في روما."),
    ("إذا أمطرت، بدون شرفة.", "بدون شرفة."),
    ("حداکثر ۵۰۰ دلار، مگر در رم.", "حداکثر ۵۰۰ دلار", "مگر در رم."),
    ("اگر باران بیاید، بدون تراس.", "بدون تراس."),
]


def _exceptions() -> Iterator[PinCase]:
    for text, *quotes in _NARROWED:
        for before, after in (("", ""), ("Hello there! ", ""), ("", "\nThanks!")):
            for quote in quotes:
                yield PinCase("narrowed", before + text + after, quote)


def _next_sentences() -> Iterator[PinCase]:
    """A whole sentence that the next one takes back, narrows or corrects."""
    rules = [
        "No nuts.",
        "At most 500 EUR.",
        "Only Luxembourg funds.",
        "Never book Ryanair.",
        "My budget is 500 EUR.",
    ]
    followers = [
        "Unless I say otherwise.",
        "Except on Sundays.",
        "Just kidding!",
        "Scratch that.",
        "Never mind.",
        "Forget it.",
        "No wait, I take it back.",
        "Wait, no.",
        "Only if it is cheap.",
        "If possible.",
        "Ideally.",
        "Maybe.",
        "I think.",
        "More or less.",
        "But exceptions are fine.",
        "However, not if it rains.",
        "Or so.",
        "Actually, 700 EUR is what I meant.",
        "Sorry, I meant something else.",
        "Correction: 800 EUR.",
        "Make that 900 EUR.",
        "That was my old rule.",
        "This no longer applies.",
        "That's not true.",
        "It isn't so.",
        "He said.",
        "Wrong!",
        "Das war früher so.",
        "Das stimmt nicht.",
        "C'était une blague.",
        "Eso no es verdad.",
        "Questo non vale.",
        "Isso era antes.",
        "Dat klopt niet.",
        "这不是真的。",
        "Außer am Sonntag.",
        "Quatsch, vergiss das.",
        "Je plaisante.",
        "Sauf le dimanche.",
        "Salvo los domingos.",
        "Tranne la domenica.",
        "Exceto aos domingos.",
        "Behalve op zondag.",
        "Кроме воскресенья.",
        "除非我另说。",
        "但周日可以。",
        "ただし日曜は別です。",
        "단, 일요일은 괜찮아요.",
        "إلا يوم الأحد.",
        "مگر یکشنبه.",
        "😜",
    ]
    for rule in rules:
        for follower in followers:
            for between in (" ", "\n"):
                yield PinCase("next sentence", f"{rule}{between}{follower}", rule)
                yield PinCase("next sentence", f"{rule}{between}{follower}", rule[:-1])


def _earlier_corrected() -> Iterator[PinCase]:
    for amount, other in (("500 EUR", "700 EUR"), ("$500", "$700"), ("3 rooms", "4 rooms")):
        for mark in (
            "Actually, make it {}.",
            "Sorry, I meant {}.",
            "Correction: {}.",
            "No wait, {}.",
        ):
            text = f"My limit is {amount}. No nuts. {mark.format(other)}"
            yield PinCase("corrected", text, f"My limit is {amount}.")
            yield PinCase("corrected", text, f"My limit is {amount}")


_ANNOUNCED = [
    "My colleague said:",
    "My boss wrote:",
    "Please don't:",
    "What I do not want:",
    "This is what the hotel told me:",
    "Here is the email from the vendor:",
    "For example:",
    "Suppose the following:",
    "If it rains:",
    "None of these:",
    "Ignore this article:",
    "Anna:",
    "Assistant:",
    "Mein Chef sagte:",
    "Auf keinen Fall:",
    "Zum Beispiel:",
    "Mon collègue a dit:",
    "Par exemple:",
    "Ce que je ne veux pas:",
    "Mi jefe dijo:",
    "Por ejemplo:",
    "Lo que no quiero:",
    "Il mio capo ha detto:",
    "Ad esempio:",
    "O meu chefe disse:",
    "Mijn baas zei:",
    "Bijvoorbeeld, voorbeeld:",
    "Мой начальник сказал:",
    "Например:",
    "我老板说：",
    "例如：",
    "不要：",
    "上司が言った：",
    "例えば：",
    "예를 들면:",
    "قال مديري:",
    "رئیسم گفت:",
]


_TITLES = [
    "Please avoid:", "Things that I really hate:", "Exclude all of these:", "Hotel:", "For my daughter:",
    "Our competitor's offer:", "Last year's rules of my boss:", "What he proposes:", "Banned:",
    "Bitte vermeiden:", "À éviter:", "Para evitar:", "Da evitare:", "Te vermijden:", "避免：", "避けるもの：",
]  # fmt: skip


def _announced() -> Iterator[PinCase]:
    rules = ["At most 500 EUR.", "No nuts.", "Book the Hilton.", "Only Luxembourg funds."]
    for lead in _ANNOUNCED:
        for index, rule in enumerate(rules):
            yield PinCase("announced", f"{lead}\n- {rule}\n- Use the train.", rule)
            yield PinCase("announced", f"{lead}\n- Use the train.\n- {rule}", rule)
            yield PinCase("announced", f"{lead}\n{rule}\nUse the train.", rule)
            yield PinCase("announced", f"{lead} {rule}", rule)
            if index % 2:
                yield PinCase("announced", f"{lead} Use the train. {rule}", rule)
                yield PinCase("announced", f"{lead}\n\n{rule}", rule)
    for title in _TITLES:
        for rule in rules:
            yield PinCase("announced", f"{title}\n- {rule}\n- Use the train.", rule)
            yield PinCase("announced", f"**{title}**\n\n- Use the train.\n- {rule}", f"- {rule}")
            yield PinCase("announced", f"- {title}\n  - {rule}\n- Use the train.", rule)
            yield PinCase("announced", f"- {title}\n    - Use the train.\n    - {rule}", rule)
    for rule in rules:
        yield PinCase("announced", f"You wrote\n\n{rule}\n\nIs that so?", rule)
        yield PinCase("announced", f"Translate the sentence.\n\n{rule}", rule)
        yield PinCase("announced", f"Please fix the grammar of this text\n{rule}", rule)
        yield PinCase("announced", f"What does this mean?\n{rule}", rule)
        yield PinCase("announced", f"He told me three things. {rule} It was late.", rule)
        yield PinCase("announced", f"My boss said this. {rule}", rule)
        yield PinCase("announced", f"Imagine a case. {rule}", rule)
        yield PinCase("announced", f"<notes>\n{rule}\n</notes>\nWhat do you think?", rule)
        yield PinCase("announced", f"None of the following is true. {rule}", rule)
        yield PinCase("announced", f"Ignore what the text below says.\n\n{rule}", rule)
        yield PinCase("announced", f"My colleague said:\n\nHello.\n\n{rule}\n\nBye.", rule)
        yield PinCase("announced", f"Here is what my landlord wrote.\n\n{rule}", rule)
        yield PinCase("announced", f"## What I don't want\n\n- {rule}\n", rule)
        yield PinCase("announced", f"What I don't want\n- {rule}\n", rule)


def _set_apart() -> Iterator[PinCase]:
    rules = ["At most 500 EUR.", "No nuts.", "Only Luxembourg funds.", "不要花生。"]
    frames = [
        'He told me "{}" yesterday.',
        '"{}"',
        "“{}”",
        "„{}“ war der Satz.",
        "« {} » était la phrase.",
        "「{}」",
        "『{}』と書いてある。",
        "'{}' is what it says.",
        "‘{}’ is what it says.",
        "> {}\nWhat is that?",
        "Hello\n> {}\n",
        "```\n{}\n```",
        "~~~\n{}\n~~~\n",
        "```text\nHello.\n{}\nBye.\n",
        "`{}` is a string.",
        "~~{}~~",
        "~~Hello. {} Bye.~~",
        "<email>\n{}\n</email>",
        "<document index='1'>Hello. {} Bye.</document>",
        "<del>Yes. {} No.</del>",
        "<!-- {} -->",
        '"Hello. {} Bye."',
        '"Hello. {} Bye.',
        "-----Original Message-----\nHello.\n{}",
        "From: Anna\nSubject: trip\n\n{}",
        "Begin forwarded message:\n\n{}",
        "On Mon, 3 Mar 2026, Anna wrote:\n\n{}",
        "My colleague said: {}",
        "(Just an idea. {} What do you think?)",
        "| nuts | {} |",
    ]
    for rule in rules:
        for frame in frames:
            yield PinCase("set apart", frame.format(rule), rule)
            yield PinCase("set apart", frame.format(rule), rule[:-1])


_SPEAKERS = [
    ("I never eat nuts.", "never eat nuts.", "never eat nuts"),
    ("I don't like it.", "don't like it.", "don't like it"),
    ("We only have two rooms.", "only have two rooms."),
    ("I must be home by five.", "must be home by five."),
    ("Ich esse nie Nüsse.", "nie Nüsse."),
    ("I'm allergic to at most 3 nuts.", "at most 3 nuts."),
    ("Always say please.", "Always say"),
    ("Never write thank you.", "Never write"),
    ("Reply with exactly OK.", "Reply with exactly"),
    ("Please don't:\n- use Ryanair", "Please don't", "don't"),
    ("No nuts,\n", "No nuts"),
    ("Only these:", "Only these"),
    ("Thank you for at most 3 tries.", "for at most 3 tries.", "at most 3 tries."),
    ("Please try the red one again.", "try the red one", "Please try the red one"),
    ("Then no nuts.", "no nuts."),
    ("Otherwise no nuts.", "no nuts."),
    ("My budget is 4,000 EUR and I want it changed.", "My budget is 4,000 EUR"),
    ("My budget is 4,000 EUR and I lied.", "My budget is 4,000 EUR"),
    ("My budget is 4,000 EUR and my wife's is twice that.", "My budget is 4,000 EUR"),
    ("If I win I fly first class and I drink wine.", "I drink wine", "I drink wine."),
    ("I said I'm vegan and I eat fish.", "I eat fish", "I'm vegan", "I eat fish."),
    ("I think I'm allergic to nuts and I love fish.", "I'm allergic to nuts", "I love fish."),
    ("I eat fish and I eat only on Fridays.", "I eat fish"),
    ("I eat fish and I would rather not.", "I eat fish"),
    ("I eat fish and I want the opposite.", "I eat fish"),
    ("Neither do I eat fish and I love tea.", "I love tea"),
    ("My brother and I eat fish.", "I eat fish."),
    ("I eat fish and meat.", "I eat fish"),
    ("I eat fish and we two agree.", "I eat fish"),
    ("Hi there, Anna. Only vegan food.", "there, Anna. Only vegan food."),
    ("No nuts and y.", "No nuts"),
    ("No nuts und A.", "No nuts"),
]


def _spoken() -> Iterator[PinCase]:
    """What is left out is small, and changes who says what to whom, or whether it goes on."""
    for text, *quotes in _SPEAKERS:
        for quote in quotes:
            yield PinCase("spoken", text, quote)
            yield PinCase("spoken", f"Hi! {text}", quote)


_BEFORE = [
    "I never said", "Nobody wants", "My ex wanted", "It is false that we want", "She needs", "They have",
    "Who wants", "Let's not say", "Stop saying", "What if", "Imagine", "Say", "Somebody with", "In Rome",
    "For lunch", "Tomorrow", "Since 2020", "Old rule:", "Draft:", "My boss's rule:", "Hardly", "Rarely",
    "Almost", "Unless", "Quote:", "Title:", "Example:", "I used to want", "I once had", "Do you mean",
    "Forget about", "Ignore", "Instead of", "Apart from", "Rather than", "If there are", "Whether",
    "Not necessarily", "Possibly", "Usually", "Except when there are", "I doubt that we want", "🚫", "~", "≠",
    "Jeder außer mir will", "Früher wollte ich", "Statt", "Wer will", "Avant je voulais", "Au lieu de",
    "Antes quería", "En vez de", "Invece di", "Em vez de", "In plaats van", "Вместо",
    "而不是", "代わりに", "대신",
]  # fmt: skip
_AFTER = [
    "is wrong", "was last year's rule", "per day", "maybe", "or not", "if possible", "sounds bad",
    ", he said",
    "(he said)", "- not", "lol", ", right?", ", ok?", "total", "each", "or so", "is what he said",
    "for lunch",
    "in Rome", "until Monday", ", unless you must", ", except today", ", but not really", "~", "?", "??",
    "(?)",
    "... not", "& more", "and/or less", "+ 10%", "× 2", "/ day", "%", "@ work", "would be nice", "or similar",
    "as a joke", ", joking", ", at least for now", "mostly", "when it rains", ", I guess", "was a mistake",
    "pro Tag", "oder nicht", "wäre schön", "par jour", "ou pas", "por día", "o no", "al giorno", "per dag",
    "в день", "或者不", "かも", "아마",
]  # fmt: skip


def _neighbors() -> Iterator[PinCase]:
    """A rule of its own with other words of its sentence left out."""
    rules = ["no nuts", "at most 500 EUR", "only Luxembourg funds", "never more than 3 stops"]
    for rule in rules:
        for before in _BEFORE:
            yield PinCase("neighbors", f"{before} {rule}.", rule)
            yield PinCase("neighbors", f"Hi! {before} {rule}, thanks.", rule)
        for after in _AFTER:
            text = f"{rule}{'' if after[0] in ',?.%' else ' '}{after}"
            yield PinCase("neighbors", text, rule)
            yield PinCase("neighbors", f"Hi! Please, {text}", rule)


_PLAIN = [
    "No nuts, please.",
    "My budget is at most 4,000 EUR.",
    "Only Luxembourg funds.",
    "Never book Ryanair.",
    "Deliver by 12 March 2026.",
    "At least 2 rooms for 3 nights.",
    "Use the metric system.",
    "Höchstens 500 EUR für Ärzte.",
    "Pas de café après 18 h.",
    "Ничего острого.",
]

_LOOK_ALIKE = str.maketrans("aeopcxyiBEHKMOPTXАеорс", "аеорсхуіВЕНКМОРТХAeopc")
_GREEK = str.maketrans("ovABEZHIKMNOPTYX", "ονΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_ARABIC_DIGITS = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_INVISIBLE = (
    "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u202c\u2066\u200f\u061c\u180e\U000e0041\ufe0f\u0301"
)


def _look_alikes() -> Iterator[PinCase]:
    for text in _PLAIN:
        for table in (_LOOK_ALIKE, _GREEK, _FULL_WIDTH, _ARABIC_DIGITS):
            changed = text.translate(table)
            if changed != text:
                yield PinCase("homoglyph", text, changed)
                yield PinCase("homoglyph", changed, text)
        for place in range(len(text)):
            one = text[:place] + text[place].translate(_LOOK_ALIKE) + text[place + 1 :]
            if one != text and place % 3 == 0:
                yield PinCase("homoglyph", text, one)


def _invisible() -> Iterator[PinCase]:
    for text in _PLAIN:
        for sign in _INVISIBLE:
            middle = len(text) // 2
            yield PinCase("invisible", text, text[:middle] + sign + text[middle:])
            yield PinCase("invisible", text, text[:-1] + sign + text[-1])
            yield PinCase("invisible", text[:middle] + sign + text[middle:], text)
            yield PinCase("invisible", text + sign, text)
            yield PinCase("invisible", sign + text, text)
            yield PinCase("invisible", text[:-1] + sign, text[:-1])


def _changed() -> Iterator[PinCase]:
    """Another form of the same letters, another case, other white space: not the user's characters."""
    for text in _PLAIN:
        decomposed = unicodedata.normalize("NFD", text)
        if decomposed != text:
            yield PinCase("normalization", text, decomposed)
            yield PinCase("normalization", decomposed, text)
        for changed in (
            text.upper(),
            text.lower() if text.lower() != text else text.swapcase(),
            text.title() if text.title() != text else text.swapcase(),
            text.replace(" ", "  ", 1),
            text.replace(" ", "\u00a0", 1),
            text.replace(" ", "\t", 1),
            text.replace(" ", "\n", 1),
            text.replace(" ", "", 1),
            f" {text}",
            f"{text} ",
            f"{text}\n",
            text + text,
            text[::-1],
            text[:4] + "..." + text[-5:],
            text[:4] + " … " + text[-5:],
            text[:4] + " [...] " + text[-5:],
            text.rstrip(".") + "!",
            text.rstrip(".") + "?",
            "“" + text + "”",
            text + " (user)",
        ):
            yield PinCase("changed", text, changed)
        yield PinCase("changed", text, text[1:])
        yield PinCase("changed", text, text[:-2])
        yield PinCase("changed", text, text[2:-1])


def _swapped() -> Iterator[PinCase]:
    pairs = [
        ("Flights at most 300 EUR.", "Hotels at most 900 EUR."),
        ("Arrive on 12 March.", "Leave on 21 March."),
        ("Anna eats no nuts.", "Ben eats no fish."),
        ("Sell the Irish funds.", "Keep the Luxembourg funds."),
        ("Höchstens 2 Nächte in Rom.", "Höchstens 3 Nächte in Wien."),
        ("机票最多三千。", "酒店最多九千。"),
    ]
    for one, other in pairs:
        text = f"{one} {other}"
        half, rest = len(one) // 2, len(other) // 2
        yield PinCase("swapped", text, one[:half] + other[rest:])
        yield PinCase("swapped", text, other[:rest] + one[half:])
        yield PinCase("swapped", text, f"{other} {one}")
        yield PinCase("swapped", text, f"{one[:-1]} and {other}")
        yield PinCase("swapped", text, text[half : len(one) + rest])
        yield PinCase("swapped", text, one[: one.rindex(" ")] if " " in one else one[:2])
        yield PinCase("swapped", text, other[other.find(" ") + 1 :] if " " in other else other[2:])


def _units() -> Iterator[PinCase]:
    for text, changes in (
        (
            "At most 500 EUR.",
            ("At most 500 USD.", "At most 500 €.", "At most 500 GBP.", "At most EUR 500."),
        ),
        (
            "At most 20 kg of luggage.",
            ("At most 20 lb of luggage.", "At most 20 g of luggage.", "At most 20 kg"),
        ),
        (
            "At least 3 nights.",
            ("At least 3 weeks.", "At least 3 days.", "At most 3 nights.", "At least 3"),
        ),
        (
            "Never more than 40 °C.",
            ("Never more than 40 °F.", "Never more than 40", "more than 40 °C."),
        ),
        (
            "Deliver by 12 March 2026.",
            ("Deliver by 12 May 2026.", "Deliver by 13 March 2026.", "Deliver by 12"),
        ),
        (
            "Meet at 3 pm, not earlier.",
            ("Meet at 3 am, not earlier.", "Meet at 3 pm", "Meet at 3", "earlier."),
        ),
        ("最多五千元。", ("最多五千美元。", "最多五百元。", "最少五千元。")),
        (
            "You must call me.",
            ("You should call me.", "You may call me.", "must call me", "call me."),
        ),
        ("I need at least 2 seats.", ("I want at least 2 seats.", "need at least", "2 seats.")),
    ):
        for quote in changes:
            for before in ("", "Hi. "):
                yield PinCase("unit or verb", before + text, quote)


def _wrapped_lines() -> Iterator[PinCase]:
    """Lines that are only wrapped: the rule begins on the line before, or ends on the next."""
    yield PinCase("wrapped", "Do not book any hotel\nover $500 per night.", "over $500 per night.")
    yield PinCase("wrapped", "Please never\nbook Ryanair.", "book Ryanair.")
    yield PinCase("wrapped", "Book the Hilton\nunless it is full.", "Book the Hilton")
    yield PinCase(
        "wrapped",
        "I would be happy with any airline that flies there except for\nRyanair.",
        "Ryanair.",
    )
    yield PinCase(
        "wrapped",
        "Bitte buchen Sie mir auf gar keinen Fall ein Zimmer in einem teuren\nHotel über 500 EUR.",
        "Hotel über 500 EUR.",
    )
    yield PinCase("wrapped", "不要超过\n五千", "五千")
    yield PinCase(
        "wrapped", "I never want to see\nany hotel over 500 EUR.", "any hotel over 500 EUR."
    )
    yield PinCase("wrapped", "No nuts,\nunless roasted.", "No nuts")
    yield PinCase("wrapped", "No nuts\n(except almonds)", "No nuts")
    yield PinCase("wrapped", "No nuts\nor dairy", "No nuts")
    yield PinCase("abbreviation", "I do not want Dr. Smith for over $500.", "Smith for over $500.")
    yield PinCase("abbreviation", "Nicht mehr als ca. 500 EUR.", "500 EUR.")
    yield PinCase("abbreviation", "Not before approx. 5 pm.", "5 pm.")
    yield PinCase("abbreviation", "Nicht vor dem 3. Mai buchen.", "Mai buchen.")
    yield PinCase("abbreviation", "Never use No. 5.", "5.")
    yield PinCase("abbreviation", "Avoid nuts, e.g. Almonds.", "Almonds.")
    yield PinCase("abbreviation", "Keine Nüsse, z. B. Mandeln.", "Mandeln.")
    yield PinCase("abbreviation", "Never book Yahoo! hotels over $500.", "hotels over $500.")
    yield PinCase("abbreviation", "Never book Yahoo! Hotels over $500.", "Hotels over $500.")
    yield PinCase("abbreviation", "I never ski in St. Moritz.", "Moritz.")
    yield PinCase("abbreviation", "Never use the U.S. Navy, please.", "Navy, please.")
    yield PinCase("abbreviation", "I never drink with Mr. Jones.", "Jones.")


def _no_text() -> Iterator[PinCase]:
    for quote in (
        "",
        " ",
        "\n",
        "\u3000",
        "\x00",
        "No nuts.\x00",
        "No\x07nuts.",
        "\ud800",
        "No nuts.\udc00",
        "x" * 2_001,
    ):
        yield PinCase("not text", f"No nuts. {quote}", quote)


_FAMILIES = (
    _amounts,
    _negations,
    _exceptions,
    _next_sentences,
    _earlier_corrected,
    _announced,
    _set_apart,
    _look_alikes,
    _invisible,
    _changed,
    _swapped,
    _neighbors,
    _spoken,
    _units,
    _wrapped_lines,
    _no_text,
)
