"""`clusters:` and `flows:`, with their `canary:` and `audit:`.

A flow has MirrorMaker 2's settings, and how to observe them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    model_validator,
)

from mm2slo_core.audit.audit_conclusion import MAX_DUPLICATE_RATIO
from mm2slo_core.audit.fingerprint import HEADER, Identity
from mm2slo_core.config.client_security import Security, librdkafka_properties
from mm2slo_core.config.config_section import Example, Section, SectionFinding
from mm2slo_core.config.exporter_settings import (
    CanaryCarrier,
    CanarySettings,
    ClusterSettings,
    ConnectSettings,
    Engine,
    FlowSettings,
    FreshnessSettings,
    Isolation,
    PolicyKind,
    PolicySettings,
    ReadinessSettings,
    SettingsSource,
)
from mm2slo_core.config.field_types import (
    Duration,
    Flag,
    Interval,
    KafkaVersionText,
    Name,
    Patterns,
    Properties,
    Share,
    SlowInterval,
    Text,
    TopicName,
    Whole,
)
from mm2slo_core.config.secret import Secret
from mm2slo_core.indicators.sli_counters import ALL
from mm2slo_core.java_values import read_servers, split_list
from mm2slo_core.quantity_text import InvalidValueError, format_duration
from mm2slo_core.replication_policy import OffsetSyncsLocation
from mm2slo_core.topic_filters import (
    DEFAULT_GROUPS,
    DEFAULT_GROUPS_EXCLUDE,
    DEFAULT_TOPICS,
    default_topics_exclude,
)
from mm2slo_core.topology import Flow

# Kafka's DefaultTopicFilter and DefaultConfigPropertyFilter (4.3).
DEFAULT_TOPICS_EXCLUDE: Final = default_topics_exclude()

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


_NOT_MIRRORMAKER: Final = frozenset({Engine.DUAL_PRODUCE.value, Engine.OTHER.value})


class PolicyConfig(Section, PolicySettings):
    """MirrorMaker 2's replication policy."""

    kind: PolicyKind = PolicyKind.DEFAULT
    """`default` adds the source alias, `identity` does not."""
    separator: str = "."
    """`replication.policy.separator`, between alias and topic; may be empty for `identity`."""
    internal_separator: Flag = True
    """`replication.policy.internal.topic.separator.enabled` (KIP-949)."""


class ConnectConfig(Section, ConnectSettings):
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


class FreshnessConfig(Section, FreshnessSettings):
    """Topics with one data freshness objective; the first match applies."""

    name: Name = "default"
    """Name of the class, and value of the `tier` label; not `all`, the tier of other SLIs."""
    topics: Patterns = (".*",)
    """Source topics, as regular expressions for whole names."""
    threshold: Duration = 60.0
    """Largest lag that is good."""


class ReadinessConfig(Section, ReadinessSettings):
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


class CanaryConfig(Section, CanarySettings):
    """How the canary is sent, and its deadline."""

    carrier: CanaryCarrier = CanaryCarrier.HEARTBEATS
    """`heartbeats` needs no change in MirrorMaker 2; `topic` covers every task."""
    topic: TopicName = "mm2slo.canary"
    """Canary topic for `carrier: topic`."""
    interval: Interval = 1.0
    """Time between two canaries."""
    deadline: Duration = 60.0
    """A canary that arrives later is bad for availability."""
    latency_tiers: Annotated[tuple[Duration, ...], Field(min_length=1)] = (10.0, 60.0)
    """Thresholds of the latency SLI, ascending, at most `deadline`."""

    def check(self) -> Iterator[SectionFinding]:
        tiers = self.latency_tiers
        if list(tiers) != sorted(set(tiers)):
            yield SectionFinding(
                ("latency_tiers",), "are not ascending", "each threshold once, smallest first"
            )
        if max(tiers) > self.deadline:
            yield SectionFinding(
                ("latency_tiers",), f"{format_duration(max(tiers))} is longer than the deadline",
                f"thresholds up to {format_duration(self.deadline)}, when a canary is settled",
                "remove the threshold or increase deadline",
            )  # fmt: skip
        if self.interval > self.deadline:
            what = f"{format_duration(self.interval)} is longer than the deadline"
            yield SectionFinding(("interval",), what, f"up to {format_duration(self.deadline)}")


def _masked_part(value: str) -> str:
    if value not in {"key", "value"} and (not value.startswith(HEADER) or value == HEADER):
        raise InvalidValueError(
            "is not a part of a record", expected="key, value, or header: and a name"
        )
    return value


MaskedPart = Annotated[Text, AfterValidator(_masked_part)]


class IdentityConfig(Section):
    """The parts of a record that must arrive unchanged; disable what the flow changes."""

    key: Flag = True
    """Whether keys are compared."""
    value: Flag = True
    """Whether values are compared."""
    headers: Flag = True
    """Whether headers are compared, in order."""
    timestamp: Flag = True
    """Whether timestamps are compared."""
    ignored_headers: tuple[Text, ...] = ()
    """Headers that the flow adds, changes or removes."""
    must_change: tuple[MaskedPart, ...] = ()
    """Masked parts (`key`, `value`, `header:NAME`), not compared; an unchanged one is a fault."""
    hmac_key: Secret | None = None
    """Key for HMAC-SHA-256 fingerprints, for payloads that could be guessed."""

    def check(self) -> Iterator[SectionFinding]:
        if not (self.key or self.value or self.headers):
            yield SectionFinding(
                (), "excludes key, value and headers", "at least one of key, value and headers"
            )
        if self.ignored_headers and not self.headers:
            what = "has no effect with headers: false"
            yield SectionFinding(("ignored_headers",), what, "headers: true", "remove it")

    @property
    def identity(self) -> Identity:
        """The identity for the audit, with the key in plain text."""
        masked = {part.removeprefix(HEADER) for part in self.must_change if part.startswith(HEADER)}
        return Identity(
            key=self.key and "key" not in self.must_change,
            value=self.value and "value" not in self.must_change,
            headers=self.headers,
            timestamp=self.timestamp,
            ignored_headers=tuple(sorted({*self.ignored_headers, *masked})),
            must_change=self.must_change,
            hmac_key=None if self.hmac_key is None else self.hmac_key.reveal().encode(),
        )


class FlowAuditConfig(Section):
    """What an audit of this flow compares."""

    topics: Patterns = (".*",)
    """Source topics to audit, of those that the flow replicates."""
    topics_exclude: Patterns = ()
    """Source topics not to audit; takes precedence over `topics`."""
    max_pending: Duration = 300.0
    """Age from which an unreplicated record is overdue, which is a fault."""
    identity: IdentityConfig = IdentityConfig()
    """What must arrive unchanged; disable what the flow changes."""


_MATCH_ALL: Final = frozenset({".*", ".+"})


class FlowConfig(Section, FlowSettings):
    """One flow. Its defaults are those of MirrorMaker 2; `defaults:` changes them for all flows."""

    flow: Annotated[
        Flow, PlainValidator(_flow), PlainSerializer(lambda flow: flow.label, return_type=str)
    ]
    """The flow as `source->target`, by cluster aliases."""
    engine: Engine = Engine.MIRRORMAKER2
    """The replication engine."""
    kafka_version: KafkaVersionText | None = Field(default=None, examples=["3.7.0"])
    """MirrorMaker 2's Kafka version; before 3.7.1, a restart forgets offset syncs; null: newer."""
    settings: SettingsSource = SettingsSource.OBSERVED
    """`observed`: settings that the exporter finds in running connectors override configured ones
    (`isolation`, `exactly_once`, `transforms`, `checkpoint_interval`, `offset_lag_max`,
    `heartbeat_interval`, `emit_heartbeats`);
    `configured`: they are ignored."""
    topics: Patterns = DEFAULT_TOPICS
    """MirrorMaker 2's `topics`."""
    topics_exclude: Patterns = DEFAULT_TOPICS_EXCLUDE
    """MirrorMaker 2's `topics.exclude`; takes precedence over `topics`."""
    groups: Patterns = DEFAULT_GROUPS
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
    offset_lag_max: Annotated[Whole, Field(ge=0)] = 100
    """`offset.lag.max`: records after which MirrorMaker 2 writes the next offset sync."""
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
    """Names on Kafka Connect; null: those of dedicated mode."""
    canary: CanaryConfig = CanaryConfig()
    """Records that mm2slo sends through the flow."""
    freshness: Annotated[tuple[FreshnessConfig, ...], Field(min_length=1)] = (FreshnessConfig(),)
    """Classes of the data freshness SLI: the first match applies, the last one must match all."""
    slice: SlowInterval = 15.0
    """Length of one time slice of the data freshness SLI."""
    stall_after: SlowInterval = 30.0
    """Time without progress after which a partition with lag is stalled."""
    readiness: ReadinessConfig = ReadinessConfig()
    """Limits for failover readiness."""
    audit: FlowAuditConfig = FlowAuditConfig()
    """What an audit of this flow compares."""

    stand_ins: ClassVar = {"flow": Flow("\0source", "\0target")}
    has_independent_fields: ClassVar = True

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

    def check(self) -> Iterator[SectionFinding]:
        # Without a separator, no name is that of heartbeats (DefaultReplicationPolicy).
        has_names = self.policy.separator or self.policy.kind is PolicyKind.DEFAULT
        how = "with an empty separator" if self.by_mirrormaker else f"by the engine {self.engine}"
        is_replicated = self.by_mirrormaker and has_names
        if not is_replicated and self.canary.carrier is CanaryCarrier.HEARTBEATS:
            yield SectionFinding(
                ("canary", "carrier"),
                f"'heartbeats' is not replicated {how}",
                "topic or off",
                "set carrier to topic if the engine replicates that topic, otherwise to off",
            )  # fmt: skip
        yield from self._check_freshness()
        yield from self._check_policy()

    def _check_freshness(self) -> Iterator[SectionFinding]:
        if not _MATCH_ALL.intersection(self.freshness[-1].topics):
            yield SectionFinding(
                ("freshness",), "does not match all topics",
                'a last class with topics: [".*"]',
                'add {name: default, topics: [".*"], threshold: 60s} as the last one',
            )  # fmt: skip
        for name, count in Counter(level.name for level in self.freshness).items():
            if count > 1:
                yield SectionFinding(
                    ("freshness",), f"has {count} classes named {name!r}", "unique names"
                )
        for index, level in enumerate(self.freshness):
            if level.name == ALL:
                yield SectionFinding(
                    ("freshness", index, "name"), f"is {ALL!r}", "another name",
                    "rename the class: alerts and dashboards omit that tier",
                )  # fmt: skip
        for index, level in enumerate(self.freshness[:-1]):
            if _MATCH_ALL.intersection(level.topics):
                yield SectionFinding(
                    ("freshness", index),
                    "matches every topic, so the classes after it never apply",
                    "the class that matches all topics last",
                )  # fmt: skip

    def _check_policy(self) -> Iterator[SectionFinding]:
        separator = self.policy.separator
        if self.policy.kind is not PolicyKind.DEFAULT or not self.by_mirrormaker:
            return
        if not separator.strip():
            yield SectionFinding(("policy", "separator"), "is empty", "text, or kind: identity")
            return
        for alias in (self.flow.source, self.flow.target):
            if separator in alias:
                yield SectionFinding(
                    ("policy", "separator"), f"{separator!r} is part of the alias {alias!r}",
                    "a separator that no alias contains: MirrorMaker 2 splits topic names at it",
                    "change the alias or the separator in MirrorMaker 2 and here",
                )  # fmt: skip


def _bootstrap_servers(value: object) -> str:
    expected = 'host:port, or several separated by commas, as in "eu-1:9093,eu-2:9093"'
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = ",".join(value)
    if not isinstance(value, str):
        raise InvalidValueError("is not text", expected=expected)
    servers = [each for each in split_list(value) if each]
    for server in servers or [value]:
        if read_servers(server) is None:
            raise InvalidValueError(
                f"contains the invalid server {server!r}",
                expected=expected,
                next_step="write IPv6 addresses in brackets, as in [::1]:9092",
            )
    return ",".join(each.rpartition("://")[2] for each in servers)


_OWN_PROPERTIES: Final = frozenset(
    {
        "bootstrap.servers", "metadata.broker.list", "group.id", "enable.auto.commit",
        "enable.auto.offset.store", "auto.offset.reset", "isolation.level", "transactional.id",
    }
)  # fmt: skip


CLUSTER_EXAMPLES: Final = [
    Example({
        "us": {"bootstrap_servers": "127.0.0.1:19092", "security": {"protocol": "PLAINTEXT"}}
    }, "MirrorMaker 2's alias of the cluster"),
    Example({
        "eu": {
            "bootstrap_servers": "eu-1:9093,eu-2:9093",
            "security": {
                "protocol": "SASL_SSL",
                "sasl": {
                    "mechanism": "SCRAM-SHA-512",
                    "username": "app",
                    "password": "${env:EU_PASSWORD}",
                },
                "tls": {
                    "ca_file": "/etc/mm2slo/ca.pem",
                    "certificate_file": "/etc/mm2slo/client.pem",
                    "key_file": "/etc/mm2slo/client-key.pem",
                    "key_password": "${file:/run/secrets/key_password}",
                },
            },
            "client": {"socket.keepalive.enable": True},
        }
    }, "SCRAM over TLS with a client certificate"),
    Example({
        "ap": {
            "bootstrap_servers": ["ap-1:9093", "ap-2:9093"],
            "security": {
                "protocol": "SASL_SSL",
                "sasl": {
                    "mechanism": "OAUTHBEARER",
                    "oauth": {
                        "token_endpoint": "https://login.example.com/token",
                        "client_id": "mm2slo",
                        "client_secret": "${env:AP_CLIENT_SECRET}",
                    },
                },
            },
        }
    }, "a token from an identity provider"),
    Example({
        "sa": {
            "bootstrap_servers": "b-1.sa.kafka.sa-east-1.amazonaws.com:9098",
            "security": {
                "protocol": "SASL_SSL",
                "sasl": {
                    "mechanism": "AWS_MSK_IAM", "aws_region": "sa-east-1", "aws_role_arn": None
                },
            },
        }
    }, "Amazon MSK with IAM; needs the extra msk"),
]  # fmt: skip


class ClusterConfig(Section, ClusterSettings):
    """One Kafka cluster, by its MirrorMaker 2 alias."""

    bootstrap_servers: Annotated[str, BeforeValidator(_bootstrap_servers)]
    """Bootstrap brokers: `host:port`, comma-separated or a list."""
    security: Security = Security()
    """Encryption and authentication."""
    client: Properties = Field(default_factory=dict)
    """Additional librdkafka properties, passed through unchanged; never shown."""

    stand_ins: ClassVar = {"bootstrap_servers": "unknown:1"}

    def check(self) -> Iterator[SectionFinding]:
        """`client` sets only properties that have no other key."""
        rendered = librdkafka_properties(self.security)
        for name in self.client:
            if name in rendered or name in _OWN_PROPERTIES or name.startswith("sasl."):
                of_security = name in rendered or name.startswith("sasl.")
                owner = "security" if of_security else "mm2slo itself"
                yield SectionFinding(
                    ("client", name), f"is set by {owner}",
                    "librdkafka properties that are not set elsewhere", "remove it",
                )  # fmt: skip

    def librdkafka_properties(self) -> dict[str, str]:
        """The connection properties of a librdkafka client, with secrets in plain text."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            **librdkafka_properties(self.security),
            **{name: value.reveal() for name, value in self.client.items()},
        }

    def as_settings(self) -> ClusterSettings:
        properties = self.librdkafka_properties()
        connection = {name: Secret(value) for name, value in properties.items()}
        return ClusterSettings.of({"connection": connection})


_SPARK_OWNED: Final = {
    "spark.master": "audit.spark.master",
    "spark.driver.memory": "audit.spark.driver_memory",
    "spark.jars": "audit.spark.jars",
    "spark.jars.ivy": "audit.spark.ivy_dir",
    "spark.sql.session.timeZone": "mm2slo itself",
}


class SparkConfig(Section):
    """The Spark session of the audit."""

    master: Text = "local[*]"
    """Spark master; `spark-submit` takes precedence. `local[*]`: as many tasks as use all cores,
    `local[N]`: N tasks."""
    driver_memory: Text | None = None
    """Heap of a local Spark; null: 1g for fewer than 10 million records, else a
    quarter of the memory, at most 4g."""
    jars: Text | None = None
    """Folder with the jars of the Kafka connector; null: resolved by Ivy."""
    ivy_dir: Text | None = None
    """Ivy cache; null: the cache of the user."""
    conf: Properties = Field(default_factory=dict)
    """Additional Spark properties, passed through unchanged."""

    def check(self) -> Iterator[SectionFinding]:
        """`conf` contains only Spark properties that have no other key."""
        for name in self.conf:
            owner = _SPARK_OWNED.get(name)
            if owner is not None:
                yield SectionFinding(
                    ("conf", name), f"is set by {owner}",
                    "Spark properties that are not set elsewhere", "remove it",
                )  # fmt: skip
            elif not name.startswith("spark."):
                what, expected = "is not a Spark property", "names that start with spark."
                yield SectionFinding(("conf", name), what, expected)


class AuditConfig(Section):
    """The audit: where it runs, what it reads, and where it stores its results."""

    store: Secret = Field(
        default=Secret("sqlite:///mm2slo.db"),
        examples=["postgresql+psycopg://user:${env:PASSWORD}@host/database"],
    )
    """Results store: an SQLAlchemy URL for SQLite or PostgreSQL."""
    directory: Text = "mm2slo-audit"
    """Folder for record detail (Parquet); any path that Spark can write."""
    sample: Share = 0.01
    """Share of the records to audit; `100%` is a census."""
    max_duplicate_ratio: Share = MAX_DUPLICATE_RATIO
    """Share of a topic's replicated records that were copied again, above which the verdict is
    `duplicated`."""
    spark: SparkConfig = SparkConfig()
    """The Spark session of the audit."""
