"""Kafka clients of an audit."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from mm2slo_kafka.cluster_client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config import Config


class Clients(dict[str, ClusterClient]):
    """Clients by alias, each opened when it is needed: another cluster's problem is none.

    Raises KafkaOperationError for invalid properties.
    """

    def __init__(self, config: Config, opened: ExitStack) -> None:
        super().__init__()
        self._clusters = config.clusters
        self._opened = opened

    def __missing__(self, alias: str) -> ClusterClient:
        client = ClusterClient(alias, self._clusters[alias].librdkafka_properties())
        self[alias] = self._opened.enter_context(client)
        return client


@contextmanager
def open_clients(config: Config) -> Iterator[Clients]:
    """Clients of the configured clusters, which are closed at the end."""
    with ExitStack() as opened:
        yield Clients(config, opened)
