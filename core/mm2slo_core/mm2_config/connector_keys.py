"""The keys of MirrorMaker 2's connectors, and the keys of Connect that reach them.

Sources: the definitions of `MirrorSourceConfig`, `MirrorCheckpointConfig`, `MirrorHeartbeatConfig`,
`SourceConnectorConfig`, `DistributedConfig`, `MirrorClientConfig` (Kafka 4.1) and the filters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mm2slo_core.config.suggestion import suggest_typo
from mm2slo_core.java_values import read_boolean, read_integer, read_servers, split_list, trim
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.replication_policy import KafkaVersion

# By the connectors that act on them: source (S), checkpoint (C), heartbeat (H). Each is
# NAME[=DEFAULT][@SINCE[-REMOVED[:NEW_NAME]]]; without SINCE: 2.4. Classes have no package, and a
# default that depends on the version is left out.
_KEYS_BY_KINDS: Final = {
    "SCH": """
admin.timeout.ms=60000 auto.include.jmx.reporter=true@3.4-4.0 config.action.reload=restart
config.providers@4.2 connector.class connector.plugin.version@4.1 errors.log.enable=false
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
access.control.allow.methods access.control.allow.origin admin.listeners
bootstrap.resolve.timeout.ms client.dns.lookup client.id config.providers
config.storage.replication.factor config.storage.topic connect.protocol connections.max.idle.ms
connector.client.config.override.policy exactly.once.source.support group.id heartbeat.interval.ms
inter.worker.key.generation.algorithm inter.worker.key.size inter.worker.key.ttl.ms
inter.worker.signature.algorithm inter.worker.verification.algorithms
internal.topics.automatic.creation.enable listeners metadata.cluster.check.enable
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
metrics.num.samples metrics.recording.level metrics.sample.window.ms offset.flush.interval.ms
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
"""Keys of a Connect worker, beyond CLIENT_KEYS and those it has in common with connectors."""

_FIRST_VERSION: Final = KafkaVersion(2, 4)
NEWEST_VERSION: Final = KafkaVersion(4, 4)
"""The newest release that the tables here know."""


@dataclass(frozen=True, slots=True)
class ConnectorKey:
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


def _entry(text: str, letters: str) -> ConnectorKey:
    key, _, versions = text.partition("@")
    name, _, default = key.partition("=")
    numbers, _, new_name = versions.partition(":")
    since, _, removed = numbers.partition("-")
    first, gone = kafka_release(since) or _FIRST_VERSION, kafka_release(removed)
    return ConnectorKey(name, _kinds(letters), default or None, first, gone, new_name or None)


_KEYS: Final = {
    key.name: key
    for letters, table in _KEYS_BY_KINDS.items()
    for key in (_entry(text, letters) for text in table.split())
}
_FAMILIES: Final = {
    name: ConnectorKey(name, _kinds(letters))
    for letters, names in _PREFIXES.items()
    for name in names.split()
}
_CLUSTER_KINDS: Final = {"source.cluster.": _kinds("SC"), "target.cluster.": _kinds("SCH")}

RENAMED: Final = {key.name: key.new_name for key in _KEYS.values() if key.new_name}
"""Old names with their new ones."""

TOP_LEVEL_KEYS: Final = (_KEYS.keys() | CLIENT_KEYS) - _NOT_DEFINED - {"bootstrap.servers"}
"""Keys that dedicated mode passes to connectors without a prefix (`allConfigNames`)."""


def connector_key(name: str) -> ConnectorKey | None:
    """The entry of a key in a connector's configuration; None if it is unknown.

    A client key without `source.cluster.` or `target.cluster.` is known, for no connector.
    """
    if name in _KEYS:
        return _KEYS[name]
    if name in CLIENT_KEYS:
        return ConnectorKey(name, frozenset())
    for prefix, kinds in _CLUSTER_KINDS.items():
        if name.startswith(prefix) and name.removeprefix(prefix) in CLIENT_KEYS:
            return ConnectorKey(name, kinds)
    families = [prefix for prefix in _FAMILIES if name.startswith(prefix)]
    return _FAMILIES[max(families, key=len)] if families else None


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
