"""One error tree for everything that can go wrong.

::

    LedgerError
     ├── InvalidInput (also a ValueError)      what came in is wrong; the place is named
     │    ├── InvalidId                        E4
     │    ├── DuplicateMessageId               E4
     │    ├── NotAnUpdate
     │    ├── UnknownMessage
     │    ├── UnknownConversation
     │    ├── InvalidPolicy                    W2
     │    ├── InvalidJob                       A7
     │    ├── InvalidCommand                   A7
     │    ├── InvalidSetting
     │    ├── MalformedRecord                  an imported file, with line or path
     │    ├── MalformedMessage                 T1, a message that is not of its wire shape
     │    ├── MalformedProof                   K2, a note, checkpoint or proof, or a key of theirs
     │    ├── BrokenTranscript                 T2, with every problem that was found
     │    ├── HistoryChanged                   T2, a run whose earlier messages are others now
     │    ├── WindowTooSmall                   T6, with both numbers
     │    └── BudgetTooSmall                   H3
     ├── Refused                               a command the aggregate refuses
     │    ├── AlreadyClaimed                   A1
     │    ├── AlreadyCompleted                 A1, A2
     │    ├── Exhausted                        A3
     │    ├── BackingOff                       D3
     │    ├── NotTheHolder                     A4
     │    ├── LeaseExpired                     A4, A5
     │    ├── AttemptOutOfTurn                 A3, A4
     │    ├── DifferentResult                  A2
     │    ├── ChunkOverlaps                    T8, T11
     │    ├── WitnessRefused                   K3, and why
     │    └── PinRefused                       T9, and why
     ├── StoreError                            the store cannot do it
     │    ├── NotALedger
     │    ├── NewerFormat
     │    ├── LedgerBusy
     │    ├── LedgerReadOnly
     │    ├── DiskFull
     │    ├── StoreUnavailable
     │    ├── ConcurrentAppend                 A8, before it is decided again
     │    │    └── TimeHasPassed               A5, likewise
     │    ├── RebuildOvertaken                 P4
     │    ├── KeyMissing                       S1, S3, never to be taken for an erasure
     │    ├── WrongKey                         S1, S3, likewise
     │    ├── KeysUnavailable                  S1, S3, likewise; may be tried again
     │    ├── WitnessUnavailable               K3
     │    ├── TimestampUnavailable             K3
     │    ├── SignerBusy                       K1, another process publishes there
     │    └── UnusableSignerKey                K1, S4
     ├── SigningRefused                        K1: what must not be signed
     │    ├── SmallerTree                      K1, with both heads
     │    ├── InconsistentTree                 K1, with both heads
     │    └── SignerOvertaken                  K1, another has become the signer
     ├── InvalidProof                          K1, K2: it does not prove what it should
     │    ├── Forked                           K3, K4, with both sides
     │    ├── BadTimestamp                     K3
     │    ├── BadSignature
     │    └── NotSigned
     ├── Erased                                S3, a conversation that is to be read no more
     └── DamagedLog                            what is stored is not what was sealed
          ├── UnknownEvent                     A10, L5
          ├── MalformedEvent
          ├── DamagedOriginal                  T14, T15, a kept message or tool result
          └── DamagedReadModel                 H9, rows that can be built again
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal


class LedgerError(Exception):
    """Base of every error of this package. ``code`` is stable and goes into JSON output."""

    code: ClassVar[str] = "ledger_error"


class InvalidInput(LedgerError, ValueError):
    """What came in is wrong; nothing was stored. ``place`` says where."""

    code = "invalid_input"

    def __init__(self, message: str, *, place: str | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place


class InvalidId(InvalidInput):
    """An id or scope is not 1 to 512 characters of well-formed text without control characters (E4)."""

    code = "invalid_id"


class DuplicateMessageId(InvalidInput):
    """One message id stands twice in a conversation (E4). Both places are named."""

    code = "duplicate_message_id"

    def __init__(self, message_id: str, first: str, second: str, *, hint: str = "") -> None:
        super().__init__(
            f"message id {message_id!r} stands twice: at {first} and at {second}"
            + (f"; {hint}" if hint else "")
        )
        self.message_id = message_id
        self.first = first
        self.second = second


class NotAnUpdate(InvalidInput):
    """A conversation is not a later state of the one in the ledger; ``place`` names the first message."""

    code = "not_an_update"


class UnknownMessage(InvalidInput):
    """No such message in this conversation."""

    code = "unknown_message"


class UnknownConversation(InvalidInput):
    """No such conversation in this scope."""

    code = "unknown_conversation"


class InvalidPolicy(InvalidInput):
    """The three numbers of a window policy do not fit together (W2)."""

    code = "invalid_policy"


class InvalidJob(InvalidInput):
    """A job's range, ids or source hash are not what a range is made of (A7)."""

    code = "invalid_job"


class InvalidCommand(InvalidInput):
    """A command's own fields are malformed or belong to another stream."""

    code = "invalid_command"


class InvalidSetting(InvalidInput):
    """A setting or option has a value that is not allowed."""

    code = "invalid_setting"


class MalformedRecord(InvalidInput):
    """A record of an imported file cannot be read; ``place`` names file and line or path."""

    code = "malformed_record"


class MalformedMessage(InvalidInput):
    """A message is not of the wire shape it was given as (T1); ``place`` names message and member."""

    code = "malformed_message"


class MalformedProof(InvalidInput):
    """A note, checkpoint, proof or key is not written as its format says (K2); ``place`` says where."""

    code = "malformed_proof"


class BrokenTranscript(InvalidInput):
    """Calls and results of a transcript do not fit together (T2). ``problems`` are (code, place, message)."""

    code = "broken_transcript"

    def __init__(self, problems: Sequence[tuple[str, str, str]]) -> None:
        _, place, message = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(message + more, place=place)
        self.problems = tuple(problems)


class HistoryChanged(InvalidInput):
    """A message that is recorded of this run is another one now (T2): a changed history is another run."""

    code = "history_changed"

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why, place=f"message {position}")
        self.position = position


class WindowTooSmall(InvalidInput):
    """What must be sent whole, the last exchange, is alone larger than the window (T6). Both in tokens."""

    code = "window_too_small"

    def __init__(self, needed: int, allowed: int, beside: int = 0) -> None:
        of_that = f", {beside} of them beside the messages (tools, system prompt)" if beside else ""
        super().__init__(
            f"the request needs {needed} tokens for its last exchange and the instructions{of_that}; "
            f"{allowed} are allowed: raise the limit, or count with a counter that is closer to the model's"
        )
        self.needed = needed
        self.allowed = allowed


class BudgetTooSmall(InvalidInput):
    """What must be sent (system prompt and next user message) is alone larger than the budget (H3)."""

    code = "budget_too_small"

    def __init__(self, needed: int, allowed: int) -> None:
        super().__init__(f"the request needs at least {needed} bytes, {allowed} are allowed")
        self.needed = needed
        self.allowed = allowed


class Refused(LedgerError):
    """A command was understood and refused by the aggregate; the history is as it was."""

    code = "refused"


class AlreadyClaimed(Refused):
    """An open claim on this source exists (A1)."""

    code = "already_claimed"

    def __init__(self, holder: str, expires_at: int, claim_id: str) -> None:
        super().__init__(f"already claimed by {holder!r} until {expires_at} µs since the epoch")
        self.holder = holder
        self.expires_at = expires_at
        self.claim_id = claim_id


class AlreadyCompleted(Refused):
    """This identity has its one completion (A1, A2). ``version`` is its place in the stream."""

    code = "already_completed"

    def __init__(self, identity: str, version: int) -> None:
        super().__init__(f"job {identity[:12]}… is completed, by event {version} of its stream")
        self.identity = identity
        self.version = version


class Exhausted(Refused):
    """This identity has used its two attempts (A3)."""

    code = "exhausted"

    def __init__(self, identity: str, attempts: int) -> None:
        super().__init__(f"job {identity[:12]}… has used its {attempts} attempts")
        self.identity = identity
        self.attempts = attempts


class BackingOff(Refused):
    """The provider was not there; the second attempt of this identity waits until ``retry_at`` (D3)."""

    code = "backing_off"

    def __init__(self, identity: str, retry_at: int) -> None:
        super().__init__(f"job {identity[:12]}… waits until {retry_at} µs since the epoch")
        self.identity = identity
        self.retry_at = retry_at


class NotTheHolder(Refused):
    """The claim named is not the open claim (A4): taken over, released, or never made."""

    code = "not_the_holder"

    def __init__(self, claim_id: str, why: str) -> None:
        super().__init__(f"claim {claim_id} is not the open claim: {why}")
        self.claim_id = claim_id
        self.why = why


class LeaseExpired(Refused):
    """The claim is past its lease (A4, A5); its expiry has been recorded."""

    code = "lease_expired"

    def __init__(self, claim_id: str, expired_at: int) -> None:
        super().__init__(f"claim {claim_id} expired at {expired_at} µs since the epoch")
        self.claim_id = claim_id
        self.expired_at = expired_at


class AttemptOutOfTurn(Refused):
    """An attempt is already open, or the one named is not open."""

    code = "attempt_out_of_turn"


class DifferentResult(Refused):
    """A second, different result for a claim that has completed (A2)."""

    code = "different_result"


class ChunkOverlaps(Refused):
    """Some of these messages are in another chunk, claimed or completed, that this one does not replace."""

    code = "chunk_overlaps"

    def __init__(self, first: int, last: int, why: str) -> None:
        super().__init__(f"messages {first} to {last} cannot be a chunk: {why}")
        self.first = first
        self.last = last


PinRefusal = Literal[
    "unknown_message",
    "not_users_words",
    "not_found",
    "part_of_a_token",
    "out_of_context",
    "not_text",
    "unknown_pin",
    "pin_id_used",
]


class PinRefused(Refused):
    """A proposed pin is not provably the user's own words (T9). ``reason`` is stable."""

    code = "pin_refused"

    def __init__(self, reason: PinRefusal, message: str) -> None:
        super().__init__(message)
        self.reason = reason


WitnessRefusal = Literal["unknown_log", "unknown_key", "stale", "fork", "inconsistent"]


class WitnessRefused(Refused):
    """A witness does not cosign a checkpoint (K3). ``reason`` is stable.

    ``size`` is that of the checkpoint which it cosigned last, where it said so.
    """

    code = "witness_refused"

    def __init__(self, reason: WitnessRefusal, message: str, size: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.size = size


class StoreError(LedgerError):
    """The store could not do it. Nothing was half done."""

    code = "store_error"


class NotALedger(StoreError):
    """The file exists and is no ledger."""

    code = "not_a_ledger"


class NewerFormat(StoreError):
    """The ledger was written by a newer format than this software knows."""

    code = "newer_format"


class LedgerBusy(StoreError):
    """Another process held the store for longer than the time-out."""

    code = "ledger_busy"


class LedgerReadOnly(StoreError):
    """The file or its folder cannot be written."""

    code = "ledger_read_only"


class DiskFull(StoreError):
    """The disk is full; the transaction was rolled back."""

    code = "disk_full"


class StoreUnavailable(StoreError):
    """The store cannot be opened or reached."""

    code = "store_unavailable"


class ConcurrentAppend(StoreError):
    """Another process appended to this stream first (A8). The use case decides again."""

    code = "concurrent_append"


class TimeHasPassed(ConcurrentAppend):
    """The store's clock, read after its lock, is outside the time that the decision holds for (A5).

    Nothing was stored. The use case decides again, by the time that it is now.
    """

    code = "time_has_passed"


class RebuildOvertaken(StoreError):
    """Another process began a rebuild after this one, under another registry: the later one counts (P4)."""

    code = "rebuild_overtaken"


class KeyMissing(StoreError):
    """A key, or the keyring, is not where it should be (S1). It does not say "erased" (S3)."""

    code = "key_missing"


class WrongKey(StoreError):
    """The key is there, and does not open what it should open (S1). Nor does it say "erased" (S3)."""

    code = "wrong_key"


class KeysUnavailable(StoreError):
    """Who holds the keys cannot be reached, or refuses access. It may be tried again (S1, S3)."""

    code = "keys_unavailable"


class Erased(LedgerError):
    """The conversation was erased, or is being erased: nothing of it is read, and nothing comes back (S3)."""

    code = "erased"


class WitnessUnavailable(StoreError):
    """A witness cannot be reached, or its answer is not one of the protocol (K3)."""

    code = "witness_unavailable"


class TimestampUnavailable(StoreError):
    """A time-stamp authority cannot be reached, or it gave no time stamp (K3)."""

    code = "timestamp_unavailable"


class SignerBusy(StoreError):
    """Another process publishes checkpoints in this folder, for longer than the time-out (K1)."""

    code = "signer_busy"


class UnusableSignerKey(StoreError):
    """The file of the signer's keys is not what it should be, or others may read it (K1, S4)."""

    code = "unusable_signer_key"


class SigningRefused(LedgerError):
    """The log must not be signed as it is (K1). Nothing was published."""

    code = "signing_refused"


class SmallerTree(SigningRefused):
    """The log is smaller than what was signed of it: events are gone, or an old copy was restored (K1, K4).

    ``signed`` and ``found`` are the two heads, in words.
    """

    code = "smaller_tree"

    def __init__(self, signed: str, found: str) -> None:
        super().__init__(f"the log is smaller than what was signed: signed {signed}; found {found}")
        self.signed = signed
        self.found = found


class InconsistentTree(SigningRefused):
    """The log does not begin with what was signed of it: it was rewritten, or went on from an old copy (K1).

    ``signed`` and ``found`` are two heads of the same size, in words.
    """

    code = "inconsistent_tree"

    def __init__(self, signed: str, found: str) -> None:
        super().__init__(f"the log is not the one that was signed: signed {signed}; found {found}")
        self.signed = signed
        self.found = found


class SignerOvertaken(SigningRefused):
    """Another signer began after this one: the later one counts (K1)."""

    code = "signer_overtaken"


class InvalidProof(LedgerError):
    """A proof or a signed note does not show what it should (K1, K2)."""

    code = "invalid_proof"


class Forked(InvalidProof):
    """Two checkpoints of one log of which at most one can be true (K3, K4): both sides, as signed notes."""

    code = "forked"

    def __init__(self, message: str, sides: tuple[str, str]) -> None:
        super().__init__(message)
        self.sides = sides


class BadTimestamp(InvalidProof):
    """A time stamp is not one of this checkpoint by an authority that is trusted (K3)."""

    code = "bad_timestamp"


class BadSignature(InvalidProof):
    """A signature names a known key and was not made by it (K2)."""

    code = "bad_signature"

    def __init__(self, name: str, key_id: bytes) -> None:
        super().__init__(f"the signature of {name}, key {key_id.hex()}, does not hold")
        self.name = name
        self.key_id = key_id


class NotSigned(InvalidProof):
    """No known key has signed the note (K2). ``names`` are those of the known keys."""

    code = "not_signed"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"no known key has signed this; known are those of {', '.join(names)}")
        self.names = tuple(names)


class DamagedLog(LedgerError):
    """What is stored is not what was sealed. ``index`` names the first place found."""

    code = "damaged_log"

    def __init__(self, message: str, *, index: int | None = None) -> None:
        super().__init__(f"index {index}: {message}" if index is not None else message)
        self.index = index


class UnknownEvent(DamagedLog):
    """An event name or schema version that this software does not know (A10, L5)."""

    code = "unknown_event"


class MalformedEvent(DamagedLog):
    """A stored payload does not have the shape its name and schema promise."""

    code = "malformed_event"


class DamagedOriginal(DamagedLog):
    """A kept message or tool result is missing, or is not what was kept (T14, T15)."""

    code = "damaged_original"


class DamagedReadModel(DamagedLog):
    """A row of the read models, or a table of them, does not hold what belongs there: rebuild them (H9).

    ``from_pair`` and ``identity`` say of which summary the row is, as far as that can still be told.
    """

    code = "damaged_read_model"

    def __init__(
        self, message: str, *, from_pair: int | None = None, identity: str | None = None
    ) -> None:
        super().__init__(message)
        self.from_pair = from_pair
        self.identity = identity
