"""How the lines of `work` look."""

from __future__ import annotations

import signal

from compaction_ledger.cli.documents.work import WorkDocument
from compaction_ledger.cli.plain import plural, visible
from compaction_ledger.cli.views.compaction import RESULTS


def line_of(document: WorkDocument) -> str | None:
    """One line on what happened, or ``None`` where that is nothing to people."""
    match document.event:
        case "range":
            return _place(document) + _range(document)
        case "error":
            return _place(document) + _error(document)
        case "store_away":
            return f"the store does not do it and is asked again: {_error(document)}"
        case "store_back":
            return "the store does it again"
        case "signing_failed":
            return f"the log is not signed, and that is tried again: {_error(document)}"
        case "worker_started":
            return None
        case "worker_ended":
            return _ended(document)
        case "end":
            return _end(document)


def _place(document: WorkDocument) -> str:
    return f"{_one_line(document.conversation)} (scope {_one_line(document.scope)}) "


def _range(document: WorkDocument) -> str:
    done = document.range
    if done is None:
        return ""
    more = [f"index {done.index}"] if done.index is not None else []
    more += [", ".join(done.failures)] if done.failures else []
    told = f"{done.from_pair}-{done.to_pair}: {RESULTS[done.result]}"
    return f"{told} ({'; '.join(more)})" if more else told


def _error(document: WorkDocument) -> str:
    if document.error is None:
        return ""
    return f"error[{document.error.code}]: {_one_line(document.error.message)}"


def _ended(document: WorkDocument) -> str | None:
    code = document.exit_code or 0
    if document.again_in is None and code in {0, 1, -signal.SIGTERM}:
        return None
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    again = "" if document.again_in is None else f"; another begins in {document.again_in:.1f} s"
    return f"process {document.worker} (pid {document.process}) {how}{again}"


def _end(document: WorkDocument) -> str:
    counts = document.counts or {}
    how = "Stopped" if document.stopped else "Nothing is due any more"
    summaries = plural(counts.get("ranges_completed", 0), "summary", "summaries")
    return f"{how}: {summaries} made, {plural(counts.get('conversations', 0), 'look')} at conversations."


def _one_line(text: str | None) -> str:
    return visible(" ".join((text or "").split()))
