"""What the exporter writes to the clusters under a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.replication_policy import HEARTBEATS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.config_model import Config
    from mm2slo_core.connection_checks.required_permissions import ResourceKind

_CANARIES = "canaries"
_TIMELINE = "watermark timeline"
_ARRIVALS = "arrival times"
_STATE = "losses and verdicts"
_ELECTION = "membership, no offsets"


class ClusterWrite(NamedTuple):
    """A topic that the exporter writes to, or a consumer group that it joins.

    *flows* are the labels of the flows that need it.
    """

    cluster: str
    kind: ResourceKind
    name: str
    purpose: str
    flows: tuple[str, ...]


def cluster_writes(config: Config) -> tuple[ClusterWrite, ...]:
    """Each topic and group that is written to, by cluster and name; empty in read-only mode."""
    flows_by_write: dict[ClusterWrite, list[str]] = {}
    for write in _writes_of_flows(config):
        flows_by_write.setdefault(write._replace(flows=()), []).extend(write.flows)
    return tuple(
        write._replace(flows=tuple(flows)) for write, flows in sorted(flows_by_write.items())
    )


def _writes_of_flows(config: Config) -> Iterator[ClusterWrite]:
    exporter = config.exporter
    for flow in config.flows:
        source, target, flows = flow.flow.source, flow.flow.target, (flow.label,)
        carrier = config.carrier(flow)
        if carrier is not CanaryCarrier.OFF:
            topic = flow.canary.topic if carrier is CanaryCarrier.TOPIC else HEARTBEATS_TOPIC
            yield ClusterWrite(source, "topic", topic, _CANARIES, flows)
            if exporter.instance is None:
                yield ClusterWrite(source, "group", "mm2slo.canary.*", _ELECTION, flows)
        if not exporter.read_only:
            yield ClusterWrite(target, "topic", exporter.state.topic, _STATE, flows)
            yield ClusterWrite(target, "group", "mm2slo.leader.*", _ELECTION, flows)
        if exporter.writes_timeline:
            yield ClusterWrite(target, "topic", exporter.timeline.topic, _TIMELINE, flows)
        if exporter.writes_arrivals:
            yield ClusterWrite(target, "topic", exporter.timeline.arrivals_topic, _ARRIVALS, flows)
