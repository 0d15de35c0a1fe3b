"""The topic on the source that carries a flow's canaries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from mm2slo_exporter.canary.canary_spec import CanarySpec
    from mm2slo_kafka.topic_metadata import TopicIdentity

_OWN_TOPIC_PARTITIONS = 4
_VISIBLE_ATTEMPTS = 20
_VISIBLE_RETRY_SECONDS = 0.1
_REFRESH_SECONDS = 10.0


class SourceTopics(Protocol):
    """The part of a cluster client that describes and creates topics."""

    def create_topic(
        self, topic: str, *, partitions: int, config: Mapping[str, str] = ...
    ) -> object:
        """Create a topic unless it exists. Raises KafkaOperationError."""

    def start_identify(self, topic: str) -> Future[TopicIdentity | None]:
        """Describe a topic without waiting; None if it does not exist.

        Raises KafkaOperationError, as the future does.
        """


class CarrierTopic:
    """Creates the topic if it is missing, and describes it again every 10 s."""

    def __init__(
        self, spec: CanarySpec, source: SourceTopics, clock: Callable[[], float] = time.time
    ) -> None:
        self._spec = spec
        self._source = source
        self._clock = clock
        self._answer: Future[TopicIdentity | None] | None = None
        self._refresh_at = 0.0

    def ensure(self, stopping: threading.Event) -> TopicIdentity:
        """Describe the topic, which is created if it is missing. Raises KafkaOperationError."""
        topic = self._spec.source_topic
        # No permission to create the topic is needed if it exists.
        found = self._source.start_identify(topic).result()
        if found is None:
            self._create()
            for _ in range(_VISIBLE_ATTEMPTS):
                found = self._source.start_identify(topic).result()
                # A new topic becomes visible on brokers after a short delay.
                if found is not None or stopping.wait(_VISIBLE_RETRY_SECONDS):
                    break
        if found is None:
            raise KafkaOperationError(
                ErrorKind.UNKNOWN_TOPIC,
                cluster=self._spec.source_alias,
                operation=f"describing topic {topic!r}",
                detail="it was created, but is not visible yet",
            )
        self._answer, self._refresh_at = None, self._clock() + _REFRESH_SECONDS
        return found

    def refreshed(self, known: TopicIdentity) -> TopicIdentity | None:
        """The newest description, without waiting: *known* until one arrives; None: deleted.

        Raises KafkaOperationError if the source did not describe it.
        """
        if self._answer is None:
            if self._clock() >= self._refresh_at:
                self._refresh_at = self._clock() + _REFRESH_SECONDS
                self._answer = self._source.start_identify(self._spec.source_topic)
            return known
        if not self._answer.done():
            return known
        answer, self._answer = self._answer, None
        return answer.result()

    def _create(self) -> None:
        own = self._spec.carrier == "topic"
        self._source.create_topic(
            self._spec.source_topic,
            partitions=_OWN_TOPIC_PARTITIONS if own else 1,
            config={"retention.ms": "86400000"} if own else {"cleanup.policy": "compact"},
        )


def is_recreated(known: TopicIdentity, found: TopicIdentity) -> bool:
    """Whether *found* is another topic of the same name.

    Without topic ids (brokers before 2.8), it is recognized only by fewer partitions.
    """
    return found.topic_id != known.topic_id or found.partitions < known.partitions
