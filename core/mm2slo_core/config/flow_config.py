"""`flows:`, the replication flows: MirrorMaker 2's settings, and how to observe them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from mm2slo_core.config.audit_config import FlowAuditConfig
from mm2slo_core.config.canary_config import CanaryCarrier, CanaryConfig
from mm2slo_core.config.durations import Duration, SlowInterval
from mm2slo_core.config.field_types import (
    Flag,
    KafkaVersionText,
    Patterns,
    Section,
    Text,
    TopicName,
    Whole,
)
from mm2slo_core.config.invalid_value import InvalidValueError
from mm2slo_core.config.text_fields import Name
from mm2slo_core.internal_topics import OffsetSyncsLocation
from mm2slo_core.offset_sync_store import keeps_offset_syncs
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
    """The replication engine; only MirrorMaker 2 writes internal topics."""

    MIRRORMAKER2 = "mirrormaker2"
    DUAL_PRODUCE = "dual-produce"
    OTHER = "other"


_NOT_MIRRORMAKER: Final = frozenset({Engine.DUAL_PRODUCE.value, Engine.OTHER.value})


class PolicyKind(StrEnum):
    """How source topic names map to target topic names."""

    DEFAULT = "default"
    IDENTITY = "identity"


class Isolation(StrEnum):
    """Kafka's `isolation.level` of MirrorMaker 2's source consumer."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class SettingsSource(StrEnum):
    """Where settings of MirrorMaker 2 come from."""

    OBSERVED = "observed"
    CONFIGURED = "configured"


class PolicyConfig(Section):
    """MirrorMaker 2's replication policy."""

    kind: PolicyKind = PolicyKind.DEFAULT
    """`default` adds the source alias, `identity` does not."""
    separator: Text = "."
    """`replication.policy.separator`, between alias and topic."""
    internal_separator: Flag = True
    """`replication.policy.internal.topic.separator.enabled` (KIP-949)."""


class ConnectConfig(Section):
    """Names that are configurable on Kafka Connect; null: the names of dedicated mode."""

    offsets_topic: TopicName | None = None
    """The worker's `offset.storage.topic`; null: `mm2-offsets.<source>.internal`."""
    status_topic: TopicName | None = None
    """The worker's `status.storage.topic`; null: `mm2-status.<source>.internal`."""
    configs_topic: TopicName | None = None
    """The worker's `config.storage.topic`; null: `mm2-configs.<source>.internal`."""
    source_connector: Text = "MirrorSourceConnector"
    """Name of the source connector."""
    checkpoint_connector: Text = "MirrorCheckpointConnector"
    """Name of the checkpoint connector."""
    heartbeat_connector: Text = "MirrorHeartbeatConnector"
    """Name of the heartbeat connector."""


class FreshnessClass(Section):
    """Topics with one data freshness objective; the first match applies."""

    name: Name = "default"
    """Name of the class, and value of the `tier` label."""
    topics: Patterns = (".*",)
    """Source topics, as regular expressions for whole names."""
    threshold: Duration = 60.0
    """Largest lag that is good."""


class ReadinessConfig(Section):
    """Limits for the failover readiness of consumer groups."""

    max_redelivery_records: Annotated[Whole, Field(ge=0)] = 10_000
    """Largest redelivery after a failover, in records."""
    max_checkpoint_lag_records: Annotated[Whole, Field(ge=0)] = 10_000
    """Largest distance of a checkpoint from the committed offset, in records."""


def _flow(value: object) -> Flow:
    if isinstance(value, Flow):
        return value
    what, text = "is not a flow", value if isinstance(value, str) else ""
    try:
        return Flow.parse(text)
    except ValueError:
        source, _, target = (part.strip() for part in text.partition("->"))
        if source and source == target:
            what = "has the same source and target"
        expected = "source->target with two aliases from clusters, as in us->eu"
        raise InvalidValueError(what, expected=expected) from None


class FlowConfig(Section):
    """One flow. Its defaults are those of MirrorMaker 2; `defaults:` changes them for all flows."""

    flow: Annotated[
        Flow, PlainValidator(_flow), PlainSerializer(lambda flow: flow.label, return_type=str)
    ]
    """The flow as `source->target`, by cluster aliases."""
    engine: Engine = Engine.MIRRORMAKER2
    """The replication engine."""
    kafka_version: KafkaVersionText | None = None
    """MirrorMaker 2's Kafka version; before 3.7.1, a restart forgets offset syncs; null: newer."""
    settings: SettingsSource = SettingsSource.OBSERVED
    """`observed`: settings that the exporter finds in running connectors override configured ones
    (`isolation`, `exactly_once`, `transforms`, `checkpoint_interval`, `heartbeat_interval`,
    `emit_heartbeats`);
    `configured`: they are ignored."""
    topics: Patterns = (".*",)
    """MirrorMaker 2's `topics`."""
    topics_exclude: Patterns = DEFAULT_TOPICS_EXCLUDE
    """MirrorMaker 2's `topics.exclude`; takes precedence over `topics`."""
    groups: Patterns = (".*",)
    """MirrorMaker 2's `groups`."""
    groups_exclude: Patterns = DEFAULT_GROUPS_EXCLUDE
    """MirrorMaker 2's `groups.exclude`; takes precedence over `groups`."""
    policy: PolicyConfig = PolicyConfig()
    """MirrorMaker 2's replication policy; `identity` by default for other engines."""
    offset_syncs_location: OffsetSyncsLocation = OffsetSyncsLocation.SOURCE
    """`offset-syncs.topic.location`."""
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    """`isolation.level` of MirrorMaker 2's consumer."""
    exactly_once: Flag = False
    """Whether the worker has `exactly.once.source.support=enabled`."""
    offset_flush_interval: Duration = 60.0
    """The worker's `offset.flush.interval.ms`."""
    checkpoint_interval: Duration = 60.0
    """`emit.checkpoints.interval.seconds`."""
    heartbeat_interval: Duration = 1.0
    """`emit.heartbeats.interval.seconds` of the opposite flow, which writes the heartbeats."""
    emit_heartbeats: Flag = True
    """`emit.heartbeats.enabled` of the opposite flow."""
    transforms: Mapping[str, str] = {}
    """`transforms` of MirrorMaker 2's source connector, by the keys `transforms`, `transforms.*`,
    `predicates`, `predicates.*` and `errors.tolerance`: they may rename copies or drop records."""
    config_properties_exclude: Patterns = DEFAULT_CONFIG_PROPERTIES_EXCLUDE
    """`config.properties.exclude`: topic settings that are allowed to differ."""
    connect: ConnectConfig = ConnectConfig()
    """Names on Kafka Connect."""
    canary: CanaryConfig = CanaryConfig()
    """Records that mm2slo sends through the flow."""
    freshness: Annotated[tuple[FreshnessClass, ...], Field(min_length=1)] = (FreshnessClass(),)
    """Classes of the data freshness SLI; the last one must match all topics."""
    slice: SlowInterval = 15.0
    """Length of one time slice of the data freshness SLI."""
    stall_after: SlowInterval = 30.0
    """Time without progress after which a partition with lag is stalled."""
    readiness: ReadinessConfig = ReadinessConfig()
    """Limits for failover readiness."""
    audit: FlowAuditConfig = FlowAuditConfig()
    """What an audit of this flow compares."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_without_mirrormaker(cls, data: Any) -> Any:
        # Other engines replicate no heartbeats topic, so that the default canary would always be
        # lost, and usually do not rename topics.
        if not isinstance(data, dict) or str(data.get("engine")) not in _NOT_MIRRORMAKER:
            return data
        data = {"policy": {"kind": PolicyKind.IDENTITY.value}} | data
        canary = data.get("canary", {})
        if isinstance(canary, dict) and "carrier" not in canary:
            return data | {"canary": canary | {"carrier": CanaryCarrier.OFF.value}}
        return data

    @property
    def by_mirrormaker(self) -> bool:
        """Whether the engine writes MirrorMaker 2's internal topics and heartbeats."""
        return self.engine is Engine.MIRRORMAKER2

    @property
    def keeps_offset_syncs(self) -> bool:
        """Whether MirrorMaker 2 uses older offset syncs after a restart."""
        return self.kafka_version is None or keeps_offset_syncs(self.kafka_version)

    @property
    def label(self) -> str:
        """The value of the `flow` label, as in `us->eu`."""
        return self.flow.label
