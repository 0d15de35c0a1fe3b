"""A topic on the source that carries the canaries of one or more flows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from mm2slo_kafka.background_call import call_in_background
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator, Iterator, Mapping
    from concurrent.futures import Future

    from mm2slo_exporter.canary.canary_spec import CanarySpec
    from mm2slo_kafka.topic_metadata import TopicIdentity

T = TypeVar("T")

_OWN_TOPIC_PARTITIONS = 4
_VISIBLE_ATTEMPTS = 20
_VISIBLE_RETRY_SECONDS = 0.1
_REFRESH_SECONDS = 10.0
_RETRY_SECONDS = 5.0
_ANSWER_SECONDS = 0.05
"""How late an answer is noticed."""


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
    """Creates the topic while it is missing, and describes it every 10 s."""

    def __init__(
        self,
        spec: CanarySpec,
        source: SourceTopics,
        stopping: threading.Event,
        *,
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*spec* is that of any of the flows."""
        self.identity: TopicIdentity | None = None
        """The newest description; None while the topic does not exist, or is not known."""
        self.problem: KafkaOperationError | None = None
        """The last failure to create or describe it, a new object each time."""
        self._spec = spec
        self._source = source
        self._stopping = stopping
        self._on_change = on_change
        self._clock = clock

    def ensure(self) -> TopicIdentity:
        """Describe the topic, which is created if it is missing. Raises KafkaOperationError."""
        topic = self._spec.source_topic
        # No permission to create the topic is needed if it exists.
        found = self._source.start_identify(topic).result()
        if found is None:
            self._create()
            for _ in range(_VISIBLE_ATTEMPTS):
                found = self._source.start_identify(topic).result()
                # A new topic becomes visible on brokers after a short delay.
                if found is not None or self._stopping.wait(_VISIBLE_RETRY_SECONDS):
                    break
        if found is None:
            raise KafkaOperationError(
                ErrorKind.UNKNOWN_TOPIC,
                cluster=self._spec.source_alias,
                operation=f"describing topic {topic!r}",
                detail="it was created, but is not visible yet",
            )
        return found

    def run(self) -> Iterator[float]:
        """Keep the topic and its description; yields the time of the next step."""
        known: TopicIdentity | None = None
        while True:
            found: TopicIdentity | None = yield from self._ensured()
            while found is not None:
                if known not in (None, found):
                    self._on_change()
                self.identity = known = found
                yield self._clock() + _REFRESH_SECONDS
                found = yield from self._described(known)
            self.identity = None
            # Whoever deleted it may create it again, with other settings than ours.
            yield self._clock() + _RETRY_SECONDS

    def _ensured(self) -> Generator[float, None, TopicIdentity]:
        while True:
            try:
                return (yield from self._answer(call_in_background(self.ensure, "carrier")))
            except KafkaOperationError as problem:
                self.problem = problem
            yield self._clock() + _RETRY_SECONDS

    def _described(self, known: TopicIdentity) -> Generator[float, None, TopicIdentity | None]:
        try:
            answer = self._source.start_identify(self._spec.source_topic)
            return (yield from self._answer(answer))
        except KafkaOperationError as problem:
            self.problem = problem
            return known

    def _answer(self, answer: Future[T]) -> Generator[float, None, T]:
        while not answer.done():
            yield self._clock() + _ANSWER_SECONDS
        found = answer.result()
        self.problem = None
        return found

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
