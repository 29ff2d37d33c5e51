"""Between a host's messages and JSON: the objects of provider libraries, bytes, and back again (T1).

A message that is JSON already is used as it is. One that holds objects of a provider's library, as agents
append the answers they got, is turned into JSON to be read; what is sent in the end is the host's own
object wherever it stands unchanged.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, cast

from compaction_ledger.domain.canonical import encode_ordered
from compaction_ledger.domain.errors import MalformedMessage
from compaction_ledger.domain.messages.interface import Wire

ARGUMENTS: Mapping[str, str] = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "converse": "messages",
}
"""By shape: the argument of the provider's call that holds the messages."""

BESIDE = (
    "system",
    "instructions",
    "tools",
    "toolConfig",
    "functions",
    "response_format",
    "text_format",
)
"""Arguments that are part of what the model reads, and count against the limit."""

_PLAIN = (str, int, float, bool, type(None))


class HostMessages:
    """A host's list of messages, as JSON; and what stands for which of its objects."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._given: dict[int, Any] = {}
        self._kept: list[Any] = []
        self.wires: list[Wire] = [
            self._message(message, position) for position, message in enumerate(messages)
        ]

    def back(self, messages: Sequence[Wire]) -> list[Any]:
        """``messages`` with the host's own objects in place of what was made of them here."""
        return [self._back(message) for message in messages]

    def _message(self, message: Any, position: int) -> Wire:
        place = f"message {position}"
        try:
            wire = self._json(message, place)
        except RecursionError:
            raise MalformedMessage("is nested too deeply, or in itself", place=place) from None
        if not isinstance(wire, Mapping):
            raise MalformedMessage(
                f"is no JSON object but {type(message).__name__}", place=f"message {position}"
            )
        return cast(Wire, wire)

    def _json(self, value: Any, place: str) -> Any:
        """The JSON of a value: the value itself where it is JSON all through."""
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()  # as Bedrock writes them on the wire
        made = self._made(value, place)
        if made is not value:
            self._given[id(made)] = value
            self._kept.append(made)  # as long as it is there, nothing else has its id
        return made

    def _made(self, value: object, place: str) -> Any:
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            object_ = {key: self._json(member, place) for key, member in members.items()}
            same = members.__class__ is dict and all(
                object_[key] is members[key] for key in members
            )
            return members if same else object_
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            list_ = [self._json(item, place) for item in items]
            return items if items.__class__ is list and all(map(_is, list_, items)) else list_
        return self._dumped(value, place)

    def _dumped(self, value: Any, place: str) -> Any:
        """An object of a provider's library, which are pydantic models."""
        dump = getattr(value, "model_dump", None)
        if dump is None:
            raise MalformedMessage(
                f"holds a {type(value).__name__}, which is not JSON", place=place
            )
        try:
            return dump(mode="json", exclude_unset=True)
        except Exception as error:  # whatever a library's object raises: it cannot be told as JSON
            raise MalformedMessage(
                f"holds a {type(value).__name__}, which cannot be made JSON: {error}", place=place
            ) from error

    def _back(self, value: object) -> Any:
        given = self._given.get(id(value))
        if given is not None:
            return given
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            object_ = {key: self._back(member) for key, member in members.items()}
            return object_ if any(object_[key] is not members[key] for key in members) else members
        if isinstance(value, list):
            items = cast("list[object]", value)
            list_ = [self._back(item) for item in items]
            return items if all(map(_is, list_, items)) else list_
        return value


def told_beside(arguments: Mapping[str, Any]) -> list[bytes]:
    """What a provider is told beside the messages, as JSON to be counted. It never fails: the class of a
    structured answer counts as its schema, and of what else is not JSON its text.
    """
    return [_beside(name, arguments[name]) for name in BESIDE if arguments.get(name)]


def _beside(name: str, value: object) -> bytes:
    schema = getattr(value, "model_json_schema", None) if isinstance(value, type) else None
    try:
        told = value if schema is None else schema()
        return encode_ordered(HostMessages([{name: told}]).wires[0])
    except Exception:  # noqa: BLE001 - it is only counted, and the call itself says what is wrong with it
        return repr(value).encode("utf-8", "replace")


def _is(one: object, other: object) -> bool:
    return one is other


def reported_tokens(response: object) -> int | None:
    """The tokens of the request as a provider's response reports them, cached ones included; ``None`` if
    it does not.

    OpenAI: ``usage.prompt_tokens`` or ``usage.input_tokens``. Anthropic: ``usage.input_tokens`` and those
    read from and written to its cache. Converse: ``usage.inputTokens`` and likewise.
    """
    usage = _member(response, "usage")
    if usage is None:
        return None
    for name, beside in _REPORTED:
        tokens = _member(usage, name)
        if type(tokens) is int:
            more = [_member(usage, other) for other in beside]
            return tokens + sum(number for number in more if type(number) is int)
    return None


_REPORTED = (
    ("prompt_tokens", ()),
    ("inputTokens", ("cacheReadInputTokens", "cacheWriteInputTokens")),
    ("input_tokens", ("cache_read_input_tokens", "cache_creation_input_tokens")),
)


def _member(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(name)
    return getattr(value, name, None)
