"""One client and one reader per cluster, shared by all flows that touch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_exporter.readers.cluster import Cadence, ClusterReader
from mm2slo_exporter.threads import all_at_once
from mm2slo_kafka.client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.config.cluster import ClusterConfig
    from mm2slo_core.config.exporter import ExporterConfig
    from mm2slo_exporter.health import Health
    from mm2slo_exporter.readers.cluster import Interests


@dataclass(frozen=True, slots=True)
class ClusterHandle:
    """What serves one cluster, and the configuration it was made from."""

    config: ClusterConfig
    client: ClusterClient
    reader: ClusterReader

    def close(self) -> None:
        """End the reader, then the client."""
        self.reader.stop()
        self.client.close()


class Clusters:
    """The clusters in use, by alias."""

    def __init__(self, exporter: ExporterConfig, interests: Interests, health: Health) -> None:
        self._cadence = Cadence(
            topics=exporter.metadata_interval,
            topic_configs=exporter.topic_configs_interval,
            groups=exporter.groups_interval,
        )
        self._interests = interests
        self._health = health
        self._handles: dict[str, ClusterHandle] = {}

    def __getitem__(self, alias: str) -> ClusterHandle:
        return self._handles[alias]

    def __contains__(self, alias: str) -> bool:
        return alias in self._handles

    def open(self, wanted: Mapping[str, ClusterConfig]) -> None:
        """Start what is missing. Raises KafkaOperationError for properties that cannot work."""
        for alias, config in wanted.items():
            if alias not in self._handles:
                self._health.declare(alias)
                client = ClusterClient(alias, config.librdkafka_properties())
                reader = ClusterReader(client, self._cadence, self._interests, self._health)
                self._handles[alias] = ClusterHandle(config, client, reader)
                reader.start()

    def close(self, aliases: Iterable[str]) -> None:
        """End the named clusters."""
        all_at_once([self._handles.pop(alias).close for alias in list(aliases)])

    def close_all(self) -> None:
        """End all clusters."""
        self.close(self._handles)

    def request_totals(self) -> Mapping[tuple[str, str], int]:
        """Requests sent, by cluster and API."""
        return {
            (alias, api): count
            for alias, handle in list(self._handles.items())  # a reload may open one meanwhile
            for api, count in handle.client.request_totals().items()
        }


def check_clients(clusters: Mapping[str, ClusterConfig]) -> None:
    """Raise KafkaOperationError for properties that cannot work; no cluster is asked."""
    for alias, config in clusters.items():
        ClusterClient(alias, config.librdkafka_properties()).close()
