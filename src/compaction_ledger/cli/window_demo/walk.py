"""The run of the demonstration, from its first turn to its last, compacted while it goes on."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from compaction_ledger.cli.demo.teller import Teller
from compaction_ledger.cli.plain import visible
from compaction_ledger.cli.screen import one_line, out, print_json, table
from compaction_ledger.cli.window_demo.document import (
    DemoChunk,
    DemoPin,
    DemoTurn,
    WindowDemoDocument,
)
from compaction_ledger.cli.window_demo.incident import incident
from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.messages.shapes import shape_named
from compaction_ledger.domain.window.events import DeliveredStub
from compaction_ledger.domain.window.policy import WindowBudget
from compaction_ledger.ledger import Ledger
from compaction_ledger.usecases.window.preparing import Prepared
from compaction_ledger.window import Window

CONVERSATION, RUN, SHAPE = "incident", "night-shift", "openai-chat"
LIMIT, TURNS = 24_000, 60
EXTERNALIZE_OVER = 3_000

INTRODUCTION = (
    "An agent works on an incident: the user asks, the agent calls tools and answers. Its list of"
    " messages only grows. Before each call of the model the window prepares the request: within"
    f" {LIMIT:,} tokens, the newest turns as they are, older ones as summaries made of the originals,"
    " and what the user demanded word for word. Tool results of more than"
    f" {EXTERNALIZE_OVER:,} bytes stand there as stubs. What no summary has room for any more is left"
    " to search. Every line marked 'ok' is a claim that has just been"
    " checked."
)


@dataclass(slots=True)
class _Run:
    """The run so far: what the agent has, what was sent, and what became of its chunks."""

    window: Window
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    turns: list[DemoTurn] = field(default_factory=list[DemoTurn])
    blocks: dict[str, str] = field(default_factory=dict[str, str])
    changed_blocks: int = 0
    problems: int = 0
    stub: DeliveredStub | None = None
    last: Prepared | None = None


def walk(keep: Path | None, *, as_json: bool) -> WindowDemoDocument:
    """Go through the run; print it, and the one document at the end if ``as_json``."""
    if keep is not None and keep.exists():
        raise InvalidSetting("there is something already, name a new file", place=str(keep))
    if keep is not None and not keep.parent.is_dir():
        raise InvalidSetting("there is no such folder", place=str(keep.parent))
    console: Console | None = None if as_json else out()
    with TemporaryDirectory(prefix="compaction-ledger-demo-") as folder:
        path = Path(folder) / "window.db"
        teller = Teller(console)
        with Ledger.open(path) as ledger:
            document = _walk(ledger, teller, console, keep)
        if keep is not None:
            shutil.copyfile(path, keep)
            shutil.copytree(f"{path}.keys", f"{keep}.keys")
    if console is None:
        print_json(document)
    else:
        _end(console, document)
    return document


def _walk(
    ledger: Ledger, teller: Teller, console: Console | None, keep: Path | None
) -> WindowDemoDocument:
    teller.title("A window, turn by turn", INTRODUCTION)
    budget = WindowBudget(LIMIT, externalize_over=EXTERNALIZE_OVER)
    with ledger.window(
        CONVERSATION, run=RUN, shape=SHAPE, budget=budget, background=False
    ) as window:
        run = _Run(window)
        for step in incident(TURNS):
            run.messages += step.new
            _turn(run)
            run.messages.append(step.answer)
        prepared = run.last
        if prepared is None:
            raise InvalidSetting("the run has no turn", place="window demo")
        if console is not None:
            _show_turns(console, run)
        chunks = _chunks(run, prepared)
        pins = _pins(teller, console, run, prepared)
        _claims(teller, run, prepared)
        _show_request(teller, console, run, prepared)
        found = _search(teller, run)
        verified = ledger.verify()
        teller.claim(
            f"The ledger is in order: {verified.events} events, every seal holds.",
            holds=verified.ok,
        )
        return WindowDemoDocument(
            ok=teller.ok,
            ledger=None if keep is None else str(keep),
            limit=LIMIT,
            turns=run.turns,
            chunks=chunks,
            pins=pins,
            tokens_before=run.turns[-1].tokens_before,
            tokens_sent=run.turns[-1].tokens_sent,
            prefix_reuse=round(window.prefix_reuse, 4),
            found=found,
            claims=teller.claims,
        )


def _turn(run: _Run) -> None:
    """One call of the model: prepare the request, then summarize what is due before the next one (T11)."""
    prepared = run.window.prepare(run.messages)
    run.last = prepared
    run.problems += len(shape_named(SHAPE).problems(prepared.messages))
    _compare_blocks(run, prepared)
    run.stub = prepared.manifest.stubs[-1] if prepared.manifest.stubs else run.stub
    outcome = run.window.compact()
    before = sum(
        len(json.dumps(m, ensure_ascii=False, separators=(",", ":"))) for m in run.messages
    )
    run.turns.append(
        DemoTurn(
            messages=len(run.messages),
            tokens_before=before,
            tokens_sent=prepared.tokens,
            bytes_sent=prepared.bytes_sent,
            bytes_reused=prepared.bytes_reused,
            compacted=None
            if outcome is None
            else f"m{outcome.first} to m{outcome.last}: {outcome.result}",
        )
    )


def _compare_blocks(run: _Run, prepared: Prepared) -> None:
    """A chunk's block must never change, as long as it stands (T8, T10)."""
    for chunk, text in zip(prepared.manifest.chunks, _block_texts(prepared), strict=False):
        run.changed_blocks += run.blocks.setdefault(chunk.identity, text) != text


def _block_texts(prepared: Prepared) -> list[str]:
    return [
        message["content"]
        for message in prepared.messages
        if message["role"] == "assistant"
        and str(message.get("content") or "").startswith("[derived summary of")
    ]


def _show_turns(console: Console, run: _Run) -> None:
    rows = [
        (
            number,
            turn.messages,
            f"{turn.tokens_before:,}",
            f"{turn.tokens_sent:,}",
            f"{100 * turn.bytes_reused // max(1, turn.bytes_sent)} %",
            turn.compacted or "",
        )
        for number, turn in enumerate(run.turns, start=1)
        if turn.compacted or number in (1, len(run.turns))
    ]
    columns = ("call", "messages", "as they are", "sent", "reused", "summarized behind it")
    console.print(table(*columns, rows=rows, right=columns[:5]))
    console.print(
        "Tokens are counted as bytes of UTF-8: never too few. Calls between those are left out."
    )
    console.print()


def _chunks(run: _Run, prepared: Prepared) -> list[DemoChunk]:
    return [
        DemoChunk(
            first=f"m{chunk.first}",
            last=f"m{chunk.last}",
            bytes_of_originals=sum(
                len(json.dumps(message, ensure_ascii=False).encode())
                for message in run.messages[chunk.first : chunk.last + 1]
            ),
            bytes_of_block=len(text.encode()),
        )
        for chunk, text in zip(prepared.manifest.chunks, _block_texts(prepared), strict=True)
    ]


def _pins(teller: Teller, console: Console | None, run: _Run, prepared: Prepared) -> list[DemoPin]:
    teller.title(
        "Pins: what the user demanded once, word for word",
        "No model words these. Each is proved against the message that it is quoted from, and a"
        " correction replaces what it corrects: both stay in the ledger.",
    )
    current = {pin.pin_id for pin in run.window.pins()}
    pins = [
        DemoPin(message=f"m{pin.message}", quote=pin.quote, current=pin.pin_id in current)
        for pin in run.window.all_pins()
    ]
    if console is not None:
        rows = [(p.message, p.quote, "current" if p.current else "replaced") for p in pins]
        console.print(table("message", "the user's words", "", rows=rows))
        console.print()
    sent = "\n".join(str(message.get("content") or "") for message in prepared.messages)
    teller.claim(
        f"All {len(pins)} pins stand in the last request, character for character.",
        holds=len(pins) >= 3 and all(pin.quote in sent for pin in pins),
    )
    teller.claim(
        "The limit that was corrected is marked as replaced, the new one as current.",
        holds=any(not p.current and "4,000 EUR" in p.quote for p in pins)
        and any(p.current and "2,500 EUR" in p.quote for p in pins),
    )
    return pins


def _claims(teller: Teller, run: _Run, prepared: Prepared) -> None:
    teller.title("What was sent", "Each request was checked against what its provider accepts.")
    calls = len(run.turns)
    teller.claim(
        f"None of {calls} requests had a call without result, a result without call, or a wrong role.",
        holds=run.problems == 0,
    )
    teller.claim(
        f"None had more than {LIMIT:,} tokens; the run has {run.turns[-1].tokens_before:,}.",
        holds=all(turn.tokens_sent <= LIMIT for turn in run.turns),
    )
    teller.claim(
        f"{len(prepared.manifest.chunks)} summaries stand in the last one, each as it was when it was made.",
        holds=run.changed_blocks == 0 and len(prepared.manifest.chunks) > 1,
    )
    tail = prepared.manifest.messages[-1]
    kept = run.messages[tail.first : tail.last + 1]
    teller.claim(
        f"The newest {len(kept)} messages are the agent's own, unchanged but for large tool results.",
        holds=_unchanged(prepared.messages[-len(kept) :], kept),
    )
    teller.claim(
        f"{100 * run.window.prefix_reuse:.1f} % of all bytes sent stood at the same place in the request"
        " before, where a provider's cache can serve them.",
        holds=run.window.prefix_reuse > 0.8,
    )


def _unchanged(sent: list[Any], kept: list[dict[str, Any]]) -> bool:
    return all(
        one == other or str(one.get("content", "")).startswith("[tool result kept apart")
        for one, other in zip(sent, kept, strict=True)
    )


def _show_request(teller: Teller, console: Console | None, run: _Run, prepared: Prepared) -> None:
    if console is None:
        return
    teller.title(
        "Before and after",
        "The run as the agent has it, and the last request as the model gets it.",
    )
    console.print(f"Before: {len(run.messages)} messages, {run.turns[-1].tokens_before:,} tokens.")
    console.print(f"After: {len(prepared.messages)} messages, {prepared.tokens:,} tokens:")
    console.print()
    rows: list[tuple[object, ...]] = []
    for message in prepared.messages[:8]:
        said = message.get("content") or json.dumps(message.get("tool_calls"))
        rows.append((message["role"], one_line(visible(str(said)), max(20, console.width - 14))))
    rows.append(("…", f"and {len(prepared.messages) - 8} more"))
    console.print(table("role", "content", rows=rows))
    teller.quote("The first block", _block_texts(prepared)[0])


def _search(teller: Teller, run: _Run) -> str:
    """What is summarized is not gone: it is found, and reread as it was (T14, T15)."""
    teller.title(
        "The whole transcript stays",
        "The model has tools to look for the exact words, in this conversation and in no other.",
    )
    answer = json.loads(run.window.call_tool("search_conversation_history", {"query": "CHG-7711"}))
    hits = answer.get("hits", [])
    found = str(hits[0]["quote"]) if hits else ""
    teller.claim(
        f"search_conversation_history finds CHG-7711 in message {hits[0]['message_id'] if hits else '?'}, "
        "and quotes it.",
        holds="CHG-7711" in found and any(found in str(m.get("content")) for m in run.messages),
    )
    refused = json.loads(
        run.window.call_tool(
            "search_conversation_history", {"query": "CHG-7711", "conversation": "another"}
        )
    )
    teller.claim("A model that names another conversation is refused.", holds="error" in refused)
    stub = run.stub
    if stub is not None:
        reread = json.loads(
            run.window.call_tool("read_tool_result", {"handle": f"tr_{stub.digest}"})
        )
        original = run.messages[stub.message]["content"]
        teller.claim(
            f"read_tool_result reads the {stub.size:,} bytes of a result that was kept apart, as they were.",
            holds=original.startswith(str(reread.get("text"))) and bool(reread.get("text")),
        )
    return found


def _end(console: Console, document: WindowDemoDocument) -> None:
    failed = sum(not claim.holds for claim in document.claims)
    console.print()
    console.rule(align="left")
    if failed:
        console.print(f"{failed} of {len(document.claims)} claims do NOT hold.")
    else:
        console.print(f"All {len(document.claims)} claims hold.")
    if document.ledger is None:
        console.print("Keep the ledger to look at it: compaction-ledger window demo --keep w.db")
        return
    console.print(f"The ledger is in {document.ledger}. Try:", soft_wrap=True)
    for words in (f"window show {CONVERSATION}", "log", "verify"):
        console.print(f"  compaction-ledger --ledger {document.ledger} {words}", soft_wrap=True)
