"""The topology of a lab: clusters, flows, their settings, and Kafka's release lines.

A version is `4.4.x` (newest patch) or exact, `4.4.0`. Errors of the lab:

UserError                 (mm2slo_core) reported to the user as one message
└ LabError                Java, Kafka's jars, a free port or a lab is missing, or in the way
  └── ProcessError          a process did not start, exited early, or did not become ready
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import permutations
from typing import Any, Self

from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError


class LabSecurity(StrEnum):
    """Security protocol of the brokers.

    With SASL, brokers run StandardAuthorizer: `admin` is the super user, other users need ACLs.
    """

    PLAINTEXT = "PLAINTEXT"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"  # mechanism PLAIN
    SASL_SSL = "SASL_SSL"  # mechanism SCRAM-SHA-512, with the lab's CA


class LabEngine(StrEnum):
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
DEFAULT_VERSION = "4.4.x"


@dataclass(frozen=True, slots=True)
class LabTopology:
    """Clusters, flows and their settings.

    `mm2_properties` and `broker_properties` override the lab's settings. Heap sizes are in MiB.
    With *far*, `Lab.set_round_trip` puts a long way before a cluster.
    """

    clusters: tuple[str, ...] = ("us", "eu")
    flows: tuple[Flow, ...] = (Flow("us", "eu"), Flow("eu", "us"))
    kafka_version: str = DEFAULT_VERSION
    engine: LabEngine = LabEngine.DEDICATED
    security: LabSecurity = LabSecurity.PLAINTEXT
    mm2_properties: Mapping[str, str] = field(default_factory=dict)
    broker_properties: Mapping[str, str] = field(default_factory=dict)
    broker_heap: int = 384
    mm2_heap: int = 384
    far: bool = False

    def __post_init__(self) -> None:
        """Raise LabError for an invalid topology."""
        if not self.clusters or len(set(self.clusters)) != len(self.clusters):
            raise LabError(
                f"invalid clusters {self.clusters!r}; expected one or more different names"
            )
        if self.far and self.security is not LabSecurity.PLAINTEXT:
            raise LabError(f"a far lab is {LabSecurity.PLAINTEXT} only; found {self.security}")
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
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Create a topology from `to_json`."""
        return cls(
            **{
                **data,
                "clusters": tuple(data["clusters"]),
                "flows": tuple(Flow.parse(label) for label in data["flows"]),
                "engine": LabEngine(data["engine"]),
                "security": LabSecurity(data["security"]),
            }
        )


SCALA = "2.13"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A Maven module; the revision may be dynamic in Ivy's notation, for example `4.1.+`."""

    organisation: str
    name: str
    revision: str


@dataclass(frozen=True, slots=True)
class ReleaseLine:
    """A Kafka minor release and its logging binding.

    Kafka 4 logs with log4j 2, Kafka 3 with reload4j; the SLF4J binding is not among the runtime
    dependencies of `kafka_2.13`. `topics_excluded` is the default of
    MirrorMaker 2's `topics.exclude` (KIP-1074 changed it in 4.0).
    """

    minor: str
    binding: Artifact
    java: int
    topics_excluded: str
    log_option: str
    log_config: str
    mirror: str = ""
    """The line whose MirrorMaker 2 runs with these brokers; its own if empty."""


_LOG4J2 = """\
status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = \
  [%d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC}] %p <%t> %X{connector.context}%m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""

_RELOAD4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

_KAFKA_3 = ReleaseLine(
    minor="3.9",
    binding=Artifact("org.slf4j", "slf4j-reload4j", "1.7.36"),
    java=11,
    topics_excluded=r".*[\-\.]internal, .*\.replica, __.*",
    log_option="log4j.configuration",
    log_config=_RELOAD4J,
)

_KAFKA_4 = ReleaseLine(
    minor="4.3",
    binding=Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    java=17,
    topics_excluded=r"mm2.*\.internal, .*\.replica, __.*",
    log_option="log4j2.configurationFile",
    log_config=_LOG4J2,
)

LINES = (
    # Its connect-mirror cannot be downloaded yet.
    replace(_KAFKA_4, minor="4.4", mirror="4.3"),
    _KAFKA_4,
    *(replace(_KAFKA_4, minor=minor) for minor in ("4.2", "4.1", "4.0")),
    _KAFKA_3,
)


def release_line(version: str) -> ReleaseLine:
    """Return the release line of *version*. Raises LabError if it is not supported."""
    for line in LINES:
        if version.startswith(f"{line.minor}."):
            return line
    known = ", ".join(f"{line.minor}.x" for line in LINES)
    raise LabError(
        f"unsupported Kafka version {version!r}; expected {known}, or a patch release of these"
    )


def mirror_version(version: str) -> str:
    """The version of MirrorMaker 2 that runs with brokers of *version*. Raises LabError."""
    line = release_line(version)
    return f"{line.mirror}.x" if line.mirror else version


def artifacts(version: str) -> tuple[Artifact, ...]:
    """Return the Maven modules of broker, Kafka's tools and, if released, MirrorMaker 2."""
    line = release_line(version)
    revision = f"{line.minor}.+" if version == f"{line.minor}.x" else version
    mirror = ("connect-mirror", "connect-mirror-client", "connect-runtime", "connect-json")
    kafka = (f"kafka_{SCALA}", "kafka-tools", *(() if line.mirror else mirror))
    return (*(Artifact("org.apache.kafka", name, revision) for name in kafka), line.binding)


class LabError(UserError):
    """The lab cannot do what was asked."""


class ProcessError(LabError):
    """A process did not start, exited early, or did not become ready in time."""
