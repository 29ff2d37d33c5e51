"""Edges that only mutants had found: see docs/explanation/mutation-testing.md."""

from __future__ import annotations

import hashlib

import pytest
from scenarios import NOW, OLDER_SOURCE_JOB, claim, claimed, given, start, started

from compaction_ledger.domain.errors import AlreadyClaimed
from compaction_ledger.domain.finish import output_digest


def test_a1_an_open_claim_is_found_behind_one_on_an_older_source() -> None:
    older, open_one = claimed("c0", "w0", OLDER_SOURCE_JOB), claimed("c1", "w1")
    for history in ([older, open_one], [open_one, older]):
        given(*history).when(claim("c2", "w2")).then_refused(
            AlreadyClaimed, says={"claim_id": "c1", "holder": "w1"}
        )


def test_a5_the_shortest_lease_is_one_microsecond() -> None:
    given().when(claim(lease=1)).then(claimed(expires_at=NOW + 1))
    given(claimed()).when(start(lease=1)).then(started(expires_at=NOW + 1))


@pytest.mark.parametrize("text", ["", "净值 12.34", "\ud800"])
def test_c4_the_digest_of_a_refused_output_can_be_recomputed(text: str) -> None:
    tagged = b"compaction-ledger/output/v1\x00" + text.encode("utf-8", "surrogatepass")
    assert output_digest(text) == hashlib.sha256(tagged).hexdigest()
