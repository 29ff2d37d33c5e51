"""Check an audit bundle of a Compaction Ledger: offline, and without any other part of that software.

    python bundle_verifier.py BUNDLE --key VERIFIER_KEY [--witness VERIFIER_KEY] [--json]

This one file is the whole verifier. It needs Python 3.11 and the package ``cryptography`` (for Ed25519 and
AES-GCM), and it is meant to be read before it is trusted. The format is described in
``docs/reference/audit-bundle.md``. What is done, in the order of the file below:

1. Archive: the ZIP has exactly one form. No compression, fixed members in a fixed order, no stray byte.
2. Text: JSON and base64 have exactly one form as well.
3. Notes: the checkpoint is signed by the key that the auditor brought, and by the witnesses that he named.
4. Tree: RFC 6962 hashes, inclusion and consistency proofs.
5. Events: envelope, payload, opening, order in the stream, erasure.
6. Bundle: all of it together, and what was not proved.
7. Command: what is printed.

Exit codes: 0 proved; 1 not proved; 2 wrong usage, or the file cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORMAT = "compaction-ledger/audit-bundle"
VERSION = 1

MEBIBYTE = 1 << 20
MAX_WHOLE = 4 * MEBIBYTE  # a member that is read at once
MAX_LINE = 16 * MEBIBYTE
MAX_NOTE = MEBIBYTE
MAX_CHECKPOINTS = 5_000
MAX_SIGNATURES = 16
MAX_SIZE = 10**15


class BundleError(Exception):
    """The bundle does not prove what it says. ``place`` is the member, and the line or index in it."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place
        self.message = message


def refuse(place: str, message: str) -> NoReturn:
    """Raise :class:`BundleError`."""
    raise BundleError(place, message)


# --- 1. Archive -----------------------------------------------------------------------------------------
# A ZIP file says everything twice: before each member, and in the directory at its end. Readers differ in
# which they believe, so here there is one form only. The expected names are known beforehand; what stands
# before each member is compared to the byte, and so is the whole directory at the end. Nothing is
# compressed (most of it is encrypted, and would not become smaller), so a bundle cannot be larger than it
# looks, and nothing is ever written to the disk.

NOTHING = 0xFFFFFFFF  # ZIP64: the number stands in the extra field
NO_TIME, FIRST_DAY = 0, 33  # 1980-01-01


def local_header(name: bytes, crc: int, size: int) -> bytes:
    """What stands before a member."""
    sizes = struct.pack("<2H2Q", 1, 16, size, size)
    numbers = (45, 0, 0, NO_TIME, FIRST_DAY, crc, NOTHING, NOTHING, len(name), len(sizes))
    return struct.pack("<4s5H3L2H", b"PK\3\4", *numbers) + name + sizes


def directory_entry(name: bytes, crc: int, size: int, offset: int) -> bytes:
    """What stands in the directory for a member."""
    sizes = struct.pack("<2H3Q", 1, 24, size, size, offset)
    numbers = (45, 45, 0, 0, NO_TIME, FIRST_DAY, crc, NOTHING, NOTHING, len(name), len(sizes))
    return struct.pack("<4s6H3L5H2L", b"PK\1\2", *numbers, 0, 0, 0, 0, NOTHING) + name + sizes


def directory_end(count: int, length: int, offset: int) -> bytes:
    """What stands behind the directory."""
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, offset)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, offset + length, 1)
    nothing = (0, 0, 0xFFFF, 0xFFFF, NOTHING, NOTHING, 0)
    return record + locator + struct.pack("<4s4H2LH", b"PK\5\6", *nothing)


class Archive:
    """Reads a bundle's members one after the other, each once, and every byte of the file."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.length = file.seek(0, 2)
        self.position = file.seek(0)
        self.digest = hashlib.sha256()
        self.directory: list[bytes] = []

    def read(self, count: int, place: str) -> bytes:
        """The next ``count`` bytes. What the file does not hold is refused before it is read."""
        if count > self.length - self.position:
            refuse(place, "the file ends too early")
        data = self.file.read(count)
        if len(data) != count:
            refuse(place, "the file changed while it was read")
        self.position += count
        self.digest.update(data)
        return data

    def chunks(self, name: str, most: int | None = None) -> Iterator[bytes]:
        """The next member, which must be ``name``, in pieces. It counts once it was read to its end."""
        raw, offset = name.encode("ascii"), self.position
        header = self.read(len(local_header(raw, 0, 0)), name)
        (crc,), (size,) = struct.unpack("<L", header[14:18]), struct.unpack("<Q", header[-8:])
        if header != local_header(raw, crc, size):
            refuse(name, "not here: another name, a compressed member, or another form of ZIP")
        if most is not None and size > most:
            refuse(name, f"{size} bytes, at most {most} are allowed")
        found, left = 0, size
        while left:
            data = self.read(min(left, MEBIBYTE), name)
            found, left = zlib.crc32(data, found), left - len(data)
            yield data
        if found != crc:
            refuse(name, "the checksum of the ZIP is wrong")
        self.directory.append(directory_entry(raw, crc, size, offset))

    def whole(self, name: str, most: int = MAX_WHOLE) -> bytes:
        """The next member at once."""
        return b"".join(self.chunks(name, most))

    def lines(self, name: str) -> Iterator[tuple[str, bytes]]:
        """The lines of the next member, each with its place and without its end."""
        number, rest = 0, b""
        for data in self.chunks(name):
            *ready, rest = (rest + data).split(b"\n")
            for line in ready:
                number += 1
                yield f"{name}, line {number}", line
            if len(rest) > MAX_LINE:
                refuse(f"{name}, line {number + 1}", f"longer than {MAX_LINE} bytes")
        if rest:
            refuse(f"{name}, line {number + 1}", "the last line has no end")

    def finish(self) -> str:
        """Check what stands behind the last member, to the last byte. The SHA-256 of the file."""
        entries, offset = b"".join(self.directory), self.position
        expected = entries + directory_end(len(self.directory), len(entries), offset)
        if self.length - offset != len(expected):
            refuse("the ZIP directory", "there are other members than expected, or stray bytes")
        if self.read(len(expected), "the ZIP directory") != expected:
            refuse("the ZIP directory", "it does not tell of the members as they are")
        return self.digest.hexdigest()


# --- 2. Text --------------------------------------------------------------------------------------------
# JSON is RFC 8785: keys in order, no blanks. What was read is written again and must give the same bytes,
# so a key that stands twice, a fraction, NaN or another spelling is refused.


def parse_json(place: str, data: bytes, parse_float: Callable[[str], Any] = float) -> Any:
    """The JSON in ``data``, in whatever form; no key twice, no NaN."""
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_no_key_twice,
            parse_constant=_not_here,
            parse_float=parse_float,
        )
    except (ValueError, RecursionError) as error:
        raise BundleError(place, f"not JSON: {error}") from error


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _not_here(number: str) -> NoReturn:
    raise ValueError(f"{number} is no number here")


def canonical(place: str, data: bytes, *names: str) -> list[Any]:
    """The members of the object in ``data``, which has exactly these, in canonical form."""
    value = parse_json(place, data, _not_here)
    try:
        again = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        is_canonical = again.encode("utf-8") == data
    except (ValueError, RecursionError) as error:
        raise BundleError(place, f"not canonical JSON: {error}") from error
    if not is_canonical:
        refuse(place, "not in the one form that is allowed (RFC 8785)")
    return members_of(place, value, *names)


def members_of(place: str, value: Any, *names: str) -> list[Any]:
    """The members of an object that has exactly these."""
    found = as_object(value)
    if found is None or set(found) != set(names):
        refuse(place, f"not an object with exactly {', '.join(names)}")
    return [found[name] for name in names]


def as_object(value: Any) -> dict[str, Any] | None:
    """The value, if it is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> Sequence[Any] | None:
    """The value, if it is a list."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else None


def is_size(value: Any, below: int = MAX_SIZE) -> bool:
    """Whether a value is an integer from 0, and no truth value (which Python counts as one)."""
    return type(value) is int and 0 <= value < below


def is_id(value: Any) -> bool:
    """Whether a value is 32 hexadecimal digits, in lower case."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def unbase64(place: str, text: Any, length: int | None = None) -> bytes:
    """Bytes from base64 with the standard alphabet and padding (RFC 4648 section 4), in its one form."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except ValueError:
        data = None
    if data is None or base64.b64encode(data).decode() != text:
        refuse(place, "not base64 in its one form")
    if length is not None and len(data) != length:
        refuse(place, f"{len(data)} bytes instead of {length}")
    return data


def hashes(place: str, value: Any) -> list[bytes]:
    """A proof: a list of hashes."""
    steps = as_list(value)
    if steps is None or len(steps) > 64:
        refuse(place, "not a proof")
    return [unbase64(place, step, 32) for step in steps]


# --- 3. Notes -------------------------------------------------------------------------------------------
# C2SP signed-note, tlog-checkpoint and tlog-cosignature (https://c2sp.org).

LOG_KEY, WITNESS_KEY = 1, 4  # types of keys: Ed25519 of a note, and of a cosignature/v1


class Key(NamedTuple):
    """A verifier key: ``name+id+base64(type || public key)``."""

    name: str
    id: bytes
    kind: int
    public: bytes
    text: str


def parse_key(text: str, kind: int) -> Key:
    """The verifier key in ``text``, which must be of this type."""
    name, id_hex, encoded = [*text.split("+", 2), "", ""][:3]
    place = f"verifier key of {name!r}"
    data = unbase64(place, encoded)
    made = hashlib.sha256(name.encode("utf-8", "replace") + b"\n" + data).digest()[:4]
    if not name or re.search(r"\s", name) or len(data) != 33 or made.hex() != id_hex:
        refuse(place, "malformed, or its id is not the hash of name and key")
    if data[0] != kind:
        refuse(place, f"a key of type {data[0]}, where one of type {kind} is needed")
    return Key(name, made, kind, data[1:], text)


class Checkpoint(NamedTuple):
    """A log's size and root, and who signed them. A witness says when, in seconds since the epoch."""

    origin: str
    size: int
    root: bytes
    signers: tuple[Key, ...]
    witnesses: tuple[tuple[Key, int], ...]


SIGNATURE_LINE = re.compile("— ([^\\s+]+) ([A-Za-z0-9+/]+={0,2})")
NOTE = re.compile(
    r"(?P<text>(?P<origin>[^\n]+)\n(?P<size>0|[1-9][0-9]{0,14})\n(?P<root>[A-Za-z0-9+/]{43}=)\n)"
    r"\n(?P<signatures>(?:[^\n]+\n)+)"
)


def open_checkpoint(
    place: str, data: bytes, keys: Sequence[Key], witnesses: Sequence[Key]
) -> Checkpoint:
    """A checkpoint that at least one of the log's ``keys`` signed, and every one of the ``witnesses``."""
    note = NOTE.fullmatch(data.decode("utf-8", "replace"))
    if note is None or re.search(r"[\0-\x09\x0b-\x1f\x7f\ufffd]", note[0]):
        refuse(place, "not a signed checkpoint, as the ledger writes it")
    known = {(key.name, key.id): key for key in (*keys, *witnesses)}
    signed = check_signatures(place, note["text"].encode(), note["signatures"], known)
    signers = tuple(key for key in signed if key.kind == LOG_KEY and key.name == note["origin"])
    if not signers:
        refuse(place, f"not signed by any given key of {note['origin']}")
    for key in witnesses:
        if key not in signed:
            refuse(place, f"not cosigned by the witness {key.name}")
    root = unbase64(place, note["root"], 32)
    witnessed = tuple((key, signed[key]) for key in witnesses)
    return Checkpoint(note["origin"], int(note["size"]), root, signers, witnessed)


def check_signatures(
    place: str, text: bytes, signatures: str, known: dict[tuple[str, bytes], Key]
) -> dict[Key, int]:
    """The known keys that signed, and when each says it was: seconds since the epoch, or 0.

    Lines of keys that are not known are passed over. A line of a known key that does not hold is refused.
    """
    lines, signed = signatures[:-1].split("\n"), dict[Key, int]()
    if len(lines) > MAX_SIGNATURES:
        refuse(place, f"{len(lines)} signatures, at most {MAX_SIGNATURES} are allowed")
    for line in lines:
        match = SIGNATURE_LINE.fullmatch(line)
        signature = unbase64(place, match[2]) if match else b""
        if match is None or len(signature) < 5:
            refuse(place, "a signature line is malformed")
        key = known.get((match[1], signature[:4]))
        if key is not None:
            if key in signed:
                refuse(place, f"two signatures of {key.name}")
            signed[key] = check_signature(place, key, text, signature[4:])
    return signed


def check_signature(place: str, key: Key, text: bytes, signature: bytes) -> int:
    """Check one signature. The time that a witness states in it; of the log's own, 0."""
    time = 0
    if key.kind == WITNESS_KEY:
        time, signature = int.from_bytes(signature[:8], "big"), signature[8:]
        text = b"cosignature/v1\ntime %d\n" % time + text
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature, text)
    except (InvalidSignature, ValueError) as error:
        raise BundleError(place, f"the signature of {key.name} does not hold") from error
    return time


# --- 4. Tree --------------------------------------------------------------------------------------------
# RFC 6962 section 2.1: a leaf is SHA-256(0x00 || envelope), a node SHA-256(0x01 || left || right).


def leaf_hash(envelope: bytes) -> bytes:
    """The hash of a leaf."""
    return hashlib.sha256(b"\0" + envelope).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a node."""
    return hashlib.sha256(b"\1" + left + right).digest()


class Tree:
    """A tree that grows by one leaf at a time: the roots of its full subtrees, the largest first."""

    def __init__(self) -> None:
        self.size = 0
        self.peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Append a leaf."""
        node, size = leaf, self.size
        while size & 1:
            node, size = node_hash(self.peaks.pop(), node), size >> 1
        self.peaks.append(node)
        self.size += 1

    def root(self) -> bytes:
        """The root of the tree as it is now."""
        if not self.peaks:
            return hashlib.sha256().digest()
        node = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            node = node_hash(peak, node)
        return node


def climb(
    position: int, last: int, first: bytes, steps: Sequence[bytes]
) -> tuple[bytes, bytes] | None:
    """From a node up to the root, as RFC 9162 sections 2.1.3.2 and 2.1.4.2 do it.

    The first root takes in only what stands to the left: the tree that ends with this node. The second is
    that of the whole tree. ``None`` where the proof is too short or too long.
    """
    old = new = first
    for step in steps:
        if last == 0:
            return None
        if position & 1 or position == last:
            old, new = node_hash(step, old), node_hash(step, new)
            while position and not position & 1:
                position, last = position >> 1, last >> 1
        else:
            new = node_hash(new, step)
        position, last = position >> 1, last >> 1
    return (old, new) if last == 0 else None


def is_included(leaf: bytes, index: int, tree: Checkpoint, proof: Sequence[bytes]) -> bool:
    """Whether the tree holds ``leaf`` at ``index``."""
    roots = climb(index, tree.size - 1, leaf, proof) if index < tree.size else None
    return roots is not None and roots[1] == tree.root


def is_consistent(old: Checkpoint, new: Checkpoint, proof: Sequence[bytes]) -> bool:
    """Whether the smaller tree is a prefix of the larger one."""
    if old.size == 0:
        return not proof and old.root == Tree().root()
    position, last = old.size - 1, new.size - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    # A tree whose size is a power of two is itself the first step.
    steps = [old.root, *proof] if old.size & (old.size - 1) == 0 else list(proof)
    return bool(steps) and climb(position, last, steps[0], steps[1:]) == (old.root, new.root)


# --- 5. Events ------------------------------------------------------------------------------------------

ERASURE_EVENTS = ("ErasureRequested", "ErasureCompleted")
ENVELOPE = re.compile(
    r'\{"event":"(?P<event>[A-Za-z0-9_.-]{1,64})","format":1,"key":"(?P<key>|[0-9a-f]{32})",'
    r'"origin":"(?P<origin>[A-Za-z0-9_.:/-]{1,256})","payload":"(?P<payload>[0-9a-f]{64})",'
    r'"previous":"(?P<previous>|[0-9a-f]{64})","recorded":(?P<recorded>0|[1-9][0-9]{0,15}),'
    r'"schema":(?P<schema>0|[1-9][0-9]{0,5}),"stream":"(?P<stream>[0-9a-f]{32})",'
    r'"subject":"(?P<subject>|[0-9a-f]{32})","version":(?P<version>[1-9][0-9]{0,15})\}'
)
Envelope = dict[str, str]
"""What is sealed of an event, by the names above; hashes, ids and keys in hexadecimal."""


def parse_envelope(place: str, data: bytes, origin: str) -> Envelope:
    """The envelope in ``data``, of this log, in its one form."""
    match = ENVELOPE.fullmatch(data.decode("latin-1"))
    if match is None:
        refuse(place, "not an envelope in the one form that is allowed")
    if match["origin"] != origin:
        refuse(place, f"sealed for log {match['origin']}, the checkpoint is of {origin}")
    return match.groupdict()


class Event(NamedTuple):
    """An event of the bundle, as its line says it. ``place`` is its index in the log."""

    place: int
    envelope: bytes
    payload: bytes
    opening: bytes | None
    proof: list[bytes] | None


def parse_event(place: str, line: bytes) -> Event:
    """One line of ``events.jsonl``."""
    names = ("envelope", "index", "opening", "payload", "proof")
    envelope, index, opening, payload, proof = canonical(place, line, *names)
    if not is_size(index):
        refuse(place, "no index")
    return Event(
        index,
        unbase64(place, envelope),
        unbase64(place, payload),
        None if opening is None else unbase64(place, opening, 32),
        None if proof is None else hashes(place, proof),
    )


def open_payload(place: str, envelope: Envelope, stored: bytes, opening: bytes) -> bytes:
    """The text of an encrypted payload, with the key of this one event.

    Stored is ``0x01 || key id (16) || nonce (12) || commitment (32) || ciphertext and tag``. The commitment
    is a hash of the event's key: there is no second key that gives another text.
    """
    commitment = hashlib.sha256(b"compaction-ledger/commitment/1\0" + opening).digest()
    if commitment != stored[29:61]:
        refuse(place, "the opening is not the key that was committed to")
    identity = (
        '{{"event":"{event}","format":1,"key":"{key}","schema":{schema},'
        '"stream":"{stream}","version":{version}}}'
    ).format_map(envelope)
    try:
        return AESGCM(opening).decrypt(stored[17:29], stored[61:], identity.encode())
    except InvalidTag as error:
        raise BundleError(place, "the payload cannot be decrypted as this event's") from error


class Streams:
    """Whether each stream goes on where it was: versions 1, 2, 3 ..., each sealed behind the one before."""

    def __init__(self) -> None:
        self.last: dict[str, tuple[int, bytes, str]] = {}

    def follow(self, place: str, envelope: Envelope, leaf: bytes) -> None:
        """Check one more event, in the order of the log."""
        stream, subject = envelope["stream"], envelope["subject"]
        version, previous, before = self.last.get(stream, (0, b"", subject))
        if int(envelope["version"]) != version + 1:
            refuse(place, f"version {envelope['version']} follows {version} in stream {stream}")
        if envelope["previous"] != previous.hex():
            refuse(place, f"not sealed behind the event before it in stream {stream}")
        if subject != before:
            refuse(place, f"another subject than before in stream {stream}")
        self.last[stream] = (version + 1, leaf, subject)


class Payloads:
    """What payloads say. Which were erased is known at the end only: the log records it afterwards."""

    def __init__(self, *, has_openings: bool) -> None:
        self.has_openings = has_openings
        self.opened = self.plain = self.erased = self.sealed = 0
        self.readable: dict[tuple[str, str], int] = {}  # subject and key: the last event
        self.unreadable: dict[tuple[str, str], list[int]] = {}  # subject and key: every event
        self.names: dict[str, tuple[str, str]] = {}  # subject: scope and conversation
        self.named: set[str] = set()  # subjects that an event names
        self.erasures: dict[str, set[str]] = {}  # subject: keys

    def check(self, place: str, event: Event, envelope: Envelope) -> None:
        """Check what is stored for an event, and read it if it can be read."""
        key, stored, whose = envelope["key"], event.payload, (envelope["subject"], envelope["key"])
        # Else it was erased: what was stored before encryption was on is blanked.
        if key or stored:
            if hashlib.sha256(stored).hexdigest() != envelope["payload"]:
                refuse(place, "the payload is not the one that was sealed")
            if key and (len(stored) < 77 or stored[0] != 1 or stored[1:17].hex() != key):
                refuse(place, "not encrypted in the known form, with the key that is sealed")
        if event.opening is not None and (not key or not self.has_openings):
            refuse(place, "an opening where there is nothing to open, or where none was announced")
        if event.opening is not None:
            self.opened += 1
            stored = open_payload(place, envelope, stored, event.opening)
        elif key or not stored:
            self.unreadable.setdefault(whose, []).append(event.place)
            return
        else:
            self.plain += 1
        self._read(place, envelope, parse_json(place, stored))
        if envelope["event"] not in ERASURE_EVENTS:
            self.readable[whose] = event.place

    def _read(self, place: str, envelope: Envelope, value: Any) -> None:
        """A payload is a fact of the conversation that its subject stands for, or an erasure."""
        subject, fact = envelope["subject"], as_object(value)
        if fact is None:
            refuse(place, "the payload is no JSON object")
        for name in conversations_in(fact) if subject else ():
            if self.names.setdefault(subject, name) != name:
                refuse(place, f"a fact of conversation {name[1]!r} in scope {name[0]!r}")
            self.named.add(subject)
        if envelope["event"] in ERASURE_EVENTS:
            keys = as_list(fact.get("keys"))
            if fact.get("subject") != subject or keys is None or not all(map(is_id, keys)):
                refuse(place, "not an erasure of the subject that the envelope names")
            self.erasures.setdefault(subject, set()).update(keys)

    def finish(self) -> None:
        """What cannot be read was erased, or was not to be opened; what was erased cannot be read."""
        for (subject, key), indices in self.unreadable.items():
            if subject in self.erasures and (not key or key in self.erasures[subject]):
                self.erased += len(indices)
            elif key and not self.has_openings:
                self.sealed += len(indices)
            else:
                refuse(f"event {indices[0]}", "it cannot be read, and no erasure of it is here")
        for (subject, key), index in self.readable.items():
            if subject in self.erasures and (not key or key in self.erasures[subject]):
                refuse(f"event {index}", "it was erased, and it can be read")


def conversations_in(fact: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The conversations that a fact names: itself, in its job, in its window or in its job's window."""
    job = as_object(fact.get("job")) or {}
    for holder in (fact, job, as_object(fact.get("window")), as_object(job.get("window"))):
        scope, conversation = (holder or {}).get("scope"), (holder or {}).get("conversation")
        if isinstance(scope, str) and isinstance(conversation, str):
            yield scope, conversation


# --- 6. Bundle ------------------------------------------------------------------------------------------


class Manifest(NamedTuple):
    """What the bundle says that it holds. Nothing of it is believed: it tells what must be there."""

    kind: Any
    origin: Any
    size: Any
    checkpoints: Any
    events: Any
    openings: Any
    envelopes: Any
    subject: Any
    conversation: Any


def parse_manifest(place: str, data: bytes) -> Manifest:
    """The manifest. Another format or version is refused."""
    bundle, version, *rest = canonical(place, data, "bundle", "version", *Manifest._fields)
    if bundle != FORMAT or version != VERSION or type(version) is not int:
        refuse(place, f"not version {VERSION} of {FORMAT}")
    found, sizes = Manifest(*rest), as_list(Manifest(*rest).checkpoints)
    if sizes is None or len(sizes) > MAX_CHECKPOINTS:
        refuse(place, f"not a list of at most {MAX_CHECKPOINTS} older checkpoints")
    if found.conversation is not None:
        for name in members_of(place, found.conversation, "scope", "id"):
            if not isinstance(name, str):
                refuse(place, "the conversation has no name")
    of_log = found.subject is None and found.conversation is None and found.envelopes is False
    right = (
        isinstance(found.origin, str)
        and is_size(found.size)
        and is_size(found.events, found.size + 1)
        and all(is_size(size, found.size) for size in sizes)
        and sizes == sorted(set(sizes))
        and isinstance(found.openings, bool)
        and isinstance(found.envelopes, bool)
        and (of_log if found.kind == "log" else is_id(found.subject))
        and found.kind in ("log", "conversation")
    )
    if not right:
        refuse(place, "its members contradict each other, or are not what belongs there")
    return found


class Bundle:
    """Checks one bundle, from its first byte to its last. Memory grows with the number of streams."""

    def __init__(self, file: BinaryIO, keys: Sequence[Key], witnesses: Sequence[Key]) -> None:
        read = self.archive = Archive(file)
        self.keys = keys
        self.streams = Streams()
        self.tree = Tree()  # over every envelope, if all are there
        self.roots: dict[int, bytes] = {}  # of this tree, at the size of each checkpoint
        self.indices: set[int] = set()
        self.manifest = parse_manifest("manifest.json", read.whole("manifest.json"))
        self.payloads = Payloads(has_openings=self.manifest.openings)
        if self.manifest.subject is not None and self.manifest.conversation is not None:
            named = self.manifest.conversation
            self.payloads.names[self.manifest.subject] = (named["scope"], named["id"])
        # For people to read: nothing in these two is proved.
        canonical("keys.json", read.whole("keys.json"), "log", "witnesses")
        canonical("policy.json", read.whole("policy.json"), "prompts", "window")
        self.checkpoint = self._checkpoint("checkpoint", self.manifest.size, witnesses)
        sizes = self.manifest.checkpoints
        self._checkpoints([self._checkpoint(f"checkpoints/{size}", size) for size in sizes])
        self.sha256 = read.finish()

    def _checkpoint(self, place: str, size: int, witnesses: Sequence[Key] = ()) -> Checkpoint:
        found = open_checkpoint(place, self.archive.whole(place, MAX_NOTE), self.keys, witnesses)
        if (found.origin, found.size) != (self.manifest.origin, size):
            refuse(place, "of another log or another size than the manifest says")
        return found

    def _checkpoints(self, older: list[Checkpoint]) -> None:
        """Check the log up to each checkpoint."""
        self._consistency(older)
        self._events()
        if self.manifest.envelopes:
            self._envelopes()
        self.is_complete = self.manifest.kind == "log" or self.manifest.envelopes
        self.roots[self.tree.size] = self.tree.root()
        for one in (*older, self.checkpoint) if self.is_complete else ():
            if self.roots.get(one.size) != one.root:
                refuse(f"checkpoint of size {one.size}", "the envelopes give another root")
        self.payloads.finish()

    def _consistency(self, older: list[Checkpoint]) -> None:
        """Each checkpoint is a prefix of the next, and the last of them of the bundle's checkpoint."""
        name, trees, number = "consistency.jsonl", [*older, self.checkpoint], 0
        for place, line in self.archive.lines(name):
            if number == len(older):
                refuse(place, f"a proof more than the {len(older)} older checkpoints need")
            old, new, number = trees[number], trees[number + 1], number + 1
            first, second, proof = canonical(place, line, "from", "to", "proof")
            if (first, second) != (old.size, new.size):
                refuse(place, f"not the proof from {old.size} to {new.size}")
            if not is_consistent(old, new, hashes(place, proof)):
                refuse(place, f"the log of size {old.size} is not a prefix of that of {new.size}")
        if number != len(older):
            refuse(name, f"{number} proofs for {len(older)} older checkpoints")

    def _events(self) -> None:
        number, expected, of_log = 0, 0, self.manifest.kind == "log"
        for line_place, line in self.archive.lines("events.jsonl"):
            number += 1
            event = parse_event(line_place, line)
            place = f"event {event.place}"
            if event.place < expected or (of_log and event.place != expected):
                refuse(
                    place, f"out of order: {expected} was expected{'' if of_log else ' or more'}"
                )
            expected = event.place + 1
            envelope = parse_envelope(place, event.envelope, self.manifest.origin)
            leaf = leaf_hash(event.envelope)
            self._place_in_log(place, event, envelope, leaf)
            self.streams.follow(place, envelope, leaf)
            self.payloads.check(place, event, envelope)
        if number != self.manifest.events:
            refuse("events.jsonl", f"{number} events, the manifest says {self.manifest.events}")

    def _place_in_log(self, place: str, event: Event, envelope: Envelope, leaf: bytes) -> None:
        """The event stands at its index of the signed log."""
        if self.manifest.kind == "log":
            if event.proof is not None:
                refuse(place, "an inclusion proof, where all events are there")
            self._grow(leaf)
            return
        if envelope["subject"] != self.manifest.subject:
            refuse(place, "an event of another conversation")
        if event.proof is None or not is_included(leaf, event.place, self.checkpoint, event.proof):
            refuse(place, "no proof leads from it to the root of the checkpoint")
        self.indices.add(event.place)

    def _grow(self, leaf: bytes) -> None:
        """One more leaf of the whole tree; its root is kept at the size of each checkpoint."""
        if self.manifest.checkpoints[len(self.roots) : len(self.roots) + 1] == [self.tree.size]:
            self.roots[self.tree.size] = self.tree.root()
        self.tree.add(leaf)

    def _envelopes(self) -> None:
        """All envelopes of the log: whether an event of this conversation was left out."""
        for line_place, line in self.archive.lines("envelopes.jsonl"):
            place = f"envelope {self.tree.size}"
            data = unbase64(line_place, canonical(line_place, line, "envelope")[0])
            envelope = parse_envelope(place, data, self.manifest.origin)
            ours = (
                envelope["subject"] == self.manifest.subject
                or envelope["stream"] in self.streams.last
            )
            if ours and self.tree.size not in self.indices:
                refuse(place, "of this conversation, and its event is not in the bundle")
            self._grow(leaf_hash(data))


def verify(path: Path, keys: Sequence[str], witnesses: Sequence[str] = ()) -> Bundle:
    """Check the bundle in a file. Raises :class:`BundleError`; ``OSError`` where it cannot be read."""
    known = [parse_key(text, LOG_KEY) for text in keys]
    named = [parse_key(text, WITNESS_KEY) for text in witnesses]
    with path.open("rb") as file:
        return Bundle(file, known, named)


# --- 7. Command -----------------------------------------------------------------------------------------


def proved(bundle: Bundle) -> Iterator[str]:
    """What a bundle that passed proves."""
    manifest, checkpoint, payloads = bundle.manifest, bundle.checkpoint, bundle.payloads
    signers = ", ".join(f"{key.name}+{key.id.hex()}" for key in checkpoint.signers)
    yield f"The log of {checkpoint.size} events is signed by {signers}."
    for key, time in checkpoint.witnesses:
        yield f"The witness {key.name} saw it at {utc(time)}, as one that had only grown."
    if manifest.checkpoints:
        sizes = ", ".join(map(str, manifest.checkpoints))
        yield f"The log only grew between the signed sizes {sizes} and {checkpoint.size}."
    yield f"{manifest.events} events stand in the log as signed, each at its index, unchanged."
    yield f"They are {len(bundle.streams.last)} streams, each without a gap from its first event on."
    readable = payloads.plain + payloads.opened
    yield f"{readable} payloads can be read, and are what was sealed ({payloads.opened} by openings)."
    if payloads.erased:
        yield f"{payloads.erased} events cannot be read any more, and the log records their erasure."
    if bundle.is_complete:
        what = "of the log" if manifest.kind == "log" else "of this conversation"
        yield f"No event {what} is left out: all {checkpoint.size} envelopes were read."
    if manifest.conversation and manifest.subject in payloads.named:
        yield f"The events themselves name {named(manifest.conversation)}."


def unproved(bundle: Bundle) -> Iterator[str]:
    """What it does not prove."""
    manifest, payloads = bundle.manifest, bundle.payloads
    if not bundle.is_complete:
        yield "That no event of this conversation is left out: for that, all envelopes are needed."
    if payloads.sealed:
        yield f"What {payloads.sealed} encrypted payloads say: they have no openings here."
    if manifest.conversation and manifest.subject not in payloads.named:
        yield f"That this is {named(manifest.conversation)}: no event that can be read names it."
    if not bundle.checkpoint.witnesses:
        yield "That others are shown the same log: for that, name a witness whom you trust."
    if payloads.erasures:
        yield "That no copy of an erased key is left: the log records only that it was destroyed."
    yield "What keys.json and policy.json say: the exporter states it, for people to read."
    yield "What came after the checkpoint, and whether what was recorded is true."


def named(conversation: Any) -> str:
    """A conversation, for people."""
    return f"conversation {conversation['id']!r} in scope {conversation['scope']!r}"


def utc(seconds: int) -> str:
    """A time, for people."""
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"
    except OverflowError:
        return f"{seconds} s since 1970"


def as_text(name: str, bundle: Bundle) -> str:
    """The report, for people."""
    lines = [f"PROVED: {name}", f"SHA-256 of the file: {bundle.sha256}", "", "Proved:"]
    lines += [f"  - {sentence}" for sentence in proved(bundle)]
    lines += ["", "Not proved:", *(f"  - {sentence}" for sentence in unproved(bundle))]
    # Whatever a bundle says, it does not steer the terminal.
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in "\n".join(lines))


def as_document(bundle: Bundle) -> dict[str, Any]:
    """The report, for programs."""
    manifest, checkpoint, payloads = bundle.manifest, bundle.checkpoint, bundle.payloads
    witnessed = [{"key": key.text, "time": time} for key, time in checkpoint.witnesses]
    return {
        "ok": True,
        "error": None,
        "sha256": bundle.sha256,
        **manifest._asdict(),
        "root": checkpoint.root.hex(),
        "signed_by": [key.text for key in checkpoint.signers],
        "witnessed_by": witnessed,
        "streams": len(bundle.streams.last),
        **{name: getattr(payloads, name) for name in ("opened", "plain", "erased", "sealed")},
        "complete": bundle.is_complete,
        "proved": list(proved(bundle)),
        "unproved": list(unproved(bundle)),
    }


def listed(values: Sequence[str]) -> list[str]:
    """Verifier keys, as given or from the lines of a file, ``@FILE``."""
    found: list[str] = []
    for value in values:
        in_file = value.startswith("@")
        keys = Path(value[1:]).read_text("utf-8", "replace").split() if in_file else [value]
        if not keys:
            refuse("verifier keys", f"there is none in {value[1:]}")
        found += keys
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="compaction-ledger-verify-bundle",
        description="Check an audit bundle, offline. A KEY is name+id+base64, or @FILE with some.",
        epilog="Exit codes: 0 proved; 1 not proved; 2 wrong usage, or the file cannot be read.",
    )
    parser.add_argument("bundle", type=Path, help="the file")
    more = "; may be repeated"
    parser.add_argument("--key", action="append", required=True, help=f"a key of the log{more}")
    parser.add_argument("--witness", action="append", default=[], help=f"a witness's key{more}")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(words)
    try:
        bundle = verify(given.bundle, listed(given.key), listed(given.witness))
    except BundleError as error:
        if error.place.startswith("verifier key"):
            parser.error(ascii(str(error))[1:-1])
        if given.json:
            found = {"place": error.place, "message": error.message}
            sys.stdout.write(json.dumps({"ok": False, "error": found}, indent=2) + "\n")
        else:
            sys.stdout.write(f"NOT PROVED: {ascii(str(error))[1:-1]}\n")
        return 1
    except OSError as error:
        parser.error(f"{error.filename or given.bundle}: {error.strerror or error}")
    text = (
        json.dumps(as_document(bundle), indent=2)
        if given.json
        else as_text(str(given.bundle), bundle)
    )
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
