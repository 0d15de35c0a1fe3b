"""What checks see: all files, their flows, and what clusters reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.mm2_config.setting_effects import default_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mm2slo_core.cluster_security import Security
    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_core.mm2_config.findings import Origin
    from mm2slo_core.mm2_config.mirror_setup import ConnectorKind, MirrorFlow, MirrorSetup, Setting
    from mm2slo_core.replication_policy import KafkaVersion
    from mm2slo_core.topology import Flow


class Hit(NamedTuple):
    """What the check of this name found; *action* is better than its general one."""

    check: str
    origin: Origin
    what: str
    action: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cluster reported; *settings* by topic and key, with defaults."""

    brokers: int
    partitions: Mapping[str, int]
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class LintFlow:
    """An enabled flow; *config* is None if it cannot be interpreted."""

    setup: MirrorSetup
    mirror: MirrorFlow
    version: KafkaVersion
    config: FlowConfig | None

    @property
    def flow(self) -> Flow:
        return self.mirror.flow

    @property
    def storage(self) -> set[str]:
        """The topics of the workers, on the target."""
        worker = self.mirror.worker
        return {*filter(None, (worker.configs_topic, worker.offsets_topic, worker.status_topic))}

    def servers(self, alias: str) -> str | None:
        cluster = self.setup.clusters.get(alias)
        return cluster.servers if cluster else None

    def written_servers(self, kind: ConnectorKind) -> Setting | None:
        """The servers to which the producer of a connector writes: its own, or its worker's."""
        connector = self.setting(kind, "producer.override.bootstrap.servers")
        keys = ("producer.bootstrap.servers", "bootstrap.servers")
        return connector or next(filter(None, (self.setting(None, key) for key in keys)), None)

    def setting(self, kind: ConnectorKind | None, key: str) -> Setting | None:
        """A setting of a connector, or of the workers."""
        connector = self.mirror.connectors.get(kind) if kind else self.mirror.worker
        return connector.settings.get(key) if connector else None

    def value(self, kind: ConnectorKind | None, key: str) -> str:
        """The value that a connector or worker uses; "" if it is not known."""
        if found := self.setting(kind, key):
            return found.value.strip()
        return default_value(key) if kind in self.mirror.connectors else ""

    def number(self, kind: ConnectorKind | None, key: str) -> float:
        """The value as a number, 0 if it is none."""
        value = self.value(kind, key)
        return float(value) if value.isdecimal() else 0

    def hit(
        self, check: str, kind: ConnectorKind | None, key: str,
        *, what: str | None = None, action: str | None = None,
    ) -> Hit:  # fmt: skip
        """A hit where the value of *key* was written."""
        found = self.setting(kind, key)
        default = f"{self.flow}: {key} = {self.value(kind, key)} (default)"
        shown = f"{found.key} = {found.value.strip()}" if found else default
        place = found or (self.mirror.connectors.get(kind) if kind else None) or self.mirror
        return Hit(check, place.origin, what or shown, action)


@dataclass(frozen=True, slots=True)
class LintInput:
    """All files together. By alias: *security* where it could be read, *facts* if connected."""

    setups: Sequence[MirrorSetup]
    flows: Sequence[LintFlow]
    security: Mapping[str, Security]
    facts: Mapping[str, ClusterFacts]
    now: datetime
