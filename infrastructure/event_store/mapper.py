"""Between facts and stored events: ``eventsourcing``'s mapper with our fixed table of names (L5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import JSONTranscoder, Mapper, StoredEvent

from compaction_ledger.domain.facts import Fact
from compaction_ledger.infrastructure.event_store import codec
from compaction_ledger.infrastructure.event_store.cipher import PayloadCipher
from compaction_ledger.infrastructure.event_store.envelope import key_of


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A fact at its place in a stream: what ``eventsourcing`` calls a domain event."""

    originator_id: UUID
    originator_version: int
    fact: Fact
    key: str = ""
    """The id of the data key that its payload is encrypted with, if it is."""


class FactMapper(Mapper[UUID]):
    """Writes and reads payloads through codec and cipher; never resolves a topic to a class."""

    def __init__(self, cipher: PayloadCipher) -> None:
        super().__init__(transcoder=JSONTranscoder())
        self._payloads = cipher

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        """The stored form of a :class:`StreamEvent`."""
        event = cast(StreamEvent, domain_event)
        stream, version = event.originator_id, event.originator_version
        topic, payload = codec.topic_of(event.fact), codec.encode(event.fact)
        if event.key:
            payload = self._payloads.encrypt(event.key, stream.hex, version, topic, payload)
        return StoredEvent(stream, version, topic, payload)

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[UUID]:
        """The :class:`StreamEvent` of a stored form.

        Raises kinds of :class:`DamagedLog`, :class:`Erased`, and :class:`StoreError` kinds for lack of a key.
        """
        originator_id = stored_event.originator_id
        stream = originator_id if isinstance(originator_id, UUID) else UUID(originator_id)
        version, topic = stored_event.originator_version, stored_event.topic
        payload = self._payloads.decrypt(stream.hex, version, topic, stored_event.state)
        return StreamEvent(
            stream, version, codec.decode(topic, payload), key_of(stored_event.state)
        )
