"""A witness at a URL, as a log asks it (C2SP ``tlog-witness``, K3)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction_ledger.domain.errors import (
    BadSignature,
    InvalidSetting,
    MalformedProof,
    NotSigned,
    WitnessRefusal,
    WitnessRefused,
    WitnessUnavailable,
)
from compaction_ledger.domain.proof.inclusion import WitnessRequest
from compaction_ledger.domain.proof.notes import (
    COSIGNATURE,
    NoteSignature,
    NoteVerifier,
    SignedNote,
    check_note,
    parse_note,
)
from compaction_ledger.domain.proof.witnessing import (
    MAX_ANSWER,
    SIZE_TYPE,
    origin_name,
    parse_lines,
)
from compaction_ledger.infrastructure.http_places import Answer, HttpPlace, NoAnswer
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Verifier

SECONDS = 10.0
_SIZE = re.compile(rb"(0|[1-9][0-9]{0,18})\n").fullmatch
_REASONS: dict[int, WitnessRefusal] = {
    403: "unknown_key",
    404: "unknown_log",
    409: "fork",
    422: "inconsistent",
}


class HttpWitness:
    """A witness by its URL and its verifier key, which alone decides what is believed of its answers."""

    def __init__(
        self, url: str, verifiers: Sequence[NoteVerifier], seconds: float = SECONDS
    ) -> None:
        self._place = HttpPlace(url, "witness", seconds, MAX_ANSWER)
        self._verifiers = verifiers
        self.url = self._place.url

    @classmethod
    def parse(cls, setting: str, seconds: float = SECONDS) -> HttpWitness:
        """A witness as it is set: its URL, a space, its verifier key. Raises :class:`InvalidSetting`."""
        url, _, key = setting.strip().partition(" ")
        return cls(url, (witness_verifier(key.strip()),), seconds)

    @property
    def name(self) -> str:
        """The name of its key."""
        return self._verifiers[0].name

    @property
    def verifiers(self) -> Sequence[NoteVerifier]:
        """Its keys."""
        return self._verifiers

    def add(self, request: WitnessRequest) -> tuple[NoteSignature, ...]:
        """Its cosignatures of a checkpoint, checked. Raises :class:`WitnessRefused`."""
        answer = self._ask("POST", "/add-checkpoint", request.encode())
        if answer.status == 409 and answer.content_type == SIZE_TYPE:
            match = _SIZE(answer.body)
            if match is None:
                raise self._unavailable("its answer is not a size")
            raise WitnessRefused("stale", f"{self.name} has cosigned another size", int(match[1]))
        if answer.status in _REASONS:
            raise WitnessRefused(_REASONS[answer.status], f"{self.name}: {answer.line()}")
        if answer.status != 200:
            raise self._unavailable(f"it answers {answer.status}: {answer.line()}")
        note = parse_note(request.checkpoint)
        try:
            lines = parse_lines(answer.body)
            return check_note(SignedNote(note.text, lines), self._verifiers).verified
        except (BadSignature, MalformedProof, NotSigned) as error:
            raise self._unavailable(f"its answer is no cosignature: {error}") from error

    def latest(self, origin: str) -> bytes | None:
        """The checkpoint that it cosigned last, as a signed note; that it did is for the caller to check."""
        answer = self._ask("GET", f"/checkpoint/{origin_name(origin)}")
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise self._unavailable(f"it answers {answer.status}: {answer.line()}")
        return answer.body

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Answer:
        try:
            return self._place.ask(method, path, body)
        except NoAnswer as error:
            raise self._unavailable(str(error)) from error

    def _unavailable(self, why: str) -> WitnessUnavailable:
        return WitnessUnavailable(f"the witness {self.name} at {self.url}: {why}")


def witness_verifier(key: str) -> Ed25519Verifier:
    """A witness's verifier key. Raises :class:`InvalidSetting` for what is not the key of a cosigner."""
    try:
        verifier = Ed25519Verifier.parse(key)
    except MalformedProof as error:
        raise InvalidSetting(f"not a verifier key: {error}", place="witness") from error
    if verifier.verifier_key.signature_type != COSIGNATURE:
        raise InvalidSetting("this is not the key of a witness", place="witness")
    return verifier
