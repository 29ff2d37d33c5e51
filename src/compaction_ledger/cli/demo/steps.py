"""The five steps from a conversation to the next request."""

from __future__ import annotations

from rich.console import Console

from compaction_ledger import composition
from compaction_ledger.cli.commands.gathering import Gathered
from compaction_ledger.cli.demo.document import DemoRequest
from compaction_ledger.cli.demo.stage import CONVERSATION, LIMITS_PAIR, NEXT_USER, SYSTEM, Stage
from compaction_ledger.cli.demo.summarizers import Remembering
from compaction_ledger.cli.documents.compaction import CompactDocument
from compaction_ledger.cli.documents.records import EventRecord, ShowDocument
from compaction_ledger.cli.documents.transcripts import ImportDocument, PlanDocument
from compaction_ledger.cli.plain import plural, size
from compaction_ledger.cli.screen import one_line, table
from compaction_ledger.cli.views.records import show_events, show_summary
from compaction_ledger.cli.views.requests import show_manifest
from compaction_ledger.cli.views.transcripts import LEFT_OUT, show_targets
from compaction_ledger.domain.assembly import Options, assemble
from compaction_ledger.domain.ports import Summarizer
from compaction_ledger.settings import DEFAULT_SCOPE

BUDGET = 30_000


def which_lines_count(stage: Stage) -> ImportDocument:
    """Step 1."""
    tell = stage.teller
    tell.title(
        "1. Which lines count",
        "Only what is settled counts: a user's message and the completed answer of the same run"
        " make a pair. Every other line is named, with the reason why it does not count, so that"
        " nothing is ever dropped silently.",
    )
    imported = ImportDocument.of(stage.bring_in())
    conversation = stage.ledger.transcripts.conversation(DEFAULT_SCOPE, CONVERSATION)
    lines = stage.lines()
    texts = {message.id: message.text for message in conversation.messages}

    def show_lines(console: Console, _: object) -> None:
        left_out = (
            (
                line.position,
                line.reason,
                LEFT_OUT[line.reason],
                one_line(texts[line.message_id], 20),
            )
            for line in lines.left_out
        )
        console.print(table("Line", "Reason", "That is", "Text", rows=left_out, right=["Line"]))
        console.print()
        some = (
            (pair.index, one_line(pair.user.text, 33), one_line(pair.assistant.text, 33))
            for pair in lines.pairs
            if pair.index in (0, 2, 3, 17, 26, 27, 63)
        )
        console.print(table("Pair", "User", "Assistant", rows=some, right=["Pair"]))

    tell.show(show_lines, None)
    pairs, out = len(lines.pairs), len(lines.left_out)
    count = len(conversation.messages)
    tell.claim(
        f"{plural(count, 'line')}: {pairs} pairs of two lines, and {out} left out with a reason.",
        holds=2 * pairs + out == count,
    )
    reasons = {line.reason for line in lines.left_out}
    tell.claim(
        "An answer that broke off, and the call of a tool with its result, are among them.",
        holds={"streaming", "tool"} <= reasons,
    )
    return imported


def which_ranges_are_due(stage: Stage, summarizer: Summarizer) -> PlanDocument:
    """Step 2."""
    tell = stage.teller
    policy = stage.ledger.policy
    tell.title(
        "2. Which ranges are due",
        f"Pairs are summarized in ranges of {policy.range_pairs}, and the newest"
        f" {policy.keep_newest} always stay as they are. The source hash of a range is made of its"
        " ten pairs, both sides, with all their ids: a summary will be bound to it.",
    )
    found = stage.ledger.plan(CONVERSATION, summarizer=summarizer)
    plan = PlanDocument.of(found, summarizer.model, stage.ledger.registry.current, policy.numbers)
    tell.show(show_targets, plan.ranges)
    outside = len(plan.pairs) - sum(len(range(r.from_pair, r.to_pair + 1)) for r in plan.ranges)
    tell.claim(
        f"{plural(len(plan.ranges), 'range is', 'ranges are')} due;"
        f" the newest {outside} pairs stay outside.",
        holds=len(plan.ranges) == (len(plan.pairs) - policy.keep_newest) // policy.range_pairs
        and outside >= policy.keep_newest
        and all(target.status == "due" for target in plan.ranges),
    )
    return plan


def summarize(stage: Stage) -> tuple[CompactDocument, list[EventRecord]]:
    """Step 3."""
    tell = stage.teller
    tell.title(
        "3. Claim, attempt, completion",
        "A worker claims a range, so that no other does the same work; it starts an attempt; and"
        " only an answer that ended normally becomes the summary. Each of these is an event that"
        " is appended to a log, sealed with a hash, and never changed afterwards. The summarizer"
        " here picks sentences out of the replies; a model of a provider works in the same way.",
    )
    summarizer = Remembering(composition.default_summarizer())
    compaction = compacted(stage, CONVERSATION, summarizer)
    events = stage.events(0)
    tell.show(show_events, events)
    names = [event.event for event in events]
    tell.claim(
        f"{plural(compaction.completed, 'range was', 'ranges were')} summarized,"
        f" and {plural(len(events), 'event')} recorded: three for each.",
        holds=compaction.completed == compaction.due
        and names == ["RangeClaimed", "AttemptStarted", "RangeCompleted"] * compaction.due,
    )
    given = summarizer.given
    pairs = stage.pairs()[: 10 * compaction.due]
    tell.claim(
        "The summarizer was given the assistant's replies and not one message of the user.",
        holds=all(pair.assistant.text in given for pair in pairs)
        and not any(pair.user.text in given for pair in pairs),
    )
    return compaction, events


def compacted(stage: Stage, conversation: str, summarizer: Summarizer) -> CompactDocument:
    """Compact a conversation, and say how it went."""
    gathered = Gathered()
    on_range = gathered.begin(DEFAULT_SCOPE, conversation)
    gathered.finish(stage.ledger.compact(conversation, summarizer=summarizer, on_range=on_range))
    return CompactDocument.of(
        summarizer.model,
        stage.ledger.registry.current,
        gathered.conversations(),
        stopped=False,
        signal=None,
    )


def what_summaries_are_bound_to(stage: Stage, plan: PlanDocument) -> list[ShowDocument]:
    """Step 4."""
    tell = stage.teller
    tell.title(
        "4. The summaries, and what each is bound to",
        "A summary is derived and lossy. It is never the user's word and never evidence, and it"
        " may be used only while the messages it came from are the same to the last character."
        " This is the first of them:",
    )
    ranges = [stage.range(target.from_pair) for target in plan.ranges]
    first = ranges[0].summaries[0]
    tell.show(lambda console, it: show_summary(console, it, text=True), first)
    pairs = stage.pairs()

    def sizes(console: Console, _: object) -> None:
        rows = (
            (
                f"{found.from_pair}-{found.to_pair}",
                f"{replies_of(found):,}",
                f"{len(found.summaries[0].text or ''):,}",
                found.summaries[0].index,
            )
            for found in ranges
        )
        numbers = ("Characters of the replies", "of the summary", "Log index")
        console.print(table("Pairs", *numbers, rows=rows, right=numbers))

    def replies_of(found: ShowDocument) -> int:
        return sum(len(pair.assistant.text) for pair in pairs[found.from_pair : found.to_pair + 1])

    tell.show(sizes, None)
    tell.claim(
        "Each source hash, computed anew from the messages, is the one that was stored.",
        holds=all(
            found.present_source_hash == found.summaries[0].source_hash == target.source_hash
            for found, target in zip(ranges, plan.ranges, strict=True)
        ),
    )
    tell.claim(
        "Each summary is smaller than the replies it stands for.",
        holds=all(len(found.summaries[0].text or "") < replies_of(found) for found in ranges),
    )
    return ranges


def the_next_request(stage: Stage) -> tuple[int, DemoRequest]:
    """Step 5."""
    tell = stage.teller
    originals = size_of_originals(stage)
    tell.title(
        "5. The next request, and what the model will see",
        f"The originals alone would take {size(originals)}, and {size(BUDGET)} are allowed. So the"
        " replies of older ranges are replaced by their summaries; every message of the user stays"
        " in, word for word. The manifest says what the request holds, pair by pair, and the ledger"
        " records that it was sent.",
    )
    made = stage.request(BUDGET)
    request = stage.deliver(made)
    tell.show(show_manifest, request.manifest)
    pairs = stage.pairs()
    texts = [str(message["content"]) for message in made.messages]
    tell.quote(f"Pair {LIMITS_PAIR}, the user, as the request has it", pairs[LIMITS_PAIR].user.text)
    block = next(text for text in texts if text.startswith("[derived summary"))
    tell.quote(
        "The summary of the first ten replies, as the request has it (the beginning)",
        "\n".join(block.splitlines()[:3]),
    )
    manifest = request.manifest
    tell.claim(
        f"The request has {size(len(made.body))}, as the manifest says: within the budget,"
        " where the originals are not.",
        holds=len(made.body) == manifest.bytes_used <= BUDGET < originals,
    )
    tell.claim(
        f"All {len(pairs)} messages of the user stand in it word for word.",
        holds=all(pair.user.text in texts for pair in pairs),
    )
    tell.claim(
        f"{manifest.count('summarized')} replies are summarized,"
        f" {manifest.count('verbatim')} stand in it word for word, none is left out.",
        holds=manifest.count("summarized") + manifest.count("verbatim") == len(pairs)
        and all(pair.assistant.text in texts for pair in pairs[manifest.count("summarized") :]),
    )
    tell.claim(
        f"The delivery is recorded, at index {request.delivery} of the log.",
        holds=stage.events(request.delivery)[0].event == "RequestDelivered",
    )
    return originals, request


def size_of_originals(stage: Stage) -> int:
    """What a request of all the original pairs would take."""
    options = Options(10**9, system=SYSTEM, next_user=NEXT_USER)
    made = assemble(DEFAULT_SCOPE, CONVERSATION, stage.lines(), (), stage.ledger.registry, options)
    return len(made.body)
