"""One client, one reader of each kind and one writer per cluster, shared by its flows.

Aliases with the same settings are one cluster.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mm2slo_core.config.exporter_settings import ClusterSettings, ExporterSettings
from mm2slo_core.topology import Flow
from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.readers.cluster_reader import ClusterReader, ReadIntervals, WatchScope
from mm2slo_exporter.readers.internal_topics_reader import InternalTopicsReader
from mm2slo_exporter.supervised_thread import run_in_parallel
from mm2slo_exporter.timeline.arrival_poller import ArrivalPoller
from mm2slo_exporter.timeline.flow_writer import ClusterWriter
from mm2slo_kafka.cluster_client import ClusterClient


@dataclass(frozen=True, slots=True, eq=False)
class ClusterHandle:
    """Client, readers and writer of one cluster, and their configuration; equal only to itself."""

    config: ClusterSettings
    client: ClusterClient
    reader: ClusterReader
    internals: InternalTopicsReader
    writer: ClusterWriter | None
    """None in read-only mode."""
    arrivals: ArrivalPoller | None = None
    """None if no arrivals are written."""

    def close(self) -> None:
        """Stop readers and writer, then close the client."""
        writers = [each.stop for each in (self.arrivals, self.writer) if each is not None]
        run_in_parallel([self.reader.stop, self.internals.stop, *writers])
        self.client.close()


@dataclass(frozen=True, slots=True)
class FlowClusters:
    source: ClusterHandle
    target: ClusterHandle


class ClusterHandles:
    """The clusters in use, by alias."""

    def __init__(
        self,
        exporter: ExporterSettings,
        watch_scope: WatchScope,
        health: CollectionHealth,
        requests: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        """*requests*: continue these counts of sent requests."""
        self._closed_requests = Counter(requests or {})
        self._intervals = ReadIntervals(
            topics=exporter.metadata_interval,
            topic_configs=exporter.topic_configs_interval,
            groups=exporter.groups_interval,
            members=exporter.group_members_interval if exporter.group_lag else None,
        )
        self._exporter = exporter
        self._watch_scope = watch_scope
        self._health = health
        self._handles: dict[str, ClusterHandle] = {}

    def __getitem__(self, alias: str) -> ClusterHandle:
        return self._handles[alias]

    def __contains__(self, alias: str) -> bool:
        return alias in self._handles

    def open(self, wanted: Mapping[str, ClusterSettings]) -> None:
        """Open missing clusters. Raises KafkaOperationError for invalid properties."""
        for alias, config in wanted.items():
            if alias not in self._handles:
                self._health.create_counters(alias)
                same = (each for each in self._handles.values() if each.config == config)
                self._handles[alias] = next(same, None) or self._open(alias, config)
                self._health.share(self.sharing([alias]))

    def serve(self, flows: Iterable[Flow]) -> None:
        """Take part in the elections for *flows*, which replace earlier ones; returns at once."""
        served = list(flows)
        for handle in self._distinct():
            if handle.writer is not None:
                handle.writer.serve([f for f in served if self._handles[f.target] is handle])

    def sharing(self, aliases: Iterable[str]) -> frozenset[str]:
        """*aliases*, and all others of their clusters."""
        wanted = set(aliases)
        opened = list(self._handles.items())  # a reload may change it meanwhile
        found = {handle for alias, handle in opened if alias in wanted}
        return frozenset(wanted.union(alias for alias, each in opened if each in found))

    def retry_logins(self) -> bool:
        """Log in again where requests pause because a login was refused; whether any do."""
        paused = [each for each in self._distinct() if each.client.handles.logins.is_shut]
        for each in paused:
            each.client.handles.logins.retry_now()
        return bool(paused)

    def close(self, aliases: Iterable[str]) -> None:
        """Close clusters, of which *aliases* are all."""
        closed = dict.fromkeys(map(self._handles.pop, list(aliases)))
        run_in_parallel([handle.close for handle in closed])
        for handle in closed:
            self._closed_requests.update(_request_totals(handle))

    def close_all(self) -> None:
        self.close(self._handles)

    def request_totals(self) -> Mapping[tuple[str, str], int]:
        """Kafka requests sent, by cluster and API."""
        totals = Counter(self._closed_requests)
        for handle in self._distinct():
            totals.update(_request_totals(handle))
        return totals

    def _open(self, alias: str, config: ClusterSettings) -> ClusterHandle:
        client = ClusterClient(alias, config.librdkafka_properties())
        reader = ClusterReader(client, self._intervals, self._watch_scope, self._health)
        internals = InternalTopicsReader(client, self._health)
        read_only = self._exporter.read_only
        writer = None if read_only else ClusterWriter(client, self._exporter, self._health)
        arrivals = None
        if writer is not None and self._exporter.writes_arrivals:
            every = self._exporter.poll_interval
            arrivals = ArrivalPoller(client, writer, self._health, poll_interval=every)
        reader.start()
        return ClusterHandle(config, client, reader, internals, writer, arrivals)

    def _distinct(self) -> list[ClusterHandle]:
        return list(dict.fromkeys(list(self._handles.values())))  # a reload may change it meanwhile


def _request_totals(handle: ClusterHandle) -> Mapping[tuple[str, str], int]:
    client = handle.client
    return {(client.alias, api): count for api, count in client.request_totals().items()}
