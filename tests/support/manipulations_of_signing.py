"""What is done to a ledger before it is signed again, and what the signer answers (K1)."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from forgeries import put_resealed, with_forged_text
from manipulated import GONE_CLAIM, LAST, SIGNED, SUMMARY
from manipulation_rows import Change
from manipulations import Victim
from manipulations_beside import checkpoint_changed, checkpoint_of_another, signer_keys_deleted
from manipulations_of_hashes import restored_and_continued, restored_with_keys
from manipulations_of_rows import envelope, middle_deleted


@dataclass(frozen=True)
class Signing:
    """One row: ``answer`` is the code of the error that it refuses with; without one it signs."""

    what: str
    change: Change
    answer: str | None
    note: str = ""

    @property
    def name(self) -> str:
        """How the test is named."""
        return self.change.__name__


def tail_cut_off(victim: Victim) -> None:
    victim.cut(GONE_CLAIM)


def text_rewritten(victim: Victim) -> None:
    plain = with_forged_text(victim, SUMMARY)
    put_resealed(
        victim,
        lambda rows: [one._replace(payload=plain) if one.idx == SUMMARY else one for one in rows],
    )


def late_envelope(victim: Victim) -> None:
    before = victim.rows()[LAST].envelope
    victim.edit(LAST, envelope=before.replace(b'"recorded":1', b'"recorded":2'))


def checkpoints_of_an_old_signer(victim: Victim) -> None:
    copies = victim.checkpoints / "checkpoints"
    (copies / str(SIGNED[1])).unlink()
    shutil.copy(copies / str(SIGNED[0]), victim.checkpoints / "checkpoint")


def old_signer_on_a_rewritten_log(victim: Victim) -> None:
    checkpoints_of_an_old_signer(victim)
    put_resealed(
        victim,
        lambda rows: [one for one in rows if one.idx not in range(GONE_CLAIM, GONE_CLAIM + 3)],
    )


def announcement_changed(victim: Victim) -> None:
    victim.change(f"UPDATE {victim.table('signer')} SET root = ?", bytes(32))


def kept_hashes_changed(victim: Victim) -> None:
    victim.grow("c-long", 90)
    victim.sign()
    victim.change(f"UPDATE {victim.table('tree_nodes')} SET hash = ?", bytes(32))
    victim.grow("c-more")


BOTH = "both heads are said"

SIGNINGS = [
    Signing(
        "the tail cut off behind the newest checkpoint's size, and the head set back",
        tail_cut_off,
        "smaller_tree",
        BOTH,
    ),
    Signing("a text rewritten with valid hashes", text_rewritten, "inconsistent_tree", BOTH),
    Signing(
        "an old backup restored and continued", restored_and_continued, "inconsistent_tree", BOTH
    ),
    Signing(
        "an old backup restored, with its checkpoints",
        restored_with_keys,
        None,
        "the signer cannot know; a witness refuses to cosign",
    ),
    Signing("an event deleted", middle_deleted, "damaged_log"),
    Signing(
        "an envelope changed that was signed",
        envelope,
        None,
        "the leaf is as it was signed; verification says it",
    ),
    Signing("an envelope changed that was not signed yet", late_envelope, "damaged_log"),
    Signing(
        "a second signer with an old folder of checkpoints",
        checkpoints_of_an_old_signer,
        None,
        "it goes on from all that was signed: the store tells what was announced",
    ),
    Signing(
        "a second signer with an old folder, and a log that was rewritten meanwhile",
        old_signer_on_a_rewritten_log,
        "inconsistent_tree",
        BOTH,
    ),
    Signing("what was announced, changed", announcement_changed, "inconsistent_tree"),
    Signing("the newest checkpoint changed", checkpoint_changed, "bad_signature"),
    Signing(
        "a checkpoint of another log among the copies",
        checkpoint_of_another,
        None,
        "it is no beginning of anything; verification says so",
    ),
    Signing(
        "hashes that are kept, changed",
        kept_hashes_changed,
        None,
        "they are made again from the leaves",
    ),
    Signing(
        "the signer's key deleted",
        signer_keys_deleted,
        "key_missing",
        "a new key is made on purpose only",
    ),
]
