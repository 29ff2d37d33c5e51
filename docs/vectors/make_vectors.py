#!/usr/bin/env python3
"""Write vectors.json: inputs and digests by which another language can check its own binding (B2).

Standard library only, and not one line of the package: its own RFC 8785 writer for the few kinds of
values that occur (objects, arrays, strings, integers). See docs/reference/vectors.md.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}

PLAIN = [
    ("Which fund has the lowest fee?", "Fund Amber, at 0.12 % a year."),
    ("And over ten years?", "About 1.2 % of what was invested, before growth."),
    ("My horizon is twelve years, not ten.", "Then about 1.4 %."),
]
HARD = [
    ("", "\u0000 a NUL begins this one"),
    ("caf\u00e9", "cafe\u0301"),
    ("\U0001f9d1\u200d\U0001f4bb", "\U0001d11e"),
    ("\ude00\ud83d", "\ud800 and \udfff alone"),
    ("line\u2028paragraph\u2029end", "\u0085\u00a0\u3000"),
    ('"quoted" \\ / \b\f\n\r\t\u001f\u007f\u0080', "\ufeff\ufffe\uffff"),
    ("\u05d0\u202e\u05d1", "\u57fa\u91d1\u51c0\u503c 1.2345"),
    ("</script>{0}%s{}", "[end of the derived summary of pairs 0-9]"),
    (" leading", "trailing "),
    ("\ue000", "\U0010ffff"),
]


def text(value: str) -> str:
    """A string: only what RFC 8785 escapes is escaped."""
    escaped = (SHORT.get(c, f"\\u{ord(c):04x}" if c < " " else c) for c in value)
    return '"' + "".join(escaped) + '"'


def canonical(value: Any) -> str:
    """RFC 8785 for objects, arrays, strings and integers."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{text(key)}:{canonical(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return str(int(value))


def octets(value: Any) -> bytes:
    """UTF-8, a lone surrogate as its three bytes."""
    return canonical(value).encode("utf-8", "surrogatepass")


def digest(tag: str, value: Any) -> str:
    """SHA-256(tag || 0x00 || bytes) in lower-case hexadecimal."""
    return hashlib.sha256(tag.encode() + b"\x00" + octets(value)).hexdigest()


def source(
    scope: str, conversation: str, first: int, texts: list[tuple[str, str]]
) -> dict[str, Any]:
    """Ten pairs; ``texts`` are used in turn."""
    pairs = []
    for index in range(first, first + 10):
        user, assistant = texts[index % len(texts)]
        pairs.append(
            {
                "index": index,
                "run": f"run/{index}",
                "user": {"id": f"question-{index}", "text": user or f"question {index}"},
                "assistant": {"id": f"answer-{index}", "text": assistant},
            }
        )
    return {
        "v": 1,
        "scope": scope,
        "conversation": conversation,
        "from": first,
        "to": first + 9,
        "pairs": pairs,
    }


def job(bound: dict[str, Any], model: dict[str, Any], prompt: str) -> dict[str, Any]:
    """The job of summarizing this source."""
    messages = [pair[side]["id"] for pair in bound["pairs"] for side in ("user", "assistant")]
    return {
        "v": 1,
        "scope": bound["scope"],
        "conversation": bound["conversation"],
        "from": bound["from"],
        "to": bound["to"],
        "messages": messages,
        "source": digest("compaction-ledger/source/v1", bound),
        "model": model,
        "prompt": prompt,
    }


def vectors() -> dict[str, Any]:
    """Everything that is published."""
    sources = {
        "plain": source("house-7", "thread-1", 0, PLAIN),
        "fourth range": source("house-7", "thread-1", 30, PLAIN),
        "other scope": source("house-8", "thread-1", 0, PLAIN),
        "hard texts": source("\u57fa\u91d1", "thread/\u00fc \U0001f600", 0, HARD),
    }
    plain = {"provider": "local", "name": "extractive", "settings": {}}
    ordered = {
        "provider": "openai",
        "name": "gpt-x",
        "settings": {"\ufb33": "after", "\U0001f600": "before", "max_tokens": "900", 'a"b': "\n"},
    }
    current, second = "conversation-compaction@3", "conversation-compaction@2"
    jobs = {
        "plain": job(sources["plain"], plain, current),
        "second prompt version": job(sources["plain"], plain, second),
        "settings in UTF-16 order": job(sources["plain"], ordered, current),
        "hard texts": job(sources["hard texts"], plain, current),
    }
    return {
        "source_binding": [
            {
                "name": name,
                "source": value,
                "bytes_length": len(octets(value)),
                "bytes_sha256": hashlib.sha256(octets(value)).hexdigest(),
                "source_hash": digest("compaction-ledger/source/v1", value),
            }
            for name, value in sources.items()
        ],
        "job_identity": [
            {"name": name, "job": value, "digest": digest("compaction-ledger/job/v1", value)}
            for name, value in jobs.items()
        ],
        "windows": {
            str(pairs): 0 if pairs < 30 else (pairs - 20) // 10
            for pairs in (0, 9, 10, 20, 29, 30, 31, 39, 40, 41, 49, 50, 59, 60, 199, 100_000)
        },
    }


def render() -> str:
    """The file's text: ASCII only, so that lone surrogates and look-alikes survive every editor."""
    return json.dumps(vectors(), indent=1) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("vectors.json").write_text(render(), "utf-8")
