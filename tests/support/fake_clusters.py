"""Fake clusters for the reads of an audit's scopes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mm2slo_audit.scope.scope_assembly import OffsetReadings
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_metadata import TopicListing
from mm2slo_kafka.first_records import FirstRecord, FirstRecords
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading


class ListedCluster:
    """Returns a list of topics, or an error."""

    def __init__(self, counts: dict[str, int] | ErrorKind, *, hidden: str | None = None) -> None:
        self.counts = counts
        self.hidden = {} if hidden is None else {hidden: ErrorKind.AUTHORIZATION}

    def topics(self) -> TopicListing:
        """See `ClusterClient.topics`."""
        if isinstance(self.counts, ErrorKind):
            raise KafkaOperationError(
                self.counts, cluster="us", operation="listing topics", detail="no answer"
            )
        return TopicListing("id", 1, self.counts, self.hidden, {})


@dataclass
class LoggedCluster:
    """Logs of one topic: start offset and timestamps per partition."""

    topic: str
    logs: Sequence[tuple[int, Sequence[int]]]
    requests: list[tuple[float, int]] = field(default_factory=list)
    """Timestamp and number of partitions per request."""

    def readings(self, requested_at: float = 0.0) -> OffsetReadings:
        """Start and end offsets as a survey reads them."""
        logs = {TopicPartition(self.topic, number): log for number, log in enumerate(self.logs)}
        starts = {key: start for key, (start, _times) in logs.items()}
        return OffsetReadings(
            starts=starts,
            ends={key: start + len(times) for key, (start, times) in logs.items()},
            at=dict(starts),
            requested_at=requested_at,
        )

    def first_records(
        self, ranges: Mapping[TopicPartition, tuple[int, int]], *_more: object
    ) -> FirstRecords:
        """See `ClusterClient.first_records`."""
        return FirstRecords(
            {key: self._record(key, offset) for key, (offset, _end) in ranges.items()}
        )

    def offsets_at(self, partitions: Sequence[TopicPartition], timestamp: float) -> OffsetReading:
        """See `ClusterClient.offsets_at`."""
        self.requests.append((timestamp, len(partitions)))
        offsets = {}
        for key in partitions:
            start, times = self.logs[key.partition]
            least = round(timestamp * 1000)
            first = (at for at, time in enumerate(times) if time >= least)
            offsets[key] = start + next(first, len(times))
        return OffsetReading(offsets, {}, 0.0, 0.0)

    def _record(self, key: TopicPartition, offset: int) -> FirstRecord | None:
        start, times = self.logs[key.partition]
        at = max(offset, start) - start
        return FirstRecord(start + at, times[at]) if at < len(times) else None
