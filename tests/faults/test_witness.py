"""A witness over HTTP (K3): every status, forks and rollbacks, kills, races, and clients that mean ill."""

from __future__ import annotations

import socket
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from at_once import all_at_once
from command_line import call, run
from witness_logs import HASH, LooseLog
from witnesses import RunningWitness, WitnessProcess, post, running_witness

from compaction_ledger.domain.errors import (
    Forked,
    InvalidSetting,
    NewerFormat,
    NotALedger,
    UnusableSignerKey,
    WitnessRefused,
    WitnessUnavailable,
)
from compaction_ledger.domain.proof.cosignatures import split_cosignature
from compaction_ledger.domain.proof.inclusion import WitnessRequest
from compaction_ledger.domain.proof.notes import SignedNote, check_note, parse_note
from compaction_ledger.domain.proof.text import encode_base64
from compaction_ledger.domain.proof.witnessing import MAX_REQUEST, origin_name, parse_lines
from compaction_ledger.infrastructure.proof.ed25519 import Ed25519Verifier
from compaction_ledger.infrastructure.witness.client import HttpWitness
from compaction_ledger.infrastructure.witness.server import Bounds
from compaction_ledger.infrastructure.witness.store import SQLiteWitnessStore
from compaction_ledger.usecases.cosigning import cosign
from compaction_ledger.witness_parts import open_witness

QUICK = Bounds(connections=4, request_seconds=0.6, idle_seconds=0.6)
LONG = 40


@pytest.fixture(scope="module")
def log() -> LooseLog:
    return LooseLog()


@pytest.fixture
def witness(log: LooseLog, tmp_path: Path) -> Iterator[RunningWitness]:
    with running_witness(tmp_path / "w", [log.key]) as running:
        yield running


def latest(witness: RunningWitness, log: LooseLog) -> int:
    """The size that it cosigned last."""
    note = witness.client().latest(log.origin)
    return 0 if note is None else int(parse_note(note).text.split("\n")[1])


# --- the protocol ---


def test_cosigning(witness: RunningWitness, log: LooseLog) -> None:  # K3
    for old, size in ((0, 3), (3, 3), (3, 8), (8, 13)):
        status, kind, body = post(witness.port, log.body(old, size))
        assert (status, kind) == (200, "text/plain; charset=utf-8")
        (line,) = parse_lines(body)
        note = SignedNote(parse_note(log.note(size)).text, (line,))
        check_note(note, [Ed25519Verifier.parse(witness.key)])
        assert abs(split_cosignature(line.signature)[0] - time.time()) < 10
        assert latest(witness, log) == size


def test_the_empty_log_and_what_follows_it(witness: RunningWitness, log: LooseLog) -> None:
    assert [post(witness.port, log.body(0, size))[0] for size in (0, 0, 5)] == [200, 200, 200]
    assert post(witness.port, log.body(0, 5))[0] == 409


def test_another_size_than_the_last(witness: RunningWitness, log: LooseLog) -> None:  # K3
    assert post(witness.port, log.body(2, 3)) == (409, "text/x.tlog.size", b"0\n")
    post(witness.port, log.body(0, 5))
    for old, size in ((0, 3), (0, 9), (3, 9), (4, 5), (7, 9)):
        assert post(witness.port, log.body(old, size)) == (409, "text/x.tlog.size", b"5\n")


def test_a_fork_is_refused(witness: RunningWitness, log: LooseLog) -> None:  # K3
    post(witness.port, log.body(0, 5))
    other = log.forked(4)
    status, kind, body = post(witness.port, other.body(5, 5))
    assert (status, kind.partition(";")[0]) == (409, "text/plain")
    assert b"another root" in body
    assert post(witness.port, other.body(5, 9))[0] == 422
    assert latest(witness, log) == 5
    assert parse_note(witness.client().latest(log.origin) or b"").text == (
        parse_note(log.note(5)).text
    )
    assert post(witness.port, log.forked(5).body(5, 9))[0] == 200


def test_a_rollback_is_refused(witness: RunningWitness, log: LooseLog) -> None:  # K3
    post(witness.port, log.body(0, 9))
    assert post(witness.port, log.body(0, 5))[0] == 409
    assert post(witness.port, log.body(5, 5))[0] == 409
    assert post(witness.port, WitnessRequest(9, (), log.note(5)).encode())[0] == 400
    assert latest(witness, log) == 9


def test_proofs_that_do_not_hold(witness: RunningWitness, log: LooseLog) -> None:  # K3
    assert post(witness.port, WitnessRequest(0, (HASH,), log.note(5)).encode())[0] == 422
    post(witness.port, log.body(0, 5))
    right = log.request(5, 9).hashes
    for wrong in ((), right[:-1], (*right, HASH), (HASH, *right[1:]), right[::-1], (HASH,) * 63):
        assert post(witness.port, WitnessRequest(5, wrong, log.note(9)).encode())[0] == 422
    assert post(witness.port, WitnessRequest(5, (HASH,), log.note(5)).encode())[0] == 422
    assert latest(witness, log) == 5


def test_unknown_logs_and_keys(witness: RunningWitness, log: LooseLog) -> None:  # K3
    assert post(witness.port, LooseLog("another/log").body(0, 3))[0] == 404
    stranger = LooseLog(log.origin)
    assert post(witness.port, stranger.body(0, 3))[0] == 403
    note = parse_note(log.note(3))
    both = note.and_signed(parse_note(stranger.note(3)).signatures)
    assert post(witness.port, WitnessRequest(0, (), both.encode()).encode())[0] == 200
    kept = witness.client().latest(log.origin) or b""
    assert len(parse_note(kept).signatures) == 2  # the unknown one was ignored, and not kept
    wrong = log.note(5).replace(b"\n5\n", b"\n4\n")
    assert post(witness.port, WitnessRequest(3, (), wrong).encode())[0] == 403


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body[:0],
        lambda body: b"\n" + body,
        lambda body: body.replace(b"old 0", b"old 00"),
        lambda body: body.replace(b"old 0", b"old -1"),
        lambda body: body.replace(b"old 0", b"Old 0"),
        lambda body: body.replace(b"old 0", b"old 0 "),
        lambda body: body.replace(b"old 0", b"old 0\r"),
        lambda body: body.replace(b"old 0", b"old 9223372036854775808"),
        lambda body: body.replace(b"old 0", "old ٣".encode()),
        lambda body: body.replace(b"old 0\n", b"old 0\nnot base64\n"),
        lambda body: body.replace(b"old 0\n", b"old 0\nAAAA\n"),
        lambda body: body.replace(b"old 0\n", b"old 0\n" + encode_base64(HASH).encode() + b" \n"),
        lambda body: body.replace(b"old 0\n", b"old 0\n" + (encode_base64(HASH).encode() + b"\n") * 64),
        lambda body: body.removesuffix(b"\n"),
        lambda body: body.replace(b"\n\n", b"\n", 1),
        lambda body: body.split(b"\n\n")[0] + b"\n\n",
        lambda body: body + body.split(b"\n\n")[-1] * 16,
        lambda body: body.replace(b"\n3\n", b"\n03\n"),
        lambda body: body[:-3] + b"\xff\xff\n",
        lambda body: bytes(len(body)),
    ],
)  # fmt: skip
def test_malformed_requests(
    witness: RunningWitness, log: LooseLog, change: Callable[[bytes], bytes]
) -> None:  # K2, K3
    status, kind, body = post(witness.port, change(log.body(0, 3)))
    assert (status, kind.partition(";")[0]) == (400, "text/plain")
    assert body.count(b"\n") == 1
    assert latest(witness, log) == 0


def test_other_addresses_and_methods(witness: RunningWitness, log: LooseLog) -> None:
    assert post(witness.port, log.body(0, 3), "/other")[0] == 404
    assert raw(witness.port, b"GET /add-checkpoint HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 405 ")
    assert raw(witness.port, b"GET /../etc/passwd HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404 ")
    name = origin_name(log.origin).encode()
    assert raw(witness.port, b"GET /checkpoint/" + name + b" HTTP/1.1\r\n\r\n").startswith(
        b"HTTP/1.1 404 "
    )
    assert raw(witness.port, b"PUT /add-checkpoint HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 501 ")
    assert raw(witness.port, b"nonsense\r\n\r\n")[:1] in (b"H", b"<")


# --- clients that mean ill ---


def raw(port: int, sent: bytes, seconds: float = 10) -> bytes:
    """What is answered to these bytes until the connection ends."""
    with socket.create_connection(("127.0.0.1", port), seconds) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        parts: list[bytes] = []
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Content-Length: 10000000000000", 411),
        (b"Content-Length: %d" % (MAX_REQUEST + 1), 413),
        (b"Content-Length: 999999999", 413),
        (b"Content-Length: -1", 411),
        (b"Content-Length: 5\r\nContent-Length: 6", 411),
        (b"Transfer-Encoding: chunked", 411),
        (b"X: y", 411),
    ],
)
def test_bodies_of_other_lengths(witness: RunningWitness, headers: bytes, status: int) -> None:
    answer = raw(witness.port, b"POST /add-checkpoint HTTP/1.1\r\n" + headers + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"Connection: close" in answer


def test_a_huge_body_is_not_read(witness: RunningWitness, log: LooseLog) -> None:  # K3
    body = log.body(0, 3)
    long = body + b"x" * (MAX_REQUEST - len(body))
    assert post(witness.port, long)[0] == 400
    head = b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"
    try:
        answer = raw(witness.port, head + b"x" * 9_999_999)
    except OSError:
        answer = b"HTTP/1.1 413 "  # cut off before it was all sent: that is right, too
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert latest(witness, log) == 0


def test_a_body_that_ends_too_soon(witness: RunningWitness, log: LooseLog) -> None:
    sent = b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 500\r\n\r\n" + log.body(0, 3)[:100]
    assert raw(witness.port, sent) == b""
    assert latest(witness, log) == 0


@pytest.mark.slow
def test_slow_clients_do_not_keep_others_out(log: LooseLog, tmp_path: Path) -> None:  # K3
    with running_witness(tmp_path / "w", [log.key], QUICK) as witness:
        begun = time.monotonic()
        slow = [socket.create_connection(("127.0.0.1", witness.port), LONG) for _ in range(4)]
        for number, connection in enumerate(slow):
            if number % 2:
                connection.sendall(b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 9000\r\n\r\n")
        kept_up = threading.Thread(target=_byte_by_byte, args=(slow[1],))
        kept_up.start()
        with pytest.raises(WitnessUnavailable):
            witness.client().add(log.request(0, 3))  # there is no thread for one more
        for connection in slow:
            assert connection.recv(100) == b""
            connection.close()
        kept_up.join(LONG)
        assert time.monotonic() - begun < LONG  # they would take ten times as long
        assert witness.client().add(log.request(0, 3))


def _byte_by_byte(connection: socket.socket) -> None:
    try:
        for _ in range(9_000):
            connection.sendall(b"x")
            time.sleep(0.05)
    except OSError:
        pass


def test_several_requests_on_one_connection(witness: RunningWitness, log: LooseLog) -> None:
    request = b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s"
    bodies = [log.body(0, 3), log.body(3, 5), log.body(3, 5)]
    answers = raw(witness.port, b"".join(request % (len(body), body) for body in bodies))
    assert answers.count(b"HTTP/1.1 200 ") == 2
    assert answers.count(b"HTTP/1.1 409 ") == 1


def test_two_who_submit_at_once(witness: RunningWitness, log: LooseLog) -> None:  # K3
    """Of each step one is cosigned, and in the end the larger: nothing goes back."""
    post(witness.port, log.body(0, 1))

    def submit(number: int, wait: Callable[[], object]) -> tuple[int, int]:
        body = log.body(1, number + 2)
        wait()
        return post(witness.port, body)[0], number + 2

    answers = all_at_once(8, submit)
    assert sorted(status for status, _ in answers) == [200] + [409] * 7
    (won,) = (size for status, size in answers if status == 200)
    assert latest(witness, log) == won


# --- its store and its key ---


def test_it_remembers_after_a_restart(log: LooseLog, tmp_path: Path) -> None:  # K3
    with running_witness(tmp_path / "w", [log.key]) as first:
        post(first.port, log.body(0, 5))
    with running_witness(tmp_path / "w", [log.key]) as second:
        assert second.key == first.key
        assert post(second.port, log.forked(2).body(0, 9)) == (409, "text/x.tlog.size", b"5\n")
        assert post(second.port, log.body(5, 9))[0] == 200


def test_a_store_that_cannot_be_used(
    witness: RunningWitness, log: LooseLog, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "w" / "witness.db")) as connection:
        connection.execute("DROP TABLE cosigned")
    status, _, body = post(witness.port, log.body(0, 3))
    assert (status, body) == (503, b"the store of this witness cannot be used\n")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("PRAGMA user_version = 9", NewerFormat),
        ("PRAGMA application_id = 1", NotALedger),
    ],
)
def test_a_store_of_something_else(tmp_path: Path, statement: str, error: type[Exception]) -> None:
    SQLiteWitnessStore(tmp_path / "witness.db")
    with closing(sqlite3.connect(tmp_path / "witness.db")) as connection:
        connection.execute(statement)
    with pytest.raises(error):
        SQLiteWitnessStore(tmp_path / "witness.db")


def test_the_key_is_for_nobody_else(log: LooseLog, tmp_path: Path) -> None:  # S4
    folder = tmp_path / "w"
    parts = open_witness(folder, [log.key], "witness.example/w1")
    key = folder / "witness-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "verifier-key").read_text() == f"{parts.verifier_key}\n"
    secret = key.read_text().strip().rpartition("+")[2]
    assert secret not in repr(parts)
    with pytest.raises(InvalidSetting, match=r"witness\.example/w1"):
        open_witness(folder, [log.key], "another")
    for content in ("nonsense", key.read_text().replace("w1", "w2"), "PRIVATE+KEY+a+b+c", ""):
        saved = key.read_text()
        key.write_text(content)
        with pytest.raises(UnusableSignerKey) as caught:
            open_witness(folder, [log.key])
        assert secret not in str(caught.value)
        key.write_text(saved)
    key.chmod(0o644)
    with pytest.raises(UnusableSignerKey, match="chmod 600"):
        open_witness(folder, [log.key])


@pytest.mark.parametrize("wrong", ["", "nonsense", "a+b+c"])
def test_keys_that_are_none(tmp_path: Path, wrong: str, log: LooseLog) -> None:
    with pytest.raises(InvalidSetting):
        open_witness(tmp_path / "w", [wrong])
    parts = open_witness(tmp_path / "v", [log.key])
    with pytest.raises(InvalidSetting, match="not of a log"):
        open_witness(tmp_path / "w", [str(parts.verifier_key)])


# --- a process of its own ---


@pytest.mark.slow
def test_a_witness_killed_between_store_and_answer(log: LooseLog, tmp_path: Path) -> None:  # K3
    """What was kept stays, though nobody was told; the same is then cosigned again."""
    process = WitnessProcess(tmp_path / "w", [log.key])
    client = HttpWitness.parse(process.setting)
    client.add(log.request(0, 3))
    for size in (5, 8, 13):
        body = log.body(size if size == 5 else 0, size)
        head = b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection = socket.create_connection(("127.0.0.1", int(process.url.rpartition(":")[2])))
        connection.sendall(head + body)
        process.kill()
        connection.close()
        process = WitnessProcess(tmp_path / "w", [log.key])
        client = HttpWitness.parse(process.setting)
        known = client.latest(log.origin)
        assert known is not None
        note = log.note(size)
        assert cosign(note, client, log.prove(size))
        with pytest.raises(Forked):
            cosign(log.forked(1).note(size + 1), client,
                   log.forked(1).prove(size + 1))  # fmt: skip
    assert process.stop() == 0


@pytest.mark.slow
def test_kept_before_it_is_answered(log: LooseLog, tmp_path: Path) -> None:  # K3
    """Whoever has a cosignature finds it in the store, be the witness killed at that very moment."""
    for size in (2, 3, 5):
        process = WitnessProcess(tmp_path / "w", [log.key])
        client = HttpWitness.parse(process.setting)
        signatures = cosign(log.note(size), client, log.prove(size))
        process.kill()
        store = SQLiteWitnessStore(tmp_path / "w" / "witness.db")
        assert set(signatures) <= set(parse_note(store.latest(log.origin) or b"").signatures)


@pytest.mark.slow
def test_the_commands(log: LooseLog, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    call("witness", "show", "--folder", folder).failed("invalid_setting")
    call(
        "witness", "serve", "--folder", folder, "--log-key", log.key, "--listen", "nowhere"
    ).failed("usage")
    process = WitnessProcess(folder, [log.key])
    shown = call("witness", "show", "--folder", folder).fine().out
    assert "nothing yet" in shown
    HttpWitness.parse(process.setting).add(log.request(0, 3))
    document = call("witness", "show", "--folder", folder, "--json").fine().json
    assert [(one["origin"], one["size"]) for one in document["logs"]] == [(log.origin, 3)]
    assert f"KEY {process.key}" in call("witness", "show", "--folder", folder).fine().out
    taken = run("witness", "serve", "--folder", folder, "--log-key", log.key,
                "--listen", process.url.removeprefix("http://"))  # fmt: skip
    assert "cannot listen" in taken.failed("invalid_setting")
    assert process.stop() == 0


# --- the client ---


def test_the_client_finds_the_size(witness: RunningWitness, log: LooseLog) -> None:  # K3
    client = witness.client()
    for size in (3, 3, 9, 12):
        (signature,) = cosign(log.note(size), client, log.prove(size))
        assert signature.name == witness.name
    other = log.forked(3)
    with pytest.raises(Forked) as caught:
        cosign(other.note(12), client, other.prove(12))
    assert [parse_note(side.encode()).text.split("\n")[1] for side in caught.value.sides] == [
        "12",
        "12",
    ]
    with pytest.raises(WitnessRefused) as refused:
        cosign(log.note(5), client, log.prove(5))
    assert (refused.value.reason, refused.value.size) == ("stale", 12)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "127.0.0.1:80",
        "http://",
        "http://user:secret@127.0.0.1/",
        "http://127.0.0.1/?token=secret",
        "http://127.0.0.1/#secret",
        "http://127.0.0.1:port/",
        "http://127.0.0.1:99999/",
        "http://[secret",
        "http://127.0.0.1/se\ncret",
    ],
)
def test_urls_that_are_refused(witness: RunningWitness, url: str) -> None:  # S4
    with pytest.raises(InvalidSetting) as caught:
        HttpWitness(url, [Ed25519Verifier.parse(witness.key)])
    assert "secret" not in str(caught.value)


def test_a_key_that_is_not_a_witness(log: LooseLog) -> None:
    for key in (log.key, "nonsense", ""):
        with pytest.raises(InvalidSetting):
            HttpWitness.parse(f"http://127.0.0.1:1 {key}")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnonsense\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000,
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 409 Conflict\r\nContent-Type: text/x.tlog.size\r\nContent-Length: 3\r\n\r\n07\n",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 409 Conflict\r\nContent-Type: text/x.tlog.size\r\nContent-Length: 2\r\n\r\n0\n",
    ],
)
def test_answers_that_are_none(witness: RunningWitness, log: LooseLog, answer: bytes) -> None:  # K3
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        thread = threading.Thread(target=_answer_all, args=(server, answer), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        client = HttpWitness(url, [Ed25519Verifier.parse(witness.key)], 5)
        with pytest.raises(WitnessUnavailable) as caught:
            cosign(log.note(3), client, lambda _: ())
        assert url in str(caught.value) or witness.name in str(caught.value)
        thread.join()


def _answer_all(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65_536)
        try:
            connection.sendall(answer)
        except OSError:
            return


def test_a_cosignature_of_another_checkpoint(
    witness: RunningWitness, log: LooseLog, tmp_path: Path
) -> None:  # K3
    _, _, lines = post(witness.port, log.body(0, 3))
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(lines), lines)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        thread = threading.Thread(target=_answer_all, args=(server, answer), daemon=True)
        thread.start()
        client = HttpWitness(
            f"http://127.0.0.1:{server.getsockname()[1]}", [Ed25519Verifier.parse(witness.key)]
        )
        with pytest.raises(WitnessUnavailable, match="no cosignature"):
            client.add(log.request(0, 4))
        thread.join()
