"""The keys of one ledger: data keys by their ids, and what of them was erased (S1 to S3)."""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import RLock

from compaction_ledger.domain.erasure import Subject, WasErased
from compaction_ledger.domain.errors import DamagedLog, Erased, KeyMissing
from compaction_ledger.domain.keys import KeyEpochs, KeyProvider
from compaction_ledger.infrastructure import forking
from compaction_ledger.infrastructure.event_store.cipher import PayloadReader
from compaction_ledger.infrastructure.event_store.envelope import key_of
from compaction_ledger.infrastructure.keys import payloads
from compaction_ledger.infrastructure.keys.wrapped_keys import (
    ErasureState,
    Tombstone,
    WrappedKey,
    WrappedKeys,
)

NAME_KEY = "names"
"""The id of the key that makes names of conversations into what nobody else can make of them."""
_MARK = "payloads"
_BEGUN, _ENCRYPTED, _MIXED = "begun", "encrypted", "mixed"

_KEPT = 10_000
_MOST_SPARE = 64
_BATCH = 500


@dataclass(frozen=True, slots=True)
class _Erased:
    """What is known of erasures, as of a revision of the store."""

    revision: int
    names: dict[bytes, ErasureState]
    keys: frozenset[str]
    references: Mapping[str, ErasureState]


class KeyRing:
    """Data keys, kept in memory while they are in use, and erasures, looked up with every use.

    Threads may share one. ``provider`` is asked for when it is needed first, and so is the ``origin`` of the
    log. A log that ``is_new`` when it gets its first key, with no events and no conversation that has none,
    holds encrypted payloads only: whoever has no keys cannot put others there. A log that ``holds`` a key
    already, by its id, must find keys in the store, which are at the ``place`` of that name: none are made
    beside lost ones.
    """

    def __init__(
        self,
        provider: Callable[[], KeyProvider],
        store: WrappedKeys,
        *,
        origin: Callable[[], str] = lambda: "",
        encrypts: bool = True,
        is_new: Callable[[], bool] = lambda: False,
        holds: Callable[[], str | None] = lambda: None,
        place: str = "the keys of this ledger",
    ) -> None:
        self._make_provider = provider
        self._store = store
        self._read_origin = origin
        self._encrypts = encrypts
        self._is_new = is_new
        self._holds = holds
        self._place = place
        self._mixed = False
        self._plain_allowed = False
        self._provider: KeyProvider | None = None
        self._origin_read: str | None = None
        self._lock = RLock()
        self._secrets: OrderedDict[str, bytes] = OrderedDict()
        self._spare: deque[str] = deque()
        self._batch = 1
        self._erased = _Erased(0, {}, frozenset(), {})
        forking.watch(self)

    def __repr__(self) -> str:
        """Nothing of what it holds (S4)."""
        return f"{type(self).__name__}({type(self._store).__name__})"

    @property
    def provider(self) -> KeyProvider:
        """Who wraps the data keys. Made once, under a lock that a fork waits for."""
        if self._provider is None:
            with self._lock:
                if self._provider is None:
                    self._provider = self._make_provider()
        return self._provider

    @property
    def _origin(self) -> str:
        """Whose conversations they are: several ledgers may share a folder of keys."""
        if self._origin_read is None:
            self._origin_read = self._read_origin()
        return self._origin_read

    # --- data keys ---

    def fresh(self) -> str:
        """The id of a new data key, durably kept, that nobody uses yet; none where nothing is encrypted.

        They are made in growing batches.
        """
        if not self._encrypts:
            return ""
        with self._lock:
            if not self._spare:
                self._check_not_lost()
                made = [self._new(secrets.token_hex(16)) for _ in range(self._batch)]
                if self._batch == 1:
                    self._store.add([*made, self._mark(_BEGUN if self._is_new() else _MIXED)])
                    self._settle()
                else:
                    self._store.add(made)
                self._spare += [key.id for key in made]
                self._batch = min(2 * self._batch, _MOST_SPARE)
            return self._spare.popleft()

    def _check_not_lost(self) -> None:
        """Raise :class:`KeyMissing` where the log has keys and the store is empty."""
        if self._batch == 1 and not self._store.count() and not self._store.tombstones():
            held = self._holds()
            # Asked for once more: another may have begun just now.
            if held is not None and self._store.find(held) is None:
                raise self._missing(held)

    def secret(self, key: str) -> bytes:
        """A data key. Raises :class:`Erased`, and :class:`StoreError` kinds where it cannot be had (S3)."""
        return self.secret_unless(self._erasures(), key)

    def secret_unless(self, erased: _Erased, key: str) -> bytes:
        """A data key, by what is known of erasures. Raises as :meth:`secret`."""
        if key in erased.keys:
            raise Erased("the conversation was erased: its key is destroyed, or is about to be")
        found = self._secrets.get(key)
        return self._fetch(key) if found is None else found

    def may_be_plain(self) -> bool:
        """Whether the log may hold payloads that are not encrypted."""
        if self._mixed:
            return True
        found = self._store.find(self._mark(_MIXED).id)
        state = None if found is None else found.epoch
        # What is not encrypted only when it has events will not be: nobody asks again.
        self._mixed = state == _MIXED or (state != _ENCRYPTED and not self._is_new())
        return state != _ENCRYPTED

    def allow_plain(self) -> None:
        """See to it that the log is not taken for one that is encrypted only (S1).

        Before the first payload that is not, when its conversation is known without a key: so either the mark
        of another process is seen here, or that process sees the conversation before it settles the mark.
        """
        while not self._plain_allowed:
            found = self._store.find(self._mark(_MIXED).id)
            self._plain_allowed = found is None or found.epoch == _MIXED
            if found is not None:
                self._store.replace([(found, self._mark(_MIXED))])

    def _settle(self) -> None:
        """Say that all is encrypted, where that was begun and the log is still new."""
        found = self._store.find(self._mark(_BEGUN).id)
        if found is not None and found.epoch == _BEGUN:
            settled = self._mark(_ENCRYPTED if self._is_new() else _MIXED)
            self._store.replace([(found, settled)])

    def _mark(self, state: str) -> WrappedKey:
        """What says of this log, of those that share the store, whether all in it is encrypted."""
        return WrappedKey(f"{_MARK}/{self._origin}", state, b"")

    def _fetch(self, key: str) -> bytes:
        wrapped = self._store.find(key)
        if wrapped is None:
            raise self._missing(key)
        if not wrapped.wrapped:
            self.look()
            if key in self._erasures().keys:  # since it was looked up
                raise Erased("the conversation was erased: its key is destroyed")
            raise KeyMissing(f"the data key {key} is empty, and nothing says that it was erased")
        found = self.provider.unwrap(wrapped.epoch, wrapped.wrapped, _context(key))
        self._remember(key, found)
        return found

    def _missing(self, key: str) -> KeyMissing:
        return KeyMissing(
            f"the data key {key} is not in {self._place}: keep the folder of keys with the ledger, "
            "or name it in COMPACTION_LEDGER_KEYS"
        )

    def _new(self, key: str) -> WrappedKey:
        secret = secrets.token_bytes(payloads.KEY_BYTES)
        made = self._wrapped(key, secret)
        self._remember(key, secret)
        return made

    def _wrapped(self, key: str, secret: bytes) -> WrappedKey:
        return WrappedKey(key, *self.provider.wrap(secret, _context(key)))

    def _remember(self, key: str, secret: bytes) -> None:
        """Keep it in memory, unless it was erased meanwhile."""
        with self._lock:
            if key not in self._erased.keys:
                self._secrets[key] = secret
            while len(self._secrets) > _KEPT:
                self._secrets.popitem(last=False)

    # --- payloads ---

    def reader(self) -> PayloadReader:
        """What opens payloads by what is known of erasures now: for a batch, which is quicker."""
        return _Reader(self, self._erasures())

    def is_erased(self, reference: str) -> bool:
        """Whether nothing of this subject is read any more."""
        return reference in self._erasures().references

    def forgotten(self) -> Mapping[str, ErasureState] | None:
        """The subjects of which nothing is read any more, as of now, and how far their erasures have come.

        ``None`` where there are no keys to tell.
        """
        self.look()
        found = self._erasures().references
        return found if found or self._store.count() else None

    def encrypt(self, key: str, stream: str, version: int, topic: str, plain: bytes) -> bytes:
        """A payload as it is stored. Raises as :meth:`secret`."""
        about = payloads.identity(key, stream, version, topic)
        return payloads.encrypt(self.secret(key), key, about, plain)

    def decrypt(self, stream: str, version: int, topic: str, stored: bytes) -> bytes:
        """What was stored. Raises as :meth:`secret`, and :class:`DamagedLog` for what belongs elsewhere."""
        return self.reader().decrypt(stream, version, topic, stored)

    def opening(self, stream: str, version: int, topic: str, stored: bytes) -> bytes | None:
        """The key of this one event, for whoever may read it; none where it is not encrypted.

        Raises as :meth:`decrypt`.
        """
        return self.reader().opening(stream, version, topic, stored)

    # --- rotation ---

    def rotate(self) -> str:
        """Begin a new epoch, under which :meth:`rewrap` wraps every data key anew; the epoch (S2)."""
        return self.provider.rotate()

    def rewrap(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Wrap under the current epoch whatever is wrapped under another; how many keys it was (S2).

        No ciphertext changes. What is interrupted is completed by doing it again.
        """
        epoch, done = self.provider.current_epoch(), 0
        total = sum(number for name, number in self._store.count().items() if name != epoch)
        while found := self._store.older_than(epoch, _BATCH):
            pairs = [(old, self._rewrapped(old)) for old in found]
            # Another may have begun one: what is wrapped under it is not older.
            epoch = pairs[-1][1].epoch
            changed = self._store.replace(pairs)
            done += changed
            if progress:
                progress(min(done, total), total)
            if not changed:
                break  # others are at it, or the epoch has gone on: what is left is told by `epochs`
        return done

    def _rewrapped(self, key: WrappedKey) -> WrappedKey:
        return self._wrapped(key.id, self.provider.unwrap(key.epoch, key.wrapped, _context(key.id)))

    def epochs(self) -> KeyEpochs | None:
        """How many data keys are wrapped under each epoch; none where nothing is encrypted yet."""
        counted = self._store.count()
        if not counted:
            return None
        known = {epoch: counted.pop(epoch, 0) for epoch in self.provider.epochs()}
        return KeyEpochs(self.provider.name, self.provider.current_epoch(), {**counted, **known})

    # --- erasures (the port) ---

    def revision(self) -> int:
        """A number that changes with every erasure, as of now."""
        self.look()
        return self._store.revision()

    def look(self) -> None:
        """Let what is asked next know of every erasure that was begun by now."""
        self._store.look()

    def check(self, scope: str, conversation: str) -> None:
        """Raise :class:`Erased` for a conversation that was, or is being, erased."""
        if self.was_erased(scope, conversation):
            raise Erased(f"conversation {conversation!r} in scope {scope!r} was erased")

    def was_erased(self, scope: str, conversation: str) -> bool:
        """Whether it was, or is being, erased."""
        names = self._erasures().names
        return bool(names) and self._name(scope, conversation) in names

    def since(self) -> WasErased:
        """What tells of a conversation, later on, whether it was not completely erased by now, and is."""
        before = {name for name, state in self._erasures().names.items() if state == "completed"}

        def was_erased(scope: str, conversation: str) -> bool:
            return (
                self.was_erased(scope, conversation)
                and self._name(scope, conversation) not in before
            )

        return was_erased

    def begin(self, subject: Subject) -> None:
        """Let nothing be read of the subject from now on."""
        self._make_name_key()
        name = self._name(subject.scope, subject.conversation)
        self._store.bury(Tombstone(subject.reference, name, subject.key, "begun"))

    def _make_name_key(self) -> None:
        """Not remembered here: another thread or process may have been faster, and what is stored counts."""
        if self._store.find(NAME_KEY) is None:
            self._store.add([self._wrapped(NAME_KEY, secrets.token_bytes(payloads.KEY_BYTES))])

    def destroy(self, reference: str) -> None:
        """Destroy the subject's data key."""
        self._store.destroy(reference)
        self._erasures()

    def complete(self, reference: str) -> None:
        """Note that there is nothing left to do."""
        self._store.complete(reference)

    def references(self) -> Iterable[str]:
        """Every reference that was begun with."""
        return [tombstone.reference for tombstone in self._store.tombstones()]

    def check_keys(self, keys: Iterable[str]) -> None:
        """Raise :class:`KeyMissing` unless each of these is known here, destroyed or not."""
        for key in keys:
            if self._store.find(key) is None:
                raise self._missing(key)

    def bury(self, subject: Subject) -> None:
        """Destroy once more what the database knows as erased, and this store does not."""
        self._make_name_key()
        name = f"nameless/{subject.reference}".encode()
        self._store.bury(Tombstone(subject.reference, name, subject.key, "begun"))
        self._store.destroy(subject.reference)
        self._store.complete(subject.reference)

    def pending(self) -> Iterable[str]:
        """Those of them that are not complete."""
        return [t.reference for t in self._store.tombstones() if t.state != "completed"]

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    # --- forks ---

    def before_fork(self) -> None:
        """Nobody takes a spare key meanwhile."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """In the parent."""
        self._lock.release()

    def begin_anew(self) -> None:
        """In the child: the spare keys are the parent's, as no key may serve two conversations."""
        self._lock = RLock()
        self._spare.clear()

    def _erasures(self) -> _Erased:
        revision = self._store.revision()
        known = self._erased
        if known.revision == revision:
            return known
        found = self._store.tombstones()
        with self._lock:
            self._erased = known = _Erased(
                revision,
                {tombstone.name: tombstone.state for tombstone in found},
                frozenset(tombstone.key for tombstone in found if tombstone.key),
                {tombstone.reference: tombstone.state for tombstone in found},
            )
            for key in known.keys:
                self._secrets.pop(key, None)
        return known

    def _name(self, scope: str, conversation: str) -> bytes:
        secret = self._secrets.get(NAME_KEY) or self._fetch(NAME_KEY)
        name = f"{self._origin}\0{scope}\0{conversation}"
        return hmac.digest(secret, name.encode(), "sha256")


@dataclass(frozen=True, slots=True)
class _Reader:
    """A ring, as of a revision of the erasures."""

    ring: KeyRing
    erased: _Erased

    def is_erased(self, reference: str) -> bool:
        """Whether nothing of this subject is read any more."""
        return reference in self.erased.references

    def may_be_plain(self) -> bool:
        """As the ring."""
        return self.ring.may_be_plain()

    def forgotten(self) -> Mapping[str, ErasureState] | None:
        """As the ring."""
        return self.ring.forgotten()

    def decrypt(self, stream: str, version: int, topic: str, stored: bytes) -> bytes:
        """As the ring."""
        key = key_of(stored)
        if not key:
            self._check_plain(topic)
            return stored
        about = payloads.identity(key, stream, version, topic)
        plain = payloads.decrypt(self.ring.secret_unless(self.erased, key), about, stored)
        if plain is None:
            raise DamagedLog("the payload was not encrypted for this place")
        return plain

    def opening(self, stream: str, version: int, topic: str, stored: bytes) -> bytes | None:
        """As the ring."""
        key = key_of(stored)
        if not key:
            self._check_plain(topic)
            return None
        about = payloads.identity(key, stream, version, topic)
        found = payloads.opening(self.ring.secret_unless(self.erased, key), about, stored)
        if found is None:
            raise DamagedLog("the payload was not encrypted for this place")
        return found

    def _check_plain(self, topic: str) -> None:
        """Raise :class:`DamagedLog` for a payload that is not encrypted, where all are."""
        if not topic.startswith("Erasure") and not self.ring.may_be_plain():
            raise DamagedLog("the payload is not encrypted, as all of this ledger's are")


def _context(key: str) -> bytes:
    """What a wrapped data key is bound to: its own id."""
    return f"compaction-ledger/data-key/1\0{key}".encode()
