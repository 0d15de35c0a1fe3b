"""Kafka clients of an audit."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from mm2slo_kafka.cluster_client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_core.config import Config

Clients = dict[str, ClusterClient]


@contextmanager
def open_clients(config: Config) -> Iterator[Clients]:
    """A client per configured cluster by alias; it connects on first use.

    Raises KafkaOperationError for invalid properties.
    """
    with ExitStack() as opened:
        yield {
            alias: opened.enter_context(ClusterClient(alias, properties))
            for alias, properties in _properties(config).items()
        }


def _properties(config: Config) -> Mapping[str, dict[str, str]]:
    return {alias: each.librdkafka_properties() for alias, each in config.clusters.items()}
