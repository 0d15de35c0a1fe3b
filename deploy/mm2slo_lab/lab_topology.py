"""The topology of a lab: clusters, flows and their settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import permutations
from typing import TYPE_CHECKING, Any

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_versions import DEFAULT_VERSION
from mm2slo_lab.lab_errors import LabError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Security(StrEnum):
    """Security protocol of the brokers.

    With SASL, brokers run StandardAuthorizer: `admin` is the super user, other users need ACLs.
    """

    PLAINTEXT = "PLAINTEXT"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"  # mechanism PLAIN
    SASL_SSL = "SASL_SSL"  # mechanism SCRAM-SHA-512, with the lab's CA


class Engine(StrEnum):
    """Process that runs the mirror connectors."""

    DEDICATED = "dedicated"  # org.apache.kafka.connect.mirror.MirrorMaker, all flows in one process
    CONNECT = "connect"  # one distributed Connect worker per target cluster
    NONE = "none"


@dataclass(frozen=True, slots=True)
class User:
    """A SASL user."""

    name: str
    password: str = field(repr=False)


ADMIN = User("admin", "admin-secret")
APP = User("app", "app-secret")


@dataclass(frozen=True, slots=True)
class LabTopology:
    """Clusters, flows and their settings.

    `mm2_properties` and `broker_properties` override the lab's settings. Heap sizes are in MiB.
    """

    clusters: tuple[str, ...] = ("us", "eu")
    flows: tuple[Flow, ...] = (Flow("us", "eu"), Flow("eu", "us"))
    kafka_version: str = DEFAULT_VERSION
    engine: Engine = Engine.DEDICATED
    security: Security = Security.PLAINTEXT
    mm2_properties: Mapping[str, str] = field(default_factory=dict)
    broker_properties: Mapping[str, str] = field(default_factory=dict)
    broker_heap: int = 384
    mm2_heap: int = 384

    def __post_init__(self) -> None:
        """Raise LabError for an invalid topology."""
        if not self.clusters or len(set(self.clusters)) != len(self.clusters):
            raise LabError(
                f"invalid clusters {self.clusters!r}; expected one or more different names"
            )
        unknown = {alias for flow in self.flows for alias in (flow.source, flow.target)}
        unknown -= set(self.clusters)
        if unknown:
            raise LabError(
                f"flows use unknown clusters {sorted(unknown)}; expected {self.clusters!r}"
            )

    @property
    def pairs(self) -> tuple[Flow, ...]:
        """All ordered pairs of clusters."""
        return tuple(Flow(source, target) for source, target in permutations(self.clusters, 2))

    @property
    def separator(self) -> str:
        """Separator of alias and topic in remote topic names."""
        return self.mm2_properties.get("replication.policy.separator", ".")

    @property
    def identity(self) -> bool:
        """Whether topics keep their names (IdentityReplicationPolicy)."""
        policy = self.mm2_properties.get("replication.policy.class", "")
        return policy.endswith("IdentityReplicationPolicy")

    def heartbeats_topic(self, flow: Flow) -> str:
        """Return the heartbeats topic of the source on the target; the same for both policies."""
        return f"{flow.source}{self.separator}heartbeats"

    def remote_topic(self, flow: Flow, topic: str) -> str:
        """Return the name of *topic* on the target of *flow*."""
        return topic if self.identity else f"{flow.source}{self.separator}{topic}"

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON types; flows as `us->eu`."""
        return {**asdict(self), "flows": [flow.label for flow in self.flows]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LabTopology:
        """Create a topology from `to_json`."""
        return cls(
            **{
                **data,
                "clusters": tuple(data["clusters"]),
                "flows": tuple(Flow.parse(label) for label in data["flows"]),
                "engine": Engine(data["engine"]),
                "security": Security(data["security"]),
            }
        )
