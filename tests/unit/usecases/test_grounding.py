"""T13 for summaries of ranges: listed where they are looked at, a failed attempt in strict mode."""

from __future__ import annotations

from dataclasses import replace

import pytest
from histories import lines

from compaction_ledger import Answer, Ledger, ScriptedSummarizer, Settings
from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import output_digest
from compaction_ledger.domain.grounding import Ungrounded
from compaction_ledger.domain.identity import ModelIdentity, PromptVersion

INVENTED = "The assistant named $123,456 and TICKET-99."
LISTED = (Ungrounded("amount", "$123,456"), Ungrounded("identifier", "TICKET-99"))


def ledger_of(grounding: str, *answers: Answer | str) -> Ledger:
    ledger = Ledger.in_memory(
        settings=Settings(grounding=grounding),  # type: ignore[arg-type]
        summarizer=ScriptedSummarizer(list(answers)),
    )
    ledger.transcripts.append("default", "c", *lines(30))
    return ledger


def reply_of(ledger: Ledger) -> str:
    found = ledger.transcripts.conversation("default", "c")
    return next(message.text for message in found.messages if message.role == "assistant")


def test_t13_by_default_an_invention_is_listed_where_the_summary_is_looked_at() -> None:
    with ledger_of("report", INVENTED) as ledger:
        assert ledger.compact("c").completed == 1
        [row] = ledger.summaries("c")
        assert ledger.grounding(row) == LISTED


def test_t13_what_the_replies_say_is_not_listed_and_their_ids_are_known() -> None:
    with ledger_of("report", "x") as ledger:
        said = reply_of(ledger)
        ids = [message.id for message in ledger.transcripts.conversation("default", "c").messages]
        answers = ScriptedSummarizer([f"{said} ({ids[1]})"])
        assert ledger.compact("c", summarizer=answers).completed == 1
        [row] = ledger.summaries("c")
        assert ledger.grounding(row) == ()


def test_b4_a_users_words_are_no_source() -> None:
    with ledger_of("report", "The limit is 77 EUR.") as ledger:
        first = ledger.transcripts.conversation("default", "c").messages[0]
        ledger.transcripts.revise("default", "c", first.id, "At most 77 EUR.")
        assert ledger.compact("c").completed == 1
        [row] = ledger.summaries("c")
        assert ledger.grounding(row) == (Ungrounded("amount", "77 EUR"),)


def test_v2_a_version_with_mixed_input_had_the_users_words_too() -> None:
    with ledger_of("report") as ledger:
        first = ledger.transcripts.conversation("default", "c").messages[0]
        ledger.transcripts.revise("default", "c", first.id, "At most 77 EUR.")
        job = ledger.job_of_present_source(
            "c",
            from_pair=0,
            model=ModelIdentity.of("old", "store"),
            prompt=PromptVersion("conversation-compaction", 1),
        )
        ledger.import_summary(job, "The limit is 77 EUR, not 78.", origin="an older store")
        [row] = ledger.summaries("c")
        assert ledger.grounding(row) == (Ungrounded("number", "78"),)


def test_b3_a_source_that_changed_tells_nothing_any_more() -> None:
    with ledger_of("report", INVENTED) as ledger:
        ledger.compact("c")
        [row] = ledger.summaries("c")
        last = ledger.transcripts.conversation("default", "c").messages[1]
        ledger.transcripts.revise("default", "c", last.id, "$123,456 for TICKET-99.")
        assert ledger.grounding(row) is None
        assert ledger.grounding(replace(row, conversation="unknown")) is None
        assert ledger.grounding(replace(row, index=None)) is None


def test_t13_switched_off_nothing_is_told() -> None:
    with ledger_of("off", INVENTED) as ledger:
        ledger.compact("c")
        [row] = ledger.summaries("c")
        assert ledger.grounding(row) is None


def test_t13_in_strict_mode_an_invention_is_a_failed_attempt() -> None:
    with ledger_of("strict", INVENTED, "It named no price.") as ledger:
        report = ledger.compact("c")
        assert report.completed == 1
        assert report.outcomes[0].failures == ("ungrounded",)
        first, second = ledger.attempts("c")
        assert (first.failure, first.output_digest) == ("ungrounded", output_digest(INVENTED))
        assert (first.also, first.signals) == ((), ("stop",))
        assert second.outcome == "completed"
        assert INVENTED not in repr(list(ledger.events()))


def test_a3_two_inventions_exhaust_the_identity() -> None:
    with ledger_of("strict", INVENTED, INVENTED) as ledger:
        [outcome] = ledger.compact("c").outcomes
        assert (outcome.result, outcome.failures) == ("exhausted", ("ungrounded",) * 2)
        assert ledger.compact("c").completed == 0


def test_c4_another_failure_comes_before_it() -> None:
    too_long = INVENTED + "x" * 6_000
    with ledger_of("strict", too_long, Answer(INVENTED)) as ledger:
        [outcome] = ledger.compact("c").outcomes
        assert outcome.failures == ("too_long", "missing_finish")


def test_t13_another_way_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="grounding"):
        Settings(grounding="loose")  # type: ignore[arg-type]
