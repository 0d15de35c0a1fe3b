"""Looks up what is needed to read topics: their partitions, and where these start and end."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.tailed_topic import TopicDescription

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation, OffsetReading
    from mm2slo_kafka.tailed_topic import Start, TailedTopic
    from mm2slo_kafka.topic_metadata import TopicIdentity

_TIMEOUT_SECONDS = 5.0


class TopicLookup(NamedTuple):
    """What is known of a topic that is looked up."""

    topic: str
    topic_id: str | None
    only_partition: int | None
    start: Start
    known: frozenset[int]
    unknown_ends: tuple[int, ...]

    @classmethod
    def of(cls, tailed: TailedTopic) -> TopicLookup:
        return cls(
            tailed.topic,
            tailed.topic_id,
            tailed.only_partition,
            tailed.start,
            frozenset(tailed.positions),
            tuple(tailed.unknown_ends),
        )

    def unread(self, identity: TopicIdentity) -> tuple[Start, list[TopicPartition]]:
        """The partitions that are not read yet, all of a re-created topic, and where they start.

        Partitions that were added later are read from their start: all records are new.
        """
        known = self.known if self.topic_id in (None, identity.topic_id) else frozenset()
        partitions = range(identity.partitions)
        if self.only_partition is not None:
            partitions = range(self.only_partition, self.only_partition + 1)
        is_first = not self.known
        return self.start if is_first else "start", [
            TopicPartition(self.topic, partition)
            for partition in partitions
            if partition not in known
        ]


Answers = dict[str, TopicDescription | KafkaOperationError]


def look_up(client: ClusterClient, lookups: Sequence[TopicLookup], isolation: Isolation) -> Answers:
    """The description, or the failure, of each topic, in few requests.

    Raises KafkaOperationError when the cluster does not answer.
    """
    identities, errors = client.identify([each.topic for each in lookups], _TIMEOUT_SECONDS)
    answers: Answers = {}
    unread: dict[str, list[TopicPartition]] = {}
    starting: defaultdict[Start, list[TopicPartition]] = defaultdict(list)
    unknown_ends: list[TopicPartition] = []
    for lookup in lookups:
        identity = identities.get(lookup.topic)
        if identity is None:
            answers[lookup.topic] = _absent_or_failed(client, lookup.topic, errors)
            continue
        start, unread[lookup.topic] = lookup.unread(identity)
        starting[start] += unread[lookup.topic]
        unknown_ends += unread[lookup.topic]
        unknown_ends += [TopicPartition(lookup.topic, number) for number in lookup.unknown_ends]
    starts: dict[TopicPartition, int] = {}
    failed: dict[TopicPartition, ErrorKind] = {}
    for start, partitions in starting.items():
        if partitions:
            found = _offsets(client, partitions, start, isolation)
            starts.update(found.offsets)
            if start != "start":
                failed.update(found.errors)
    ends = client.end_offsets(unknown_ends, isolation, _TIMEOUT_SECONDS).offsets
    for topic, partitions in unread.items():
        failure = next((each for each in partitions if each in failed), None)
        if failure is not None:
            operation = f"reading the start offset of {failure}"
            answers[topic] = _failed(client, operation, failed[failure])
            continue
        answers[topic] = TopicDescription(
            identities[topic],
            {each.partition: starts.get(each) for each in partitions},
            {each.partition: end for each, end in ends.items() if each.topic == topic},
        )
    return answers


def _offsets(
    client: ClusterClient, partitions: Sequence[TopicPartition], start: Start, isolation: Isolation
) -> OffsetReading:
    if start == "start":
        # One request for all offsets; lookups by the consumer, one per partition, would delay
        # the first records behind fetches of empty partitions.
        return client.start_offsets(partitions, _TIMEOUT_SECONDS)
    if start == "end":
        return client.end_offsets(partitions, isolation, _TIMEOUT_SECONDS)
    return client.offsets_at(partitions, start, isolation, _TIMEOUT_SECONDS)


def _absent_or_failed(
    client: ClusterClient, topic: str, errors: Mapping[str, ErrorKind]
) -> TopicDescription | KafkaOperationError:
    kind = errors.get(topic, ErrorKind.OTHER)
    if kind is ErrorKind.UNKNOWN_TOPIC:
        return TopicDescription(None, {}, {})
    return _failed(client, f"describing topic {topic!r}", kind)


def _failed(client: ClusterClient, operation: str, kind: ErrorKind) -> KafkaOperationError:
    return KafkaOperationError(
        kind, cluster=client.alias, operation=operation, detail="the broker refused the request"
    )
