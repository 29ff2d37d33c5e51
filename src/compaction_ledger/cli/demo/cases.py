"""The three cases that matter more than the happy path (section 11)."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger import composition
from compaction_ledger.cli.demo.document import DemoCaseA, DemoCaseB, DemoCaseC
from compaction_ledger.cli.demo.stage import CONVERSATION, LIMITS_PAIR, NEXT_USER, SYSTEM, Stage
from compaction_ledger.cli.demo.steps import compacted
from compaction_ledger.cli.demo.summarizers import ToolCaller
from compaction_ledger.cli.documents.requests import ManifestDocument
from compaction_ledger.cli.documents.transcripts import PlannedTarget
from compaction_ledger.cli.plain import size
from compaction_ledger.cli.screen import facts
from compaction_ledger.cli.views.records import show_events
from compaction_ledger.cli.views.requests import show_manifest, show_rejected
from compaction_ledger.cli.views.transcripts import show_targets
from compaction_ledger.domain.transcript import NewMessage, NewRun
from compaction_ledger.settings import DEFAULT_SCOPE

SECOND_CONVERSATION = "fund-research-2"
EDITED_PAIR = 3
EDITED_TEXT = "My horizon is 8 years. I will need the money for a kitchen then."
WIDE_BUDGET = 60_000
SMALL_BUDGET = 18_000


def case_a(stage: Stage) -> DemoCaseA:
    """An excellent summary with a tool call beside it."""
    tell = stage.teller
    tell.title(
        "Case A: the model writes an excellent summary and also calls a tool",
        "An answer that wants something else as well is no plain summary, however good it reads."
        " So it is refused: nothing is stored of it but a digest. A job has two attempts, and this"
        " model does the same thing twice. (This is a second conversation, the first thirty pairs"
        " of the same, so that nothing done so far can help.)",
    )
    pairs = stage.pairs()[:30]
    stage.ledger.transcripts.append(
        DEFAULT_SCOPE,
        SECOND_CONVERSATION,
        [
            NewMessage(line.id, line.run, line.role, line.text)
            for pair in pairs
            for line in (pair.user, pair.assistant)
        ],
        [NewRun(pair.run) for pair in pairs],
    )
    before = stage.ledger.size()
    compaction = compacted(stage, SECOND_CONVERSATION, ToolCaller())
    events = stage.events(before)
    tell.show(show_events, events)
    outcome = compaction.conversations[0].ranges[0]
    tell.claim(
        "Both attempts failed with the code tool_call, and the job is exhausted.",
        holds=(outcome.result, outcome.failures) == ("exhausted", ["tool_call", "tool_call"]),
    )
    tell.claim(
        "Nothing was committed as a summary, and the refused text is nowhere in the log.",
        holds=not any(event.event == "RangeCompleted" for event in events)
        and not any(ToolCaller.text in str(event.fact) for event in events),
    )
    made = stage.ledger.assemble(SECOND_CONVERSATION, budget=WIDE_BUDGET)
    manifest = ManifestDocument.of(made.manifest)
    tell.claim(
        "The next request serves the originals: the worst case is that there is no summary.",
        holds=manifest.count("verbatim") == len(pairs) and not manifest.summaries,
    )
    return DemoCaseA(compaction=compaction, events=events, manifest=manifest)


def case_b(stage: Stage) -> DemoCaseB:
    """A message is edited after its range was summarized."""
    tell = stage.teller
    message = stage.pairs()[EDITED_PAIR].user
    tell.title(
        f"Case B: a message of pair {EDITED_PAIR} changes after 0-9 was summarized",
        "The stored summary was made of other words than the conversation holds now. It must not"
        " be passed off as current, and it must not vanish either.",
    )

    def show_edit(console: Console, _: object) -> None:
        console.print(facts((("Before", message.text), ("Now", EDITED_TEXT))))

    tell.show(show_edit, None)
    old = stage.range(0).summaries[0]
    stage.ledger.transcripts.revise(DEFAULT_SCOPE, CONVERSATION, message.id, EDITED_TEXT)
    request = stage.deliver(stage.request(WIDE_BUDGET))
    manifest = request.manifest
    tell.show(show_rejected, manifest.rejected)
    first = manifest.pairs[0]
    tell.claim(
        "The summary is not used (source_changed); pairs 0-9 are served as originals.",
        holds=[(it.identity, it.reason) for it in manifest.rejected]
        == [(old.identity, "source_changed")]
        and (first.from_pair, first.to_pair, first.disposition) == (0, 9, "verbatim"),
    )
    recorded = stage.events(request.delivery)[0]
    tell.claim(
        f"So says the delivery that is recorded at index {request.delivery} of the log.",
        holds=recorded.fact["rejected"] == [{"identity": old.identity, "reason": "source_changed"}],
    )
    summarizer = composition.default_summarizer()
    plan = stage.ledger.plan(CONVERSATION, summarizer=summarizer)
    target = PlannedTarget.of(plan.ranges[0])
    tell.show(show_targets, [target])
    tell.claim(
        "The range is due again, with a new source hash.",
        holds=target.status == "due" and target.source_hash != old.source_hash,
    )
    kept = stage.range(0).summaries[0]
    tell.claim(
        "The old summary is still there to be read, as what it was.",
        holds=kept.text == old.text and kept.index == old.index and not kept.current,
    )
    before = stage.ledger.size()
    compacted(stage, CONVERSATION, summarizer)
    events = stage.events(before)
    tell.say("Summarized once more, the range has two summaries, one for each source:")
    tell.show(show_events, events)
    shown = stage.range(0)
    tell.claim(
        "Both are in the ledger, and only the new one is of the conversation as it is now.",
        holds=[it.current for it in shown.summaries] == [False, True],
    )
    return DemoCaseB(
        message=message.id,
        text_before=message.text,
        text_after=EDITED_TEXT,
        request=request,
        target=target,
        range=shown,
        events=events,
    )


def case_c(stage: Stage) -> DemoCaseC:
    """A valid summary is stored, and the request has no room for it."""
    tell = stage.teller
    tell.title(
        "Case C: valid summaries are stored, and the request cannot fit them",
        f"Now only {size(SMALL_BUDGET)} are allowed. That something is stored never counts as that"
        " the model saw it: the newest original pairs that fit are sent, and the manifest says what"
        " is not in there.",
    )
    made = stage.request(SMALL_BUDGET)
    request = stage.deliver(made)
    manifest = request.manifest
    tell.show(show_manifest, manifest)
    seen, unseen = manifest.count("verbatim"), manifest.count("left_out")
    tell.claim(
        f"The newest {seen} pairs are sent, whole and without gaps;"
        f" {unseen} are named as not seen.",
        holds=manifest.mode == "newest_originals"
        and [group.disposition for group in manifest.pairs] == ["left_out", "verbatim"]
        and len(made.body) <= SMALL_BUDGET,
    )
    limits = stage.pairs()[LIMITS_PAIR].user.text
    tell.claim(
        f"The user's limits (pair {LIMITS_PAIR}) are not in this request,"
        " and the manifest says so.",
        holds=limits not in made.body.decode() and manifest.pairs[0].to_pair >= LIMITS_PAIR,
    )
    tell.claim(
        "The four summaries are valid and were not used: over_budget.",
        holds=[it.reason for it in manifest.rejected if it.reason != "source_changed"]
        == ["over_budget"] * 4,
    )
    mixed = ManifestDocument.of(
        stage.ledger.assemble(
            CONVERSATION,
            budget=SMALL_BUDGET,
            fallback="newest_mixed",
            system=SYSTEM,
            next_user=NEXT_USER,
        ).manifest
    )
    mixed_seen = mixed.count("verbatim") + mixed.count("summarized")
    tell.claim(
        f"The other fallback, newest_mixed, would show {mixed_seen} pairs in the same room,"
        f" {mixed.count('summarized')} of them with their replies summarized.",
        holds=mixed.bytes_used <= SMALL_BUDGET and mixed_seen > seen,
    )
    tell.claim(
        f"The delivery is recorded with all of that, at index {request.delivery} of the log.",
        holds=stage.events(request.delivery)[0].event == "RequestDelivered",
    )
    return DemoCaseC(request=request, newest_mixed=mixed)
