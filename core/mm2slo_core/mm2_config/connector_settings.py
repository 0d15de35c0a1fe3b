"""The keys of MirrorMaker 2's connectors, their precedence, and which decide what is copied.

Sources: the definitions of `MirrorSourceConfig`, `MirrorCheckpointConfig`, `MirrorHeartbeatConfig`,
`SourceConnectorConfig`, `DistributedConfig`, `MirrorClientConfig` (Kafka 4.1) and the filters.

Dedicated mode: as `clusterProps`, `connectorBaseConfig`, `workerConfig` and `clusterPairs` of
Kafka's `MirrorMakerConfig`. What Kafka adds itself (`name`, `source.cluster.alias`) is left out.

Effects: with the precedence and defaults of `MirrorSourceConfig`, `MirrorCheckpointConfig` and
Connect.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from mm2slo_core.config.config_document import suggest_typo
from mm2slo_core.config.flow_config import DEFAULT_CONFIG_PROPERTIES_EXCLUDE
from mm2slo_core.java_values import read_boolean, read_integer, read_servers, split_list, trim
from mm2slo_core.mm2_config.mirror_setup import (
    ConnectorKind,
    Form,
    MirrorFlow,
    Setting,
    Settings,
    Worker,
)
from mm2slo_core.mm2_config.running_settings import RENAMED
from mm2slo_core.replication_policy import DEFAULT_VERSION, KafkaVersion, connect_topic
from mm2slo_core.topic_filters import default_topics_exclude
from mm2slo_core.topology import Flow

# By the connectors that act on them: source (S), checkpoint (C), heartbeat (H). Each is
# NAME[=DEFAULT][@SINCE[-REMOVED[:NEW_NAME]]]; without SINCE: 2.4. Classes have no package, and a
# default that depends on the version is left out.
_KEYS_BY_KINDS: Final = {
    "SCH": """
admin.timeout.ms=60000 auto.include.jmx.reporter=true@3.4-4.0 config.action.reload=restart
config.providers connector.class connector.plugin.version@4.1 errors.log.enable=false
errors.log.include.messages=false errors.retry.delay.max.ms=60000 errors.retry.timeout=0
errors.tolerance=none forwarding.admin.class=ForwardingAdmin@3.4 header.converter
header.converter.plugin.version@4.1 key.converter key.converter.plugin.version@4.1
metric.reporters=JmxReporter name offsets.storage.topic@3.3 predicates@2.6
replication.policy.class=DefaultReplicationPolicy
replication.policy.internal.topic.separator.enabled=true@3.1 replication.policy.separator=.
source.cluster.alias target.cluster.alias=target transforms value.converter
value.converter.plugin.version@4.1""",
    "SC": """
consumer.poll.timeout.ms=1000 emit.offset-syncs.enabled=true@3.9 enabled=true
metric.names.formats=legacy@4.3 offset-syncs.topic.location=source@3.0 tasks.max=1
tasks.max.enforce=true@3.8 topic.filter.class=DefaultTopicFilter topics=.*
topics.blacklist@2.4-4.0:topics.exclude topics.exclude@2.7""",
    "S": """
add.source.alias.to.metrics=false@3.5-4.0 config.properties.exclude@2.7
config.properties.blacklist@2.4-4.0:config.properties.exclude
config.property.filter.class=DefaultConfigPropertyFilter exactly.once.support=requested@3.3
heartbeats.replication.enabled=true@4.0 offset-syncs.topic.replication.factor=3 offset.lag.max=100
refresh.topics.enabled=true refresh.topics.interval.seconds=600 replication.factor=2
sync.topic.acls.enabled=true sync.topic.acls.interval.seconds=600 sync.topic.configs.enabled=true
sync.topic.configs.interval.seconds=600 transaction.boundary=poll@3.3
transaction.boundary.interval.ms@3.3 use.defaults.from=target@3.5
use.incremental.alter.configs=requested@3.5-4.0""",
    "C": """
checkpoints.topic.replication.factor=3 emit.checkpoints.enabled=true
emit.checkpoints.interval.seconds=60 group.filter.class=DefaultGroupFilter groups=.*
groups.blacklist@2.4-4.0:groups.exclude groups.exclude=console-consumer-.*,connect-.*,__.*@2.7
refresh.groups.enabled=true refresh.groups.interval.seconds=600
sync.group.offsets.enabled=false@2.7 sync.group.offsets.interval.seconds=60@2.7""",
    "H": """
emit.heartbeats.enabled=true emit.heartbeats.interval.seconds=1
heartbeats.topic.replication.factor=3""",
}

_PREFIXES: Final = {
    "SCH": "admin. admin.override. config.providers. header.converter. key.converter. predicates."
    " producer.override. replication.policy. target.admin. transforms. value.converter.",
    "SC": "consumer. source.admin. source.consumer.",
    "S": "producer. source.producer. target.producer. topic.creation.",
    "C": "target.consumer.",
    # MirrorMaker 2's consumers take no override, and only client keys of a cluster.
    "": "consumer.override. source.cluster. target.cluster.",
}

# Connect and a filter read these, but no definition of MirrorMaker 2's connectors has them.
_NOT_DEFINED: Final = {
    *("exactly.once.support", "offsets.storage.topic", "use.defaults.from"),
    *("transaction.boundary", "transaction.boundary.interval.ms"),
}

# Values of texts that are not free; the last of them have no default.
_CHOICES: Final = {
    "config.action.reload": ("none", "restart"),
    "errors.tolerance": ("none", "all"),
    "offset-syncs.topic.location": ("source", "target"),
    "exactly.once.support": ("requested", "required"),
    "transaction.boundary": ("poll", "interval", "connector"),
    "exactly.once.source.support": ("disabled", "preparing", "enabled"),
}
_ANY_CASE: Final = {"exactly.once.support", "transaction.boundary", "exactly.once.source.support"}
_LOWEST: Final = {"tasks.max": 1, "transaction.boundary.interval.ms": 0}

_LISTS: Final = {
    *("topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude"),
    *("metric.reporters", "config.providers"),
}

_STRICT_LISTS: Final = KafkaVersion(4, 2)
"""Refuses blank and repeated items of `_LISTS` (KIP-1161)."""
_BITS: Final = {".topic.replication.factor": 16, "replication.factor": 32, "tasks.max": 32}
_NUMBERS: Final = (".ms", ".replication.factor", ".partitions")

_SASL: Final = """
client.callback.handler.class jaas.config kerberos.kinit.cmd kerberos.min.time.before.relogin
kerberos.service.name kerberos.ticket.renew.jitter kerberos.ticket.renew.window.factor
login.callback.handler.class login.class login.connect.timeout.ms login.read.timeout.ms
login.refresh.buffer.seconds login.refresh.min.period.seconds login.refresh.window.factor
login.refresh.window.jitter login.retry.backoff.max.ms login.retry.backoff.ms mechanism
oauthbearer.assertion.algorithm oauthbearer.assertion.claim.aud oauthbearer.assertion.claim.iss
oauthbearer.assertion.claim.exp.seconds oauthbearer.assertion.claim.jti.include
oauthbearer.assertion.claim.nbf.seconds oauthbearer.assertion.claim.sub oauthbearer.assertion.file
oauthbearer.assertion.private.key.file oauthbearer.assertion.private.key.passphrase
oauthbearer.assertion.template.file oauthbearer.client.credentials.client.id
oauthbearer.client.credentials.client.secret oauthbearer.clock.skew.seconds
oauthbearer.expected.audience oauthbearer.expected.issuer oauthbearer.header.urlencode
oauthbearer.jwks.endpoint.refresh.ms oauthbearer.jwks.endpoint.retry.backoff.max.ms
oauthbearer.jwks.endpoint.retry.backoff.ms oauthbearer.jwks.endpoint.url oauthbearer.scope
oauthbearer.jwt.retriever.class oauthbearer.jwt.validator.class oauthbearer.scope.claim.name
oauthbearer.sub.claim.name oauthbearer.token.endpoint.url"""

_SSL: Final = """
cipher.suites enabled.protocols endpoint.identification.algorithm engine.factory.class key.password
keymanager.algorithm keystore.certificate.chain keystore.key keystore.location keystore.password
keystore.type protocol provider secure.random.implementation trustmanager.algorithm
truststore.certificates truststore.location truststore.password truststore.type"""

_WORKER: Final = """
access.control.allow.methods access.control.allow.origin admin.listeners auto.include.jmx.reporter
bootstrap.resolve.timeout.ms client.dns.lookup client.id config.providers
config.storage.replication.factor config.storage.topic connect.protocol connections.max.idle.ms
connector.client.config.override.policy exactly.once.source.support group.id heartbeat.interval.ms
inter.worker.key.generation.algorithm inter.worker.key.size inter.worker.key.ttl.ms
inter.worker.signature.algorithm inter.worker.verification.algorithms
internal.topics.automatic.creation.enable listeners metadata.cluster.check.enable
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
offset.flush.interval.ms
offset.flush.timeout.ms offset.storage.partitions offset.storage.replication.factor
offset.storage.topic plugin.discovery plugin.path rebalance.timeout.ms receive.buffer.bytes
reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms response.http.headers.config
rest.advertised.host.name rest.advertised.listener rest.advertised.port rest.extension.classes
retry.backoff.max.ms retry.backoff.ms scheduled.rebalance.max.delay.ms send.buffer.bytes
session.timeout.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
ssl.client.auth status.storage.partitions status.storage.replication.factor status.storage.topic
task.shutdown.graceful.timeout.ms topic.creation.enable topic.tracking.allow.reset
topic.tracking.enable worker.sync.timeout.ms worker.unsync.backoff.ms"""

# Of the configurations of Kafka's clients (up to 4.4), beyond CLIENT_KEYS: of all, and of each.
_ALL_CLIENTS: Final = """
bootstrap.resolve.timeout.ms client.dns.lookup client.id connections.max.idle.ms enable.metrics.push
metadata.cluster.check.enable metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level
metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
request.timeout.ms retry.backoff.max.ms retry.backoff.ms security.providers send.buffer.bytes
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms auto.include.jmx.reporter
sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer"""

_CLIENTS: Final = {
    "producer": """
acks batch.size buffer.memory buffer.memory.allocation.strategy client.rack compression.gzip.level
compression.lz4.level compression.type compression.zstd.level delivery.timeout.ms enable.idempotence
interceptor.classes key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
max.request.size metadata.max.idle.ms partitioner.adaptive.partitioning.enable
partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys partitioner.rack.aware
retries transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
value.serializer""",
    "consumer": """
allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack
default.api.timeout.ms enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor
heartbeat.interval.ms interceptor.classes internal.leave.group.on.close
internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer
max.partition.fetch.bytes max.poll.interval.ms max.poll.records partition.assignment.strategy
session.timeout.ms share.acknowledgement.mode share.acquire.mode value.deserializer""",
    "admin": "bootstrap.controllers default.api.timeout.ms retries",
}

_CLIENT_KEY: Final = re.compile(
    r"(?:(?:source|target)\.)?(producer|consumer|admin)\.(?:override\.)?(.+)"
)

CLIENT_KEYS: Final = frozenset(
    {"bootstrap.servers", "security.protocol"}
    | {f"sasl.{name}" for name in _SASL.split()}
    | {f"ssl.{name}" for name in _SSL.split()}
)
"""`MirrorClientConfig`: how a client reaches a cluster; valid as `source.cluster.<key>`."""

WORKER_KEYS: Final = frozenset(_WORKER.split())
"""Keys of a Connect worker (`DistributedConfig`), beyond CLIENT_KEYS and converters."""
_FIRST_VERSION: Final = KafkaVersion(2, 4)
_WORKER_SINCE: Final = {"exactly.once.source.support": KafkaVersion(3, 3)}  # KIP-618

NEWEST_VERSION: Final = KafkaVersion(4, 4)
"""The newest release that the tables here know."""


@dataclass(frozen=True, slots=True)
class ConnectorSettingKey:
    """A key or a prefix; the connectors of other kinds accept it, without effect."""

    name: str
    kinds: frozenset[ConnectorKind]
    default: str | None = None
    since: KafkaVersion = _FIRST_VERSION
    removed: KafkaVersion | None = None
    new_name: str | None = None

    def exists_in(self, version: KafkaVersion) -> bool:
        return self.since <= version and (self.removed is None or version < self.removed)


def kafka_release(version: str) -> KafkaVersion | None:
    """The release of a version such as `3.9.1`; None for other text."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})(?!\d)", version.strip(), re.ASCII)
    return KafkaVersion(int(match[1]), int(match[2])) if match else None


def known_release(version: str) -> KafkaVersion | None:
    """The release of a version; None if it never was or is newer than the tables here."""
    found = kafka_release(version)
    is_known = found is not None and any(
        first <= found <= last
        for first, last in (
            (_FIRST_VERSION, KafkaVersion(2, 8)),
            (KafkaVersion(3, 0), KafkaVersion(3, 9)),
            (KafkaVersion(4, 0), NEWEST_VERSION),
        )
    )
    return found if is_known else None


def _kinds(letters: str) -> frozenset[ConnectorKind]:
    return frozenset(kind for kind in ConnectorKind if kind[len("Mirror")] in letters)


def _entry(text: str, letters: str) -> ConnectorSettingKey:
    key, _, versions = text.partition("@")
    name, _, default = key.partition("=")
    numbers, _, new_name = versions.partition(":")
    since, _, removed = numbers.partition("-")
    first, gone = kafka_release(since) or _FIRST_VERSION, kafka_release(removed)
    return ConnectorSettingKey(
        name, _kinds(letters), default or None, first, gone, new_name or None
    )


_KEYS: Final = {
    key.name: key
    for letters, table in _KEYS_BY_KINDS.items()
    for key in (_entry(text, letters) for text in table.split())
}

_FAMILIES: Final = {
    name: ConnectorSettingKey(name, _kinds(letters))
    for letters, names in _PREFIXES.items()
    for name in names.split()
}
_CLUSTER_KINDS: Final = {"source.cluster.": _kinds("SC"), "target.cluster.": _kinds("SCH")}

"""Old names with their new ones."""

TOP_LEVEL_KEYS: Final = (_KEYS.keys() | CLIENT_KEYS) - _NOT_DEFINED - {"bootstrap.servers"}
"""Keys that dedicated mode passes to connectors without a prefix (`allConfigNames`)."""


def connector_key(name: str) -> ConnectorSettingKey | None:
    """The entry of a key in a connector's configuration; None if it is unknown.

    A client key without `source.cluster.` or `target.cluster.` is known, for no connector.
    """
    if name in _KEYS:
        return _KEYS[name]
    if name in CLIENT_KEYS:
        return ConnectorSettingKey(name, frozenset())
    for prefix, kinds in _CLUSTER_KINDS.items():
        if name.startswith(prefix) and name.removeprefix(prefix) in CLIENT_KEYS:
            return ConnectorSettingKey(name, kinds)
    families = [prefix for prefix in _FAMILIES if name.startswith(prefix)]
    return _FAMILIES[max(families, key=len)] if families else None


def is_read(setting: Setting, name: str, version: KafkaVersion | None) -> bool:
    """Whether MirrorMaker 2 of *version*, None if not known, reads *setting* as its key *name*."""
    if version is None:
        return True
    if name in _WORKER_SINCE:
        return version >= _WORKER_SINCE[name]
    entry = connector_key(next((old for old in RENAMED if setting.key.endswith(old)), name))
    return entry is None or entry.exists_in(version)


def unknown_client_key(name: str) -> tuple[str, str | None] | None:
    """The client that does not know the key *name*, with what was meant; None if one does."""
    match = _CLIENT_KEY.fullmatch(name)
    if not match or name in _KEYS or match[2].startswith("config.providers"):
        return None
    known = {*_ALL_CLIENTS.split(), *_CLIENTS[match[1]].split(), *CLIENT_KEYS}
    if match[2] in known:
        return None
    meant = suggest_typo(match[2], known)
    return match[1], meant and name.removesuffix(match[2]) + meant


def expected_items(name: str, value: str, version: KafkaVersion) -> str | None:
    """What Kafka expects instead of the items of a list; None if it accepts them."""
    if version < _STRICT_LISTS or name not in _LISTS:
        return None
    items = split_list(value)
    if "" in items:
        return "no blank item (Kafka 4.2 and later)"
    return None if len(set(items)) == len(items) else "each item once (Kafka 4.2 and later)"


def expected_value(name: str, value: str) -> str | None:
    """What Kafka expects instead of *value* of a connector or worker; None if it accepts it."""
    default = _KEYS[name].default if name in _KEYS else None
    choices, text = _CHOICES.get(name), trim(value)
    if default in {"true", "false"}:
        return None if read_boolean(value) is not None else "true or false"
    if (default or "").isdecimal() or name.endswith(_NUMBERS):
        number = read_integer(
            value, next((n for end, n in _BITS.items() if name.endswith(end)), 64)
        )
        is_right = number is not None and number >= _LOWEST.get(name, number)
        return None if is_right else "a whole number"
    if choices and (text.lower() if name in _ANY_CASE else text) not in choices:
        return f"one of {', '.join(choices)}"
    if name.endswith("bootstrap.servers") and read_servers(value) is None:
        return "host:port, or several separated by commas"
    return None


def suggest_connector_key(name: str) -> str | None:
    """The key that was probably meant by an unknown or ineffective one."""
    for prefix in _CLUSTER_KINDS:
        if name.startswith(prefix):
            client_key = suggest_typo(name.removeprefix(prefix), CLIENT_KEYS)
            return client_key and prefix + client_key
    # Names of other tools and of Kafka's documentation that difflib would not find.
    for guess in (f"{name}.enabled", f"{name}d", re.sub(r"\.(whitelist|include)$", "", name)):
        if guess in _KEYS:
            return guess
    return suggest_typo(name, (key.name for key in _KEYS.values() if key.removed is None))


_CLIENT_PREFIXES: Final = ("producer", "consumer", "admin")
_CONNECTOR_PREFIXES: Final = ("config.providers", "replication.policy")

WORKER_PREFIXES: Final = (
    *("offset.storage", "config.storage", "status.storage", "key.converter", "value.converter"),
    *("header.converter", "task", "worker", *_CONNECTOR_PREFIXES),
)
"""Keys without an alias that reach workers, where they override those of the target cluster."""


class DedicatedSettings:
    """The settings of one file, by what they reach; *clusters* are those with a valid alias."""

    def __init__(self, properties: Settings, aliases: Iterable[str]) -> None:
        self._properties = properties
        # By the flow's source, so that a file with many flows is not searched for each of them.
        self._by_source: defaultdict[str, dict[str, Setting]] = defaultdict(dict)
        for key, each in properties.items():
            if "->" in key:
                self._by_source[key.partition("->")[0]][key] = each
        self._for_workers = {
            key: each for key, each in properties.items() if key.startswith(WORKER_PREFIXES)
        }
        self._for_connectors = {
            key: each
            for key, each in properties.items()
            if key in TOP_LEVEL_KEYS or key.startswith(_CONNECTOR_PREFIXES)
        }
        self.clusters = {alias: self._cluster(alias) for alias in aliases}

    def _cluster(self, alias: str) -> Settings:
        settings = _stripped(self._properties, f"{alias}.")
        own = {key: settings[key] for key in CLIENT_KEYS & settings.keys()}
        shared = {key: self._properties[key] for key in CLIENT_KEYS & self._properties.keys()}
        inherited = (shared | own).items()
        clients = {
            f"{client}.{key}": each for client in _CLIENT_PREFIXES for key, each in inherited
        }
        return clients | shared | settings

    def connector(self, flow: Flow) -> Settings:
        """What the three connectors of *flow* have in common, under new names."""
        # The order of MirrorMakerConfig.connectorBaseConfig: a later one overrides those before it.
        merged = dict(self._for_connectors)
        for side, alias in (("source", flow.source), ("target", flow.target)):
            for key, each in self.clusters[alias].items():
                prefix = side if key.startswith(_CLIENT_PREFIXES) else f"{side}.cluster"
                merged[f"{prefix}.{key}"] = each
        merged |= _stripped(self._by_source[flow.source], f"{flow.label}.")
        # A new name wins, wherever it is written (ConfigUtils.translateDeprecatedConfigs).
        renamed = {RENAMED[key]: merged.pop(key) for key in RENAMED.keys() & merged.keys()}
        return renamed | merged

    def worker(self, flow: Flow) -> Worker:
        # MirrorMakerConfig.workerConfig: each flow has a worker group of its own, which lives on
        # the target and takes its names from the source.
        settings = {**self.clusters[flow.target], **self._for_workers}
        kinds = ("offsets", "status", "configs")
        topics = {f"{kind}_topic": connect_topic(kind, flow.source) for kind in kinds}
        return Worker.of(settings, group_id=f"{flow.source}-mm2", **topics)

    def of_flow(self, flow: Flow, key: str) -> Setting | None:
        """A setting with the prefix of the flow, or without any."""
        return self._properties.get(f"{flow.label}.{key}", self._properties.get(key))

    def has_herder(self, flow: Flow) -> bool:
        """Whether dedicated mode starts a herder, if only for heartbeats (KAFKA-10710)."""
        enabled = self._properties.get(f"{flow.label}.enabled")
        heartbeats = self.of_flow(flow, "emit.heartbeats.enabled")
        return _is_true(enabled) or heartbeats is None or _is_true(heartbeats)


def _is_true(setting: Setting | None) -> bool:
    # As Boolean.parseBoolean: with a space or a comment after it, `true` is false.
    return setting is not None and setting.value.lower() == "true"


def client_settings(cluster: Settings) -> Settings:
    """What a client needs in order to connect to a cluster with the settings *cluster*."""
    return {
        key: each
        for key, each in cluster.items()
        if key in CLIENT_KEYS or key.startswith(("ssl.", "sasl.", "security."))
    }


def _stripped(settings: Settings, prefix: str) -> dict[str, Setting]:
    return {
        key.removeprefix(prefix): each
        for key, each in settings.items()
        if key.startswith(prefix) and key != prefix
    }


_KAFKA_4: Final = KafkaVersion(4, 0)  # KIP-629 ended old keys, KIP-1074 narrowed internal topics

_CONSEQUENCES: Final = {
    re.compile(pattern): text
    for pattern, text in {
        r"topics|topics\.exclude|topic\.filter\.class|internal topics|heartbeats\.replication"
        r"\.enabled": "other topics are copied",
        r"groups|groups\.exclude|group\.filter\.class": "offsets of other groups are translated",
        r"sync\.topic\..+|config\.propert.+|use\.defaults\.from": "settings and ACLs of topics are "
        "synced in another way",
        r"refresh\..+": "new topics, partitions and groups are found sooner, later or never",
        r"(.+\.)?replication\.factor": "applies to topics created from now on",
        r"(checkpoint )?tasks\.max": "the work is divided among another number of tasks",
        r"exactly\.once\..+|transaction\.boundary.*|offset\.flush\.interval\.ms|errors\.(tolerance"
        r"|retry\.timeout)|producer\.override\.(acks|enable\.idempotence|max\.in\.flight.+|retries"
        r"|delivery\.timeout\.ms|max\.request\.size)": "what is lost, repeated or out of order "
        "after failures changes",
        r"source\.consumer\.isolation\.level": "read_committed skips records of aborted "
        "transactions; read_uncommitted copies them",
        r"source\.consumer\.auto\.offset\.reset": "copying starts elsewhere without a position, or "
        "after retention deleted records that were not copied",
        r"(key|value|header)\.converter": "only ByteArrayConverter copies records byte for byte",
        r"(transforms|predicates).*": "records are changed or left out in another way",
        r"offset\.lag\.max": "after a failover, groups read up to this many more records of each "
        "partition again",
        r"emit\.(offset-syncs|checkpoints)\..+|sync\.group\.offsets\..+": "offsets of groups are "
        "translated, or committed on the target, more often, less often or never",
        r"emit\.heartbeats\..+": "heartbeats are sent more or less often",
        r"replication\.policy\..+": "copies and internal topics get other names",
        "offset syncs": "offsets are only translated for records that are copied from now on",
        "checkpoints": "clients that translate offsets need the same policy settings",
        "(source|target) servers": "if this is another cluster, positions and copies do not fit; "
        "compare the cluster ids",
        r".+ state": "connectors that are paused or stopped do nothing",
    }.items()
}

_DEFAULTS: Final = {
    "exactly.once.source.support": "disabled",
    "offset.flush.interval.ms": "60000",
    "source.consumer.isolation.level": "read_uncommitted",
    "source.consumer.auto.offset.reset": "earliest",
    "checkpoint tasks.max": "1",
    "config.properties.exclude": ",".join(DEFAULT_CONFIG_PROPERTIES_EXCLUDE),
}

# Names, which are compared on their own, and how clusters are reached.
_ELSEWHERE: Final = re.compile(
    r"(?:^|\.)(?:ssl|sasl|security|bootstrap|config\.providers)\b|\.cluster\.alias$"
    r"|\.storage\.topic$|^(?:name|connector\.class|enabled|group\.id)$|^(?:admin|consumer)\."
)


def consequence_of(key: str) -> str | None:
    """What a change of *key* means; None if it does not affect what is copied."""
    return next((text for each, text in _CONSEQUENCES.items() if each.fullmatch(key)), None)


def default_value(key: str) -> str:
    entry = connector_key(key)
    return _DEFAULTS.get(key) or (entry.default if entry else None) or ""


def effective_values(
    flow: MirrorFlow, kinds: Collection[ConnectorKind], version: KafkaVersion | None, form: Form
) -> dict[str, str]:
    """Settings of the connectors *kinds* and of their workers; of defaults, only those that vary.

    Without *version*, old keys count. A key of several connectors is the first one's.
    """
    found = {}
    if ConnectorKind.SOURCE in kinds:
        release = version or DEFAULT_VERSION
        is_narrow = release >= _KAFKA_4
        found["internal topics"] = "mm2*.internal" if is_narrow else "*.internal, *-internal"
        found["topics.exclude"] = ",".join(default_topics_exclude(release))
        # MirrorMakerConfig.workerConfig sets them; a worker of Connect must state its own.
        if form is Form.PROPERTIES:
            found |= dict.fromkeys(
                ("key.converter", "value.converter", "header.converter"), "ByteArrayConverter"
            )
        found |= {
            re.sub(r"^producer\.", "producer.override.", key): setting.value.strip()
            for key, setting in flow.worker.settings.items()
            if not _ELSEWHERE.search(key)
        }
    for kind in (each for each in ConnectorKind if each in kinds):
        connector = flow.connectors[kind]
        found[f"{kind.name.lower()} state"] = connector.state
        settings = {
            # A cluster's settings override those of all consumers.
            **{
                f"source.{k}": s for k, s in connector.settings.items() if k.startswith("consumer.")
            },
            **connector.settings,
        }
        for key, setting in settings.items():
            if kind is ConnectorKind.CHECKPOINT and key == "tasks.max":
                found["checkpoint tasks.max"] = setting.value.strip()
            elif _acts(key, setting, kind, version):
                found[key] = setting.value.strip()
    return found


def _acts(key: str, setting: Setting, kind: ConnectorKind, version: KafkaVersion | None) -> bool:
    entry = connector_key(key)
    if entry is None or _ELSEWHERE.search(key):
        return entry is None and kind is ConnectorKind.SOURCE
    if not is_read(setting, key, version):
        return False
    return kind is next((each for each in ConnectorKind if each in entry.kinds), None)


def means_the_same(key: str, one: str, other: str) -> bool:
    if key.endswith(" servers"):
        return not (one and other) or bool({*split_list(one)} & {*split_list(other)})
    if key.removesuffix(".exclude") in {"topics", "groups", "config.properties"}:
        return set(split_list(one)) == set(split_list(other))
    return _plain(one) == _plain(other)


def _plain(value: str) -> str:
    text = re.sub(r"^org\.apache\.kafka\.(?:\w+\.)+", "", value)
    return text.lower() if text.lower() in {"true", "false"} else text
