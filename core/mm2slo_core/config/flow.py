"""`flows:`, each replication flow: what MirrorMaker 2 does, and what is expected of it."""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from mm2slo_core.config.audit import FlowAuditConfig
from mm2slo_core.config.canary import CanaryCarrier, CanaryConfig
from mm2slo_core.config.durations import Duration, SlowInterval
from mm2slo_core.config.fields import Flag, Patterns, Section, Text, TopicName, Whole
from mm2slo_core.config.names import Name
from mm2slo_core.config.refusal import Refusal
from mm2slo_core.internal_topics import OffsetSyncsLocation
from mm2slo_core.topology import Flow

# Kafka's DefaultTopicFilter, DefaultGroupFilter and DefaultConfigPropertyFilter (4.3).
DEFAULT_TOPICS_EXCLUDE: Final = (r"mm2.*\.internal", r".*\.replica", r"__.*")
DEFAULT_GROUPS_EXCLUDE: Final = ("console-consumer-.*", "connect-.*", "__.*")
DEFAULT_CONFIG_PROPERTIES_EXCLUDE: Final = (
    r"follower\.replication\.throttled\.replicas",
    r"leader\.replication\.throttled\.replicas",
    r"message\.timestamp\.difference\.max\.ms",
    r"log\.message\.timestamp\.before\.max\.ms",
    r"log\.message\.timestamp\.after\.max\.ms",
    r"message\.timestamp\.type",
    r"unclean\.leader\.election\.enable",
    r"min\.insync\.replicas",
)


class Engine(StrEnum):
    """What copies the records; only MirrorMaker 2 leaves its own traces on the clusters."""

    MIRRORMAKER2 = "mirrormaker2"
    DUAL_PRODUCE = "dual-produce"
    OTHER = "other"


_NOT_MIRRORMAKER: Final = frozenset({Engine.DUAL_PRODUCE.value, Engine.OTHER.value})


class PolicyKind(StrEnum):
    """How a topic is named on the target."""

    DEFAULT = "default"
    IDENTITY = "identity"


class Isolation(StrEnum):
    """Kafka's `isolation.level` of MirrorMaker 2's source consumer."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class PolicyConfig(Section):
    """MirrorMaker 2's replication policy."""

    kind: PolicyKind = Field(
        default=PolicyKind.DEFAULT,
        description="`default` adds the source's alias, `identity` does not.",
    )
    separator: Text = Field(
        default=".", description="`replication.policy.separator`, between alias and topic."
    )
    internal_separator: Flag = Field(
        default=True,
        description="`replication.policy.internal.topic.separator.enabled` (KIP-949).",
    )


class ConnectConfig(Section):
    """Names that MirrorMaker 2 on Kafka Connect chooses itself; null is the dedicated mode's."""

    offsets_topic: TopicName | None = Field(
        default=None,
        description="The worker's `offset.storage.topic`; null: `mm2-offsets.<source>.internal`.",
    )
    status_topic: TopicName | None = Field(
        default=None,
        description="The worker's `status.storage.topic`; null: `mm2-status.<source>.internal`.",
    )
    configs_topic: TopicName | None = Field(
        default=None,
        description="The worker's `config.storage.topic`; null: `mm2-configs.<source>.internal`.",
    )
    source_connector: Text = Field(
        default="MirrorSourceConnector", description="Name of the source connector."
    )
    checkpoint_connector: Text = Field(
        default="MirrorCheckpointConnector", description="Name of the checkpoint connector."
    )
    heartbeat_connector: Text = Field(
        default="MirrorHeartbeatConnector", description="Name of the heartbeat connector."
    )


class FreshnessClass(Section):
    """Topics that share one objective for their age on the target; the first match wins."""

    name: Name = Field(default="default", description="Name of the class, the `tier` label.")
    topics: Patterns = Field(
        default=(".*",), description="Source topics, as whole-name expressions."
    )
    threshold: Duration = Field(default=60.0, description="Lag in seconds that is still good.")


class ReadinessConfig(Section):
    """When a consumer group may fail over."""

    max_redelivery_records: Annotated[Whole, Field(ge=0)] = Field(
        default=10_000, description="Records a group may read again after a failover."
    )
    max_checkpoint_lag_records: Annotated[Whole, Field(ge=0)] = Field(
        default=10_000, description="Records a group's checkpoint may be behind its commit."
    )


def _flow(value: object) -> Flow:
    if isinstance(value, Flow):
        return value
    expected = "source->target with two aliases from clusters, as in us->eu"
    if not isinstance(value, str):
        raise Refusal("is not a flow", expected=expected)
    source, arrow, target = (part.strip() for part in value.partition("->"))
    if arrow and source and source == target:
        raise Refusal("leads a cluster to itself", expected=expected)
    try:
        return Flow.parse(value)
    except ValueError:
        raise Refusal("is not a flow", expected=expected) from None


class FlowConfig(Section):
    """One flow. Its defaults are MirrorMaker 2's own; `defaults:` changes them for all flows."""

    flow: Annotated[
        Flow, PlainValidator(_flow), PlainSerializer(lambda flow: flow.label, return_type=str)
    ] = Field(description="The flow by its cluster aliases, `source->target`.")
    engine: Engine = Field(default=Engine.MIRRORMAKER2, description="What copies the records.")
    topics: Patterns = Field(default=(".*",), description="MirrorMaker 2's `topics`.")
    topics_exclude: Patterns = Field(
        default=DEFAULT_TOPICS_EXCLUDE,
        description="MirrorMaker 2's `topics.exclude`; wins over `topics`.",
    )
    groups: Patterns = Field(default=(".*",), description="MirrorMaker 2's `groups`.")
    groups_exclude: Patterns = Field(
        default=DEFAULT_GROUPS_EXCLUDE,
        description="MirrorMaker 2's `groups.exclude`; wins over `groups`.",
    )
    policy: PolicyConfig = Field(
        default_factory=PolicyConfig,
        description="MirrorMaker 2's replication policy; of another engine `identity` by default.",
    )
    offset_syncs_location: OffsetSyncsLocation = Field(
        default=OffsetSyncsLocation.SOURCE, description="`offset-syncs.topic.location`."
    )
    isolation: Isolation = Field(
        default=Isolation.READ_UNCOMMITTED,
        description="`isolation.level` of MirrorMaker 2's consumer.",
    )
    exactly_once: Flag = Field(
        default=False, description="Whether the worker has `exactly.once.source.support=enabled`."
    )
    offset_flush_interval: Duration = Field(
        default=60.0, description="The worker's `offset.flush.interval.ms`."
    )
    checkpoint_interval: Duration = Field(
        default=60.0, description="`emit.checkpoints.interval.seconds`."
    )
    heartbeat_interval: Duration = Field(
        default=1.0, description="`emit.heartbeats.interval.seconds`."
    )
    config_properties_exclude: Patterns = Field(
        default=DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
        description="`config.properties.exclude`: topic settings that may differ.",
    )
    connect: ConnectConfig = Field(
        default_factory=ConnectConfig, description="Names on Kafka Connect."
    )
    canary: CanaryConfig = Field(
        default_factory=CanaryConfig, description="Our own records through the flow."
    )
    freshness: Annotated[tuple[FreshnessClass, ...], Field(min_length=1)] = Field(
        default=(FreshnessClass(),),
        description="Age objectives of the data; the last one matches all.",
    )
    slice: SlowInterval = Field(
        default=15.0, description="Length of one time slice of the data freshness SLI."
    )
    stall_after: SlowInterval = Field(
        default=30.0, description="Time without progress, with records waiting, that is a stall."
    )
    readiness: ReadinessConfig = Field(
        default_factory=ReadinessConfig, description="When a group may fail over."
    )
    audit: FlowAuditConfig = Field(
        default_factory=FlowAuditConfig, description="What an audit of this flow looks at."
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_without_mirrormaker(cls, data: Any) -> Any:
        # Only MirrorMaker 2 copies the heartbeats topic: elsewhere the default canary would be
        # lost every second. And only it puts an alias before the names, unless told otherwise.
        if not isinstance(data, dict) or str(data.get("engine")) not in _NOT_MIRRORMAKER:
            return data
        data = {"policy": {"kind": PolicyKind.IDENTITY.value}} | data
        canary = data.get("canary", {})
        if isinstance(canary, dict) and "carrier" not in canary:
            return data | {"canary": canary | {"carrier": CanaryCarrier.OFF.value}}
        return data

    @property
    def by_mirrormaker(self) -> bool:
        """Whether the engine leaves MirrorMaker 2's traces: syncs, commits, states, heartbeats."""
        return self.engine is Engine.MIRRORMAKER2

    @property
    def label(self) -> str:
        """The value of the `flow` label, as in `us->eu`."""
        return self.flow.label
