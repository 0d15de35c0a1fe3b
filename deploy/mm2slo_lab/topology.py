"""What a lab consists of: a frozen description, written to and read from the state file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import permutations
from typing import TYPE_CHECKING, Any

from mm2slo_core.topology import Flow
from mm2slo_lab.errors import LabError
from mm2slo_lab.versions import DEFAULT_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping


class Security(StrEnum):
    """How clients reach the brokers.

    The secured ones run Kafka's StandardAuthorizer: `admin` may do everything, any other user
    only what an ACL allows.
    """

    PLAINTEXT = "PLAINTEXT"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"  # mechanism PLAIN
    SASL_SSL = "SASL_SSL"  # mechanism SCRAM-SHA-512, a CA of the lab's own


class Engine(StrEnum):
    """What runs the mirror connectors."""

    DEDICATED = "dedicated"  # org.apache.kafka.connect.mirror.MirrorMaker, all flows in one process
    CONNECT = "connect"  # one distributed Connect worker per target cluster
    NONE = "none"


@dataclass(frozen=True, slots=True)
class User:
    """A SASL user; what it may do is for ACLs to say, unless it is the super user."""

    name: str
    password: str = field(repr=False)


ADMIN = User("admin", "admin-secret")
APP = User("app", "app-secret")


@dataclass(frozen=True, slots=True)
class LabTopology:
    """Clusters, flows and their settings.

    `mm2_properties` go into MirrorMaker 2's file last and so override the lab's own;
    `broker_properties` do the same for every broker. Heap sizes are in MiB.
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
        """Refuse a topology that could not start."""
        if not self.clusters or len(set(self.clusters)) != len(self.clusters):
            raise LabError(f"clusters {self.clusters!r}: expected different names, at least one")
        strangers = {alias for flow in self.flows for alias in (flow.source, flow.target)}
        strangers -= set(self.clusters)
        if strangers:
            raise LabError(f"flows name {sorted(strangers)}, the clusters are {self.clusters!r}")

    @property
    def pairs(self) -> tuple[Flow, ...]:
        """Every ordered pair of clusters, each with a herder or none (MirrorMakerConfig)."""
        return tuple(Flow(source, target) for source, target in permutations(self.clusters, 2))

    @property
    def separator(self) -> str:
        """What stands between alias and topic in a remote topic's name."""
        return self.mm2_properties.get("replication.policy.separator", ".")

    @property
    def identity(self) -> bool:
        """Whether topics keep their names (IdentityReplicationPolicy)."""
        policy = self.mm2_properties.get("replication.policy.class", "")
        return policy.endswith("IdentityReplicationPolicy")

    def heartbeats_topic(self, flow: Flow) -> str:
        """The copy of the source's heartbeats on the target; the same under either policy."""
        return f"{flow.source}{self.separator}heartbeats"

    def remote_topic(self, flow: Flow, topic: str) -> str:
        """The name of *topic* on the target of *flow*."""
        return topic if self.identity else f"{flow.source}{self.separator}{topic}"

    def to_json(self) -> dict[str, Any]:
        """This topology in JSON's own types; flows as `us->eu`."""
        return {**asdict(self), "flows": [flow.label for flow in self.flows]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LabTopology:
        """Read what `to_json` wrote."""
        return cls(
            **{
                **data,
                "clusters": tuple(data["clusters"]),
                "flows": tuple(Flow.parse(label) for label in data["flows"]),
                "engine": Engine(data["engine"]),
                "security": Security(data["security"]),
            }
        )
