"""Between facts and stored events: ``eventsourcing``'s mapper with our fixed table of names (L5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import JSONTranscoder, Mapper, StoredEvent

from compaction_ledger.domain.facts import Fact
from compaction_ledger.infrastructure.event_store import codec


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A fact at its place in a stream: what ``eventsourcing`` calls a domain event."""

    originator_id: UUID
    originator_version: int
    fact: Fact


class FactMapper(Mapper[UUID]):
    """Writes and reads payloads through the codec; never resolves a topic to a class."""

    def __init__(self) -> None:
        super().__init__(transcoder=JSONTranscoder())

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        """The stored form of a :class:`StreamEvent`."""
        event = cast(StreamEvent, domain_event)
        return StoredEvent(
            event.originator_id,
            event.originator_version,
            codec.topic_of(event.fact),
            codec.encode(event.fact),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[UUID]:
        """The :class:`StreamEvent` of a stored form. Raises kinds of :class:`DamagedLog`."""
        fact = codec.decode(stored_event.topic, stored_event.state)
        originator_id = stored_event.originator_id
        stream = originator_id if isinstance(originator_id, UUID) else UUID(originator_id)
        return StreamEvent(stream, stored_event.originator_version, fact)
