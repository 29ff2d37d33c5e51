"""Quotes that are the user's own rule and have to be accepted (T9): to refuse all would prove nothing."""

from __future__ import annotations

from collections.abc import Iterator

from pin_adversaries import PinCase


def good_quotes() -> list[PinCase]:
    """All of them, each once."""
    return list(
        dict.fromkeys(case for family in (_whole, _parts, _lines, _beside) for case in family())
    )


_SENTENCES = [
    "No nuts.",
    "No nuts, please!",
    "I'm allergic to nuts.",
    "My budget is at most 4,000 EUR.",
    "The budget must not exceed $5,000.",
    "Only Luxembourg funds.",
    "Never book Ryanair, unless it's the only direct flight.",
    "I do not want hotels over $500 per night.",
    "Don't touch the file config.yaml.",
    "Deliver by 12 March 2026, at 14:30 at the latest.",
    "You must always ask Dr. Smith before approx. 5 pm.",
    "If it rains, no outdoor seats.",
    "I think at most 500 EUR would be fine.",
    "Version 3.12 or newer, e.g. 3.13.",
    "My wife said no more than 3 stops.",
    "Keep it under £1,250.50 (taxes included).",
    "Use tabs, not spaces; 100 columns at most.",
    "The hotel's rating must be ≥ 4.5 stars.",
    "Between 10 and 15 people, never more.",
    "Add a 10% margin, but no more than that.",
    "It has to be a non-refundable ticket",
    "No meat, only fish.",
    "Ich esse kein Schweinefleisch.",
    "Höchstens 500 EUR pro Nacht.",
    "Nicht vor dem 3. Mai buchen.",
    "Bitte auf keinen Fall über 1.500 € ausgeben!",
    "Nur Fonds aus Luxemburg, z. B. von der Deka.",
    "Je ne veux pas de noix.",
    "Le budget est de 4 000 € au maximum.",
    "N'utilise jamais Ryanair, s'il te plaît.",
    "Uniquement des fonds luxembourgeois.",
    "No quiero vuelos con escala.",
    "¡Nunca más de 500 euros!",
    "Soy alérgica a los frutos secos.",
    "Solo fondos de Luxemburgo.",
    "Non voglio hotel sopra i 500 euro.",
    "Il budget massimo è di 4.000 euro.",
    "Sono allergico alle noci.",
    "Não quero voos com escala.",
    "O orçamento é de no máximo 4.000 euros.",
    "Geen noten alsjeblieft.",
    "Ik wil niet meer dan 500 euro betalen.",
    "不要超过五千。",
    "我对花生过敏，请不要放花生！",
    "预算最多五千元，除非是头等舱。",
    "只买卢森堡的基金。",
    "予算は5,000円以内です。",
    "ナッツは絶対に入れないでください。",
    "견과류를 넣지 마세요.",
    "예산은 최대 500달러입니다.",
    "لا أريد المكسرات.",
    "الميزانية 500 دولار كحد أقصى.",
    "بودجه حداکثر ۵۰۰ دلار است.",
    "آجیل نمی‌خورم.",
    "Я не ем орехи.",
    "Бюджет не более 500 евро.",
    "Inga nötter, tack.",
    "Nie więcej niż 500 złotych.",
    "मुझे मेवे नहीं चाहिए।",
]


def _whole() -> Iterator[PinCase]:
    """Whole sentences: alone, within a message, without their last mark, on a line of their own."""
    frames = [
        "{}",
        "{} ",
        "Hello! {} ",
        "Thanks for the plan.\n\n{}\n\nSee you soon.",
        "Let us go on.\n{}",
        "好的。{}",
        "- {}\n- Anything goes.",
        "1. {}\n2. Anything goes.",
        "Plan the trip. {}\nThank you!",
        "**{}**",
    ]
    for sentence in _SENTENCES:
        for frame in frames:
            yield PinCase("whole", frame.format(sentence), sentence)
        if sentence[-1] in ".!。！":
            yield PinCase("whole", sentence, sentence[:-1])
            yield PinCase("whole", f"Hello! {sentence}", sentence[:-1])


_RULES = [
    "no nuts",
    "at most 4,000 EUR",
    "only Luxembourg funds",
    "never more than 3 stops",
    "max 20 kg",
]


def _parts() -> Iterator[PinCase]:
    """A rule of its own, of which nothing is left out that says anything."""
    for rule in _RULES:
        for frame in (
            "{}",
            "{}, please",
            "Please {}",
            "Please: {}!",
            "Hi, {}, thanks.",
            "Important: {}.",
            "Please remember: {}, thank you!",
            "Constraints: {}.",
            "**{}**, please",
            "Ok, and also {}, please.",
        ):
            yield PinCase("part", frame.format(rule), rule)
    for text, quote in (
        ("I'm allergic to nuts and I love fish.", "I'm allergic to nuts"),
        ("I'm allergic to nuts, and I love fish.", "I love fish"),
        ("My budget is 4,000 EUR and I travel alone.", "My budget is 4,000 EUR"),
        ("My budget is at most 4,000 EUR.", "at most 4,000 EUR"),
        ("My budget is at most 4,000 EUR, please.", "My budget is at most 4,000 EUR"),
        ("Budget: at most 4,000 EUR.", "at most 4,000 EUR"),
        ("The limit is max 20 kg.", "max 20 kg"),
        ("I want only Luxembourg funds.", "only Luxembourg funds"),
        ("I want no nuts!", "no nuts"),
        ("Absolutely no nuts, please.", "no nuts"),
        ("I'm allergic to nuts, so no nuts.", "no nuts"),
        ("No shellfish, I'm allergic.", "No shellfish"),
        ("No nuts, because I'm allergic to nuts.", "No nuts"),
        ("Rules: no nuts, at most 4,000 EUR, only Luxembourg funds.", "no nuts"),
        ("Rules: no nuts, at most 4,000 EUR, only Luxembourg funds.", "at most 4,000 EUR"),
        ("Rules: no nuts, at most 4,000 EUR, only Luxembourg funds.", "only Luxembourg funds"),
        ("no nuts, at most 4,000 EUR, only Luxembourg funds", "at most 4,000 EUR"),
        ("no nuts; at most 4,000 EUR; only Luxembourg funds", "no nuts"),
        ("No nuts and at most 3 stops, please.", "at most 3 stops"),
        ("Mein Budget ist höchstens 500 EUR.", "höchstens 500 EUR"),
        ("Bitte keine Nüsse.", "keine Nüsse"),
        ("Mon budget est au maximum 500 EUR.", "au maximum 500 EUR"),
        ("Por favor, como máximo 500 EUR.", "como máximo 500 EUR"),
        ("Il mio budget è al massimo 500 euro.", "al massimo 500 euro"),
        ("Alsjeblieft geen noten.", "geen noten"),
        ("Hi there! No nuts, thanks.", "No nuts"),
        ("At most $500! Thanks a lot for all your work.", "At most $500"),
        ("你好，不要花生，谢谢。", "不要花生"),
    ):
        yield PinCase("part", text, quote)


def _lines() -> Iterator[PinCase]:
    """Lines of a list, or of a message without any full stop."""
    text = "Constraints:\n- no nuts\n- at most 4,000 EUR\n- only Luxembourg funds\n"
    bare = "no nuts\nat most 4,000 EUR\nonly Luxembourg funds"
    small = "no nuts. at most 4,000 EUR. only Luxembourg funds."
    numbered = (
        "My rules for the trip:\n\n1. No nuts\n2. At most 4,000 EUR\n3. Only Luxembourg funds"
    )
    for rule in ("no nuts", "at most 4,000 EUR", "only Luxembourg funds"):
        yield PinCase("line", text, rule)
        yield PinCase("line", text, f"- {rule}")
        yield PinCase("line", bare, rule)
        yield PinCase("line", small, rule)
        yield PinCase("line", small, f"{rule}.")
        yield PinCase("line", numbered, rule[0].upper() + rule[1:])
    yield PinCase(
        "line", "Please don't:\n- use Ryanair\n- pay by card", "Please don't:\n- use Ryanair"
    )
    yield PinCase(
        "line",
        "Please don't:\n- use Ryanair\n- pay by card",
        "Please don't:\n- use Ryanair\n- pay by card",
    )
    yield PinCase(
        "line",
        "Do not book any hotel\nover $500 per night.",
        "Do not book any hotel\nover $500 per night.",
    )
    yield PinCase("line", "不要花生\n最多五千元\n谢谢", "最多五千元")


def _beside() -> Iterator[PinCase]:
    """What stands beside the rule sounds like an exception, a report or a correction, and is none of it."""
    for text, quote in (
        ("No nuts. Unless they are roasted.", "No nuts. Unless they are roasted."),
        ("My budget is $500. Actually, make it $700.", "Actually, make it $700."),
        (
            "My budget is $500. Actually, make it $700.",
            "My budget is $500. Actually, make it $700.",
        ),
        ("My budget is $500. Actually, no nuts please.", "My budget is $500."),
        ("My budget is $500. Actually, no nuts please.", "Actually, no nuts please."),
        ("No nuts. My limit is $500. Correction: $700.", "No nuts."),
        ('My boss said "go on". No nuts.', "No nuts."),
        ('No nuts. The hotel is called "No Limits".', "No nuts."),
        ('Only the "Hilton", never the "Hyatt".', 'Only the "Hilton", never the "Hyatt".'),
        ("> What about food?\nNo nuts.", "No nuts."),
        ("```\nx = 1\n```\nNever change x.", "Never change x."),
        ("Here is my code:\n```\nx = 1\n```\n\nNever change x.", "Never change x."),
        ("Use `ruff` only, no black.", "Use `ruff` only, no black."),
        ("It's my sister's trip, no nuts.", "It's my sister's trip, no nuts."),
        ("No nuts. If you have any question, write me.", "No nuts."),
        ("No nuts. But please do book the Hilton.", "No nuts."),
        ("Can you plan the trip? At most 500 EUR.", "At most 500 EUR."),
        ("From: Berlin\nTo: Rome\nNo stops.", "No stops."),
        ("I'm 5'10\" tall. No low seats.", "No low seats."),
        ("See https://example.org/a?b=1. Never use http.", "Never use http."),
        ("<b>Note</b> No nuts.\nOnly fish.", "Only fish."),
        ("You must respect the following rules.\n\nNo nuts.", "No nuts."),
        ("Always respect these rules:\n- no nuts\n- no fish", "no nuts"),
        ("Dietary restrictions:\n- no nuts\n- no fish", "no fish"),
        ("I only have these two constraints. No nuts. No fish.", "No fish."),
        (
            "<task>\nNo nuts.\n</task>\n<environment_details>\nNever x.\n</environment_details>",
            "No nuts.",
        ),
        ("Here are my notes:\n- no nuts\n- no fish", "no fish"),
        ("- Food\n  - no nuts\n- no red rooms", "no red rooms"),
        ("- Food\n  - no nuts\n- no red rooms", "- Food\n  - no nuts"),
        ("I told you before. No nuts. No fish.", "No fish."),
        ("For example, I like tea. No nuts.", "No nuts."),
        ("No nuts.\r\nAt most 500 EUR.\r\n", "At most 500 EUR."),
        ("no nuts\r\nat most 500 EUR\r\n", "no nuts"),
        ("No nuts.\u2028Only fish.", "Only fish."),
        ("No nuts 🙏", "No nuts"),
        ("\tNo nuts.\n\tOnly fish.", "Only fish."),
        ("No nuts. This is not negotiable.", "No nuts."),
        ("No nuts. This is important to me.", "No nuts."),
        ("Please translate this for me. No nuts.", "No nuts."),
        ("See example.org. No nuts.", "No nuts."),
        ("no nuts! at most 500 eur! thanks", "at most 500 eur!"),
        ("$500 and $5,000 are not the same. At most $500.", "At most $500."),
        ("At most $5,000.\nAt most $500.", "At most $500."),
        ("There are 12 of us. No nuts.", "No nuts."),
        ("We are a party of 12. No nuts.", "No nuts."),
        ("Ask Mr. Jones. No nuts.", "No nuts."),
        ("I said: no nuts.", "I said: no nuts."),
        ("Hotel: at most 200 EUR.", "Hotel: at most 200 EUR."),
        ("Is that ok? No nuts.", "No nuts."),
        ("No nuts 😀", "No nuts 😀"),
        ("No nuts! 🙏", "No nuts!"),
    ):
        yield PinCase("beside", text, quote)
