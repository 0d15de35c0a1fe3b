"""Each check of lint finds its mistake at its line, and nothing in a file without it."""

import datetime
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

import pytest
import trustme
from hypothesis import example, given
from hypothesis import strategies as st

from mm2slo_core.config.config_document import UnresolvedError
from mm2slo_core.mm2_config import lint_check_list
from mm2slo_core.mm2_config.config_overlay import combine_setups
from mm2slo_core.mm2_config.connect_json import read_connect_json
from mm2slo_core.mm2_config.connector_settings import TOP_LEVEL_KEYS
from mm2slo_core.mm2_config.lint_check_list import CHECKS
from mm2slo_core.mm2_config.lint_checks import ClusterFacts
from mm2slo_core.mm2_config.mirror_setup import FileForm, Finding, MirrorSetup, file_form
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.provider_references import MirrorFiles
from mm2slo_core.mm2_config.running_settings import RENAMED
from mm2slo_core.mm2_config.strimzi_setup import read_strimzi

NOW: Final = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
BASE: Final = """\
clusters = us, eu
us.bootstrap.servers = us-1:9092
eu.bootstrap.servers = eu-1:9092
us->eu.enabled = true
"""
DOTTED: Final = BASE.replace("us->", "us.west->").replace("= us,", "= us.west,")
TLS: Final = """\
us.security.protocol = SSL
us.ssl.truststore.type = PEM
us.ssl.truststore.location = {}
"""
IDENTITY: Final = (
    "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
)
OLDEST: Final = "message.timestamp.before.max.ms"
CIRCLE: Final = "us->eu.enabled = true\neu->ap.enabled = true\nap->us.enabled = true\n"
LONG_NAME: Final = "a" * 247
THREE: Final = """\
clusters = us, eu, ap
us.bootstrap.servers = us-1:9092
eu.bootstrap.servers = eu-1:9092
ap.bootstrap.servers = ap-1:9092
"""
STRIMZI: Final = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {{name: mirror}}
spec:
  version: 4.1.0
  target:
    alias: eu
    bootstrapServers: eu-1:9092
    groupId: mirror
    offsetStorageTopic: mirror-offsets
    configStorageTopic: mirror-configs
    statusStorageTopic: mirror-status
  mirrors:
    - source: {{alias: us, bootstrapServers: "us-1:9092"}}
      sourceConnector: {{config: {}}}
      checkpointConnector: {{config: {}}}
"""
WORKER: Final = """\
bootstrap.servers = {}
group.id = mirror
offset.storage.topic = mirror-offsets
config.storage.topic = mirror-configs
status.storage.topic = mirror-status
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
value.converter = org.apache.kafka.connect.converters.ByteArrayConverter
"""
CONNECTOR: Final = """\
{{"name": "mirror", "config": {{
  "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
  "source.cluster.alias": "us", "source.cluster.bootstrap.servers": "us-1:9092",
  "target.cluster.alias": "eu", "target.cluster.bootstrap.servers": "eu-1:9092",
  "header.converter": {}
}}}}
"""
LOGINS: Final = """\
[{{"name": "mirror", "config": {{
  "connector.class": "MirrorSource",
  "source.cluster.alias": "us", "source.cluster.bootstrap.servers": "us-1:9092",
  "target.cluster.alias": "eu", "target.cluster.bootstrap.servers": "eu-1:9092",
  "source.cluster.security.protocol": "SASL_SSL", "source.cluster.sasl.jaas.config": "x"
}}}}, {{"name": "checkpoints", "config": {{
  "connector.class": "MirrorCheckpoint",
  "source.cluster.alias": "us", "source.cluster.bootstrap.servers": "us-1:9092",
  "target.cluster.alias": "eu", "target.cluster.bootstrap.servers": "eu-1:9092",
  "source.cluster.security.protocol": "SASL_SSL"{}
}}}}]
"""
BEFORE_V1: Final = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {{name: mirror}}
spec:
  connectCluster: {}
  clusters:
    - alias: us
      bootstrapServers: us-1:9092
    - alias: eu
      bootstrapServers: eu-1:9092
  mirrors:
    - sourceCluster: us
      targetCluster: eu
      sourceConnector: {{}}
      checkpointConnector: {{}}
"""
BYTES: Final = '"org.apache.kafka.connect.converters.ByteArrayConverter"'


def override(servers: str) -> str:
    """A connector with a producer of its own."""
    key = f'"producer.override.bootstrap.servers":\n"{servers}",\n"header.converter"'
    return CONNECTOR.format(BYTES).replace('"header.converter"', key)


def facts(
    partitions: Mapping[str, int], settings: Mapping[str, Mapping[str, str]] | None = None
) -> ClusterFacts:
    return ClusterFacts(3, partitions, settings or {})


class Case(NamedTuple):
    """A file in which *check* finds *what* at *line*, and one in which it finds nothing."""

    check: str
    line: int | None
    what: str
    fires: str
    silent: str
    facts: Mapping[str, ClusterFacts] | None = None
    worker: str = "eu-1:9092"


topics: Final = partial(facts, {"orders": 4, "payments": 2})
ON: Final = {"us": topics(), "eu": facts({})}
CASES: Final = (
    Case("plain-text-password", 5, "us.ssl.key.password is in plain text",
         BASE + "us.ssl.key.password = hunter2\n", BASE + "us.ssl.key.password = ${env:PW}\n"),
    Case("plain-text-password", 5, "eu.sasl.jaas.config: password is in plain text",
         BASE + f'eu.sasl.jaas.config = {MODULE} username="mm2" password="hunter2";\n',
         BASE + f'eu.sasl.jaas.config = {MODULE} username="mm2" password="${{env:PW}}";\n'),
    Case("plain-text-password", 15, "producer.override.sasl.jaas.config: password is in plain text",
         STRIMZI.format(f"{{producer.override.sasl.jaas.config: '{MODULE} password=\"p4ss\";'}}",
                        "{}"), STRIMZI.format("{}", "{}")),
    Case("empty-password", 5, "eu.ssl.keystore.password is empty",
         BASE + "eu.ssl.keystore.password =\n", BASE + "eu.ssl.keystore.password = pw\n"),
    Case("placeholder", 2, "us.bootstrap.servers has a placeholder",
         BASE.replace("us-1:9092", "<BROKERS>"), BASE),
    Case("placeholder", 5, "us->eu.topics has a placeholder",
         BASE + "us->eu.topics = $TOPICS\n", BASE + "us->eu.topics = orders$|(?<kind>x)${env:T}\n"),
    Case("placeholder", 5, "eu.sasl.jaas.config: password has a placeholder",
         BASE + f'eu.sasl.jaas.config = {MODULE} username="a" password="changeme";\n',
         BASE + f'eu.sasl.jaas.config = {MODULE} username="$ConnectionString" password="a$b";\n'),
    Case("undeclared-provider", 5,
         "us.ssl.key.password refers to the config provider 'vault', which config.providers does "
         "not list", BASE + "us.ssl.key.password = ${vault:kv:pw}\n",
         BASE + "us.ssl.key.password = ${vault:kv:pw}\nconfig.providers = vault\n"),
    Case("undeclared-provider", 5,
         "us->eu.transforms.m.secret refers to the config provider 'env', which config.providers "
         "does not list", BASE + "us->eu.transforms.m.secret = ${env:SALT}\n",
         BASE + "us->eu.transforms.m.format = ${env:SALT}\ntopics = [${a:b}]\n"),
    Case("undeclared-provider", 6,
         "producer.override.ssl.key.password refers to the config provider 'env', which "
         "config.providers does not list",
         CONNECTOR.format(f'{BYTES},\n"producer.override.ssl.key.password": "${{env:PW}}"'),
         STRIMZI.format("{producer.override.ssl.key.password: '${strimzienv:PW}'}", "{}")),
    Case("host-names-not-verified", 5, "us.ssl.endpoint.identification.algorithm is empty",
         BASE + "us.ssl.endpoint.identification.algorithm =\n",
         BASE + "us.ssl.endpoint.identification.algorithm = https\n"),
    Case("certificate-expired", 2, "the newest CA certificate of us is valid until 2026-04-30",
         BASE + TLS.format("/ca-expired.pem"), BASE + TLS.format("/ca-soon.pem")),
    Case("certificate-expires-soon", 2, "the newest CA certificate of us is valid until 2026-05-20",
         BASE + TLS.format("/ca-soon.pem"), BASE + TLS.format("/ca-both.pem")),
    Case("certificate-expired", 2, "the client certificate of us is valid until 2026-04-30",
         BASE + TLS.format("/ca-late.pem") + "us.ssl.keystore.location = /client-expired.pem\n",
         BASE + TLS.format("/ca-late.pem") + "us.ssl.keystore.location = /client-late.pem\n"),
    Case("unknown-key", 5, "us->eu.sync.topic.acl.enabled is not a setting",
         BASE + "us->eu.sync.topic.acl.enabled = false\n",
         BASE + "us->eu.sync.topic.acls.enabled = false\n"),
    Case("unknown-key", 5, "us.configs.storage.topic is not a setting",
         BASE + "us.configs.storage.topic = c\n", BASE + "us.config.storage.topic = c\n"),
    Case("unknown-key", 5, "eu.replication.factor is not a setting",
         BASE + "eu.replication.factor = 3\n", BASE + "eu.producer.linger.ms = 3\n"),
    Case("unknown-key", 5, "us.ssl.trustore.location is not a setting of Kafka's clients",
         BASE + "us.ssl.trustore.location = /ca.pem\n",
         BASE + "us.sasl.login.callback.handler.class = com.example.Own\nus.sasl.own.key = x\n"),
    Case("unknown-key", 14, "ssl.trustore.type is not a setting of Kafka's clients",
         STRIMZI.replace('us-1:9092"', 'us-1:9092", config: {{ssl.trustore.type: PEM}}').format(
             "{}", "{}"), STRIMZI.format("{}", "{}")),
    Case("unknown-key", 5, "eu.metric.reporter is not a setting",
         BASE + "eu.metric.reporter = com.example.Own\n",
         BASE + "eu.metric.reporters = com.example.Own\neu.example.own.port = 1\n"
         "eu.metrics.context.cluster = eu\neu.listeners.https.ssl.key.password = x\n"),
    Case("key-without-effect", 5, "us->eu.offset.flush.interval.ms has no effect here",
         BASE + "us->eu.offset.flush.interval.ms = 1\n",
         BASE + "eu.offset.flush.interval.ms = 1\n"),
    Case("key-without-effect", 5, "us->eu.sasl.mechanism has no effect here",
         BASE + "us->eu.sasl.mechanism = PLAIN\n",
         BASE + "us->eu.source.cluster.sasl.mechanism = PLAIN\n"),
    Case("key-without-effect", 15, "sync.group.offsets.enabled has no effect here",
         STRIMZI.format("{sync.group.offsets.enabled: true}", "{}"),
         STRIMZI.format("{}", "{sync.group.offsets.enabled: true}")),
    Case("key-of-other-version", 5,
         "us->eu.use.incremental.alter.configs is not a setting of Kafka 4.4",
         BASE + "us->eu.use.incremental.alter.configs = never\n", BASE),
    Case("key-of-other-version", 15, "metric.names.formats is not a setting of Kafka 4.1",
         STRIMZI.format("{metric.names.formats: new}", "{}"),
         STRIMZI.format("{metric.names.formats: new}", "{}").replace("4.1.0", "4.3.1")),
    Case("single-copy", 5, "us->eu.replication.factor = 1",
         BASE + "us->eu.replication.factor = 1\n", BASE + "us->eu.replication.factor = -1\n"),
    Case("single-copy", 5, "offset.storage.replication.factor = 1",
         BASE + "offset.storage.replication.factor = 1\n", BASE),
    Case("too-few-brokers", 5, "replication.factor = 4, but eu has 3 brokers",
         BASE + "us->eu.replication.factor = 4\n", BASE + "us->eu.replication.factor = 3\n", ON),
    Case("too-few-brokers", 5, "offset-syncs.topic.replication.factor = 4, but us has 3 brokers",
         BASE + "offset-syncs.topic.replication.factor = 4\n", BASE, ON),
    Case("checkpoints-off", 5, "us->eu.emit.checkpoints.enabled = false",
         BASE + "us->eu.emit.checkpoints.enabled = false\n", BASE),
    Case("checkpoints-off", 2, "us->eu has no checkpoint connector",
         CONNECTOR.format(BYTES), STRIMZI.format("{}", "{}")),
    Case("checkpoints-off", 5, "emit.checkpoints.interval.seconds = -1",
         BASE + "emit.checkpoints.interval.seconds = -1\n",
         BASE + "emit.checkpoints.interval.seconds = 0\n"),
    Case("offset-syncs-off", 5, "emit.offset-syncs.enabled = false",
         BASE + "emit.offset-syncs.enabled = false\n", BASE),
    Case("group-sync-off", 4, "us->eu: sync.group.offsets.enabled = false (default)",
         BASE, BASE + "us->eu.sync.group.offsets.enabled = true\n"),
    Case("group-sync-off", 6, "sync.group.offsets.interval.seconds = -1",
         BASE + "sync.group.offsets.enabled = TRUE\nsync.group.offsets.interval.seconds = -1\n",
         BASE + "sync.group.offsets.enabled = TRUE\n"),
    Case("slow-group-sync", 6, "us->eu.sync.group.offsets.interval.seconds = 300",
         BASE + "us->eu.sync.group.offsets.enabled = true\n"
         "us->eu.sync.group.offsets.interval.seconds = 300\n",
         BASE + "us->eu.sync.group.offsets.interval.seconds = 300\n"),
    Case("large-offset-lag", 5, "us->eu.offset.lag.max = 50000",
         BASE + "us->eu.offset.lag.max = 50000\n", BASE + "us->eu.offset.lag.max = 10000\n"),
    Case("errors-tolerated", 5, "us->eu.errors.tolerance = all",
         BASE + "us->eu.errors.tolerance = all\n", BASE),
    Case("records-skipped", 5, "us.consumer.auto.offset.reset = latest",
         BASE + "us.consumer.auto.offset.reset = latest\n",
         BASE + "us.consumer.auto.offset.reset = earliest\n"),
    Case("records-skipped", 5, "us->eu.consumer.auto.offset.reset = latest",
         BASE + "us->eu.consumer.auto.offset.reset = latest\n",
         BASE + "us->eu.consumer.auto.offset.reset = latest\n"
         "us.consumer.auto.offset.reset = earliest\n"),
    Case("records-skipped", 15, "consumer.auto.offset.reset = none",
         STRIMZI.format("{consumer.auto.offset.reset: none}", "{}"), STRIMZI.format("{}", "{}")),
    Case("single-task", 4, "us->eu: tasks.max = 1 (default)", BASE, BASE + "tasks.max = 8\n"),
    Case("idle-tasks", 5, "tasks.max = 7", BASE + "tasks.max = 7\n", BASE + "tasks.max = 6\n", ON),
    Case("connectors-differ", 16,
         "offset-syncs.topic.location is source for the source connector, target for the other",
         STRIMZI.format("{}", "{offset-syncs.topic.location: target}"),
         STRIMZI.format(*["{offset-syncs.topic.location: target}"] * 2)),
    Case("connectors-differ", 16,
         "replication.policy.separator is _ for the source connector, . for the other",
         STRIMZI.format("{replication.policy.separator: _}", "{}"),
         STRIMZI.format(*["{replication.policy.separator: _}"] * 2)),
    Case("connectors-differ", 16,
         "replication.policy.separator is empty for the source connector, . for the other",
         STRIMZI.format("{replication.policy.separator: ''}", "{}"),
         STRIMZI.format(*["{replication.policy.separator: ''}"] * 2)),
    Case("converter", 2, "us->eu: header.converter = SimpleHeaderConverter",
         CONNECTOR.format("null"), CONNECTOR.format(BYTES)),
    Case("converter", 5, "us->eu: value.converter = org.apache.kafka.connect.json.JsonConverter",
         BASE + "value.converter = org.apache.kafka.connect.json.JsonConverter\n",
         BASE + f"value.converter = {BYTES[1:-1]}\n"),
    Case("acl-sync-without-users", 4, "us->eu: sync.topic.acls.enabled = true (default)",
         BASE, BASE + "us.security.protocol = SSL\n"),
    Case("acl-sync-without-users", 4, "us->eu: sync.topic.acls.enabled = true (default)",
         BASE, BASE + "sync.topic.acls.interval.seconds = -1\n"),
    Case("no-internal-rest", None, "the internal REST server is off",
         BASE, BASE + "dedicated.mode.enable.internal.rest = true\n"),
    Case("heartbeats-missing", 14, "no flow emits heartbeats to us",
         STRIMZI.format("{}", "{}"), BASE),
    Case("heartbeats-missing", 4, "no flow emits heartbeats to us",
         BASE + "eu->us.emit.heartbeats.enabled = false\n",
         BASE + "us->eu.emit.heartbeats.enabled = false\n"),
    Case("heartbeats-missing", 4, "no flow emits heartbeats to us",
         BASE + "emit.heartbeats.interval.seconds = -1\n", BASE),
    Case("comma-in-pattern", 5, "us->eu.topics = a{2,3}",
         BASE + "us->eu.topics = a{2,3}\n", BASE + "us->eu.topics = a{2}\n"),
    Case("glob", 5, "us->eu.topics = orders-*",
         BASE + "us->eu.topics = orders-*\n", BASE + "us->eu.topics = orders-.*, a\\\\d*\n"),
    Case("all-topics", 4, "us->eu: topics = .* (default)", BASE, BASE + "topics = orders.*\n"),
    Case("internal-topics", 5, "us->eu replicates copycat-configs, of the workers of eu->us",
         BASE.replace("us->eu", "eu->us") + "us->eu.enabled = true\n"
         "us.config.storage.topic = copycat-configs\n",
         BASE.replace("us->eu", "eu->us") + "us->eu.enabled = true\n"),
    Case("internal-topics", 4, "us->eu replicates copycat-configs, of the workers of eu->us",
         BASE + "us.config.storage.topic = copycat-configs\n",
         BASE + "us.config.storage.topic = copycat-configs\n"
         "eu->us.emit.heartbeats.enabled = false\n"),
    Case("no-topic", 5, "no topic of us matches invoices",
         BASE + "us->eu.topics = orders, invoices\n", BASE + "us->eu.topics = or.*\n", ON),
    Case("replication-cycle", 4, "us->eu is a part of a cycle of flows",
         BASE + "eu->us.enabled = true\n" + IDENTITY,
         BASE + "eu->us.enabled = true\nus->eu.topics = us-.*\neu->us.topics = eu-.*\n" + IDENTITY),
    Case("replication-cycle", 4, "us->eu is a part of a cycle of flows",
         BASE + "eu->us.enabled = true\nus->eu." + IDENTITY,
         BASE + "eu->us.enabled = true\neu->us.topics.exclude = .*\nus->eu." + IDENTITY),
    Case("replication-cycle", 5, "us->eu is a part of a cycle of flows",
         BASE.replace("us->", "topics = (a|b)[0-9]+\nus->") + "eu->us.enabled = true\n" + IDENTITY,
         BASE.replace("us->", "topics = (a|b)[0-9]+\nus->") + "eu->us.enabled = true\n"),
    Case("replication-cycle", 6, "us->eu is a part of a cycle of flows",
         THREE + IDENTITY + CIRCLE,
         THREE + IDENTITY + CIRCLE
         + "us->eu.topics = a.*\neu->ap.topics = b.*\nap->us.topics = c.*\n"),
    Case("two-writers", 6, "us->ap and eu->ap write the same topics",
         THREE + IDENTITY + "us->ap.enabled = true\neu->ap.enabled = true\ntopics = orders\n",
         THREE + "us->ap.enabled = true\neu->ap.enabled = true\n"),
    Case("double-prefix", 7, "eu->ap also replicates copies of us->eu, as eu.us.x",
         THREE + "us->eu.enabled = true\nus->ap.enabled = true\neu->ap.enabled = true\n",
         THREE + "us->eu.enabled = true\neu->ap.enabled = true\n"),
    Case("separator", 5, "replication.policy.separator = _",
         BASE + "replication.policy.separator = _\n", BASE),
    Case("renamed-copies", 6, "us->eu.transforms.a.type = RegexRouter",
         BASE + "us->eu.transforms = a\nus->eu.transforms.a.type = RegexRouter\n",
         BASE + "us->eu.transforms = a\nus->eu.transforms.a.type = Filter\n"),
    Case("separator-in-alias", 4, "the alias us.west contains the separator .",
         DOTTED, DOTTED + "replication.policy.separator = _\n"),
    Case("wrong-target", 1, "records of us->eu are written to us, not to eu-1:9092",
         CONNECTOR.format(BYTES), override("EU-1:9092,"), worker="us-1:9092"),
    Case("wrong-target", 5, "records of us->eu are written to us, not to eu-1:9092",
         override("us-2:9092, us-1:9092"), override("eu-1:9092")),
    Case("wrong-target", 5, "records of us->eu are written to us, not to eu-1:9092",
         BASE + "eu.producer.bootstrap.servers = us-1:9092\n",
         BASE + "eu.producer.bootstrap.servers = eu-1:9092\n"),
    Case("wrong-target", 5, "records of us->eu are written to us, not to eu-1:9092",
         BASE + "us->eu.producer.override.bootstrap.servers = us-1:9092\n", BASE),
    Case("wrong-target", 8, "records of us->eu are written to us, not to eu-1:9092",
         BEFORE_V1.format("us"), BEFORE_V1.format("eu")),
    Case("other-target", 1, "records of us->eu are written to gw-1:9092, not to eu-1:9092",
         CONNECTOR.format(BYTES), CONNECTOR.format(BYTES).replace("eu-1", "gw-1"),
         worker="gw-1:9092"),
    Case("one-cluster", 3, "us and eu have the same servers: x:1, US-1:9092",
         BASE.replace("= us-1:9092", "= us-1:9092, x:2").replace("= eu-1:9092", "= x:1, US-1:9092"),
         BASE),
    Case("one-cluster", 3, "us and eu have the same cluster id: x1", BASE,
         BASE.replace("us->eu", "us->gw"),
         {alias: ClusterFacts(3, {}, {}, "x1") for alias in ("us", "eu")}),
    Case("shared-offset-syncs", 5,
         "the flows eu->us, us->eu share the topic 'mm2-offset-syncs.us.internal' on 'eu'",
         BASE + "eu->us.enabled = true\nus->eu.offset-syncs.topic.location = target\n",
         BASE + "eu->us.enabled = true\noffset-syncs.topic.location = target\n"),
    Case("refused-value", 5, "us->eu.replication.factor = 3 # three; expected a whole number",
         BASE + "us->eu.replication.factor = 3 # three\n",
         BASE + "us->eu.replication.factor = +3 \n"),
    Case("refused-value", 5, "emit.checkpoints.enabled = true # on; expected true or false",
         BASE + "emit.checkpoints.enabled = true # on\n",
         BASE + "emit.checkpoints.enabled = TRUE \nemit.heartbeats.interval.seconds = -1\n"),
    Case("refused-value", 15,
         "offset-syncs.topic.location = Target; expected one of source, target",
         STRIMZI.format("{offset-syncs.topic.location: Target}", "{}"),
         STRIMZI.format(*["{offset-syncs.topic.location: target}"] * 2)),
    Case("refused-value", 16, "emit.checkpoints.enabled = yes; expected true or false",
         STRIMZI.format("{}", "{emit.checkpoints.enabled: 'yes'}"),
         STRIMZI.format("{sync.topic.acls.enabled: off}", "{emit.checkpoints.enabled: yes}")),
    Case("refused-value", 2,
         "us.bootstrap.servers = =us-1:9092; expected host:port, or several separated by commas",
         BASE.replace("servers = us", "servers==us"), BASE.replace("us-1:9092", "us-1:9092,")),
    Case("refused-value", 5, "eu.offset.flush.interval.ms = 1 s; expected a whole number",
         BASE + "eu.offset.flush.interval.ms = 1 s\n", BASE + "eu.client.id = 1 s\n"),
    Case("comment-in-value", 5, "us->eu.topics has a # in its value",
         BASE + "us->eu.topics = orders # all\n", BASE + "us->eu.topics = orders#all\n"),
    Case("quoted-value", 5, "us->eu.topics has quotes around its value",
         BASE + 'us->eu.topics = "orders", "stock"\n', BASE + "us->eu.topics = orders\n"),
    Case("no-refresh", 5, "refresh.topics.enabled = false",
         BASE + "refresh.topics.enabled = false\n", BASE + "refresh.topics.enabled = true\n"),
    Case("no-refresh", 5, "refresh.topics.interval.seconds = -1",
         BASE + "refresh.topics.interval.seconds = -1\n", BASE),
    Case("no-refresh", 5, "us->eu.refresh.groups.enabled = false",
         BASE + "us->eu.refresh.groups.enabled = false\n", BASE),
    Case("unknown-key", 5,
         "eu.producer.transactions.enabled is not a setting of Kafka's producer",
         BASE + "eu.producer.transactions.enabled = true\n",
         BASE + "eu.producer.transactions.enabled = true\n"
         "eu.producer.interceptor.classes = com.example.Reads\n"),
    Case("connectors-differ", 10,
         "checkpoints has no source.cluster.sasl.jaas.config, but mirror has",
         LOGINS.format(""), LOGINS.format(', "source.cluster.sasl.jaas.config": "x"')),
    Case("shared-storage", 14, "the workers of us->eu and ap->eu both use mirror-configs",
         STRIMZI.format("{}", "{}") + "---\n" + STRIMZI.format("{}", "{}").replace("us", "ap"),
         STRIMZI.format("{}", "{}") + "---\n"
         + STRIMZI.format("{}", "{}").replace("us", "ap").replace("mirror-", "other-")),
    Case("shared-storage", 1, "the workers of ap->eu and us->eu both use mm2-configs",
         THREE + "us->eu.enabled = true\nconfig.storage.topic = mm2-configs\n"
         "emit.heartbeats.enabled = false\nap->eu.emit.heartbeats.enabled = true\n",
         THREE + "us->eu.enabled = true\nconfig.storage.topic = mm2-configs\n"
         "emit.heartbeats.enabled = false\n"),
    Case("shared-storage", 5, "the workers of us->eu and ap->eu both use mm2-configs",
         THREE + "us->eu.enabled = true\nap->eu.enabled = true\neu.group.id = mm2\n"
         "eu.config.storage.topic = mm2-configs\n",
         THREE + "us->eu.enabled = true\nap->eu.enabled = true\neu.group.id = mm2\n"),
    Case("storage-not-compacted", 1, "mm2-status.eu.internal on us has cleanup.policy = delete",
         BASE + "us->eu.topics = us-.*\neu->us.emit.heartbeats.enabled = true\n",
         BASE + "eu->us.emit.heartbeats.enabled = false\n",
         ON | {"us": facts({}, {"mm2-status.eu.internal": {"cleanup.policy": "delete"}})}),
    Case("storage-not-compacted", 4, "mm2-offsets.us.internal on eu has cleanup.policy = delete",
         BASE, BASE + "offset.storage.topic = offsets\n",
         ON | {"eu": facts({}, {"mm2-offsets.us.internal": {"cleanup.policy": "delete"}})}),
    Case("lower-target-limit", 4, "us.orders: retention.ms = 1000, on the source -1",
         BASE, BASE + "topics = payments\n",
         {"us": topics({"orders": {"retention.ms": "-1"}}),
          "eu": facts({}, {"us.orders": {"retention.ms": "1000"}})}),
    Case("timestamp-limit", 4, f"orders: {OLDEST} = 60000",
         BASE, BASE + "sync.topic.configs.enabled = false\n",
         {"us": topics({"orders": {OLDEST: "60000"}}), "eu": topics({})}),
    Case("timestamp-limit", 4, f"orders: {OLDEST} = 60000",
         BASE, BASE + f"config.properties.exclude = {OLDEST}\n",
         {"us": topics({"orders": {OLDEST: "60000"}}), "eu": topics({})}),
    Case("timestamp-limit", 4, f"us.orders: {OLDEST} = 60000",
         BASE + "sync.topic.configs.enabled = false\n", BASE + "topics = payments\n",
         {"us": topics({"orders": {}}), "eu": topics({"us.orders": {OLDEST: "60000"}})}),
    Case("name-too-long", 4, f"the copy of {LONG_NAME} needs a name of 250 characters",
         BASE, BASE + IDENTITY, {"us": facts({LONG_NAME: 1}), "eu": facts({})}),
)  # fmt: skip


@pytest.fixture(scope="module")
def certificates() -> Mapping[str, bytes]:
    """PEM files by path. Certificates of hosts stand in for those of CAs."""
    ca, pems = trustme.CA(), {}
    for name, month, day in (("expired", 4, 30), ("soon", 5, 20), ("late", 12, 30)):
        end = datetime.datetime(2026, month, day, tzinfo=datetime.UTC)
        start = end - datetime.timedelta(days=100)
        issued = ca.issue_cert(f"{name}.example.com", not_before=start, not_after=end)
        pems[f"/client-{name}.pem"] = issued.private_key_and_cert_chain_pem.bytes()
        pems[f"/ca-{name}.pem"] = issued.cert_chain_pems[0].bytes()
    both = pems["/ca-soon.pem"] + pems["/ca-late.pem"]
    return pems | {"/ca-both.pem": both, "/root.pem": ca.cert_pem.bytes()}


def read(text: str, worker: str = "eu-1:9092") -> tuple[MirrorSetup, ...]:
    form = file_form(text.encode())
    if form is FileForm.STRIMZI:
        return read_strimzi("mm2", text)
    if form is FileForm.CONNECT:
        return (read_connect_json([("mm2", text)], ("worker", WORKER.format(worker).encode())),)
    return (read_properties("mm2", text.encode()),)


@pytest.fixture(scope="module")
def files(certificates: Mapping[str, bytes]) -> MirrorFiles:
    def read_content(path: str) -> bytes:
        if path not in certificates:
            raise UnresolvedError(f"cannot read {path!r}")
        return certificates[path]

    def refuse(*names: str) -> bytes:
        raise UnresolvedError(f"no {names[-1]}")

    return MirrorFiles(lambda name: refuse(name).decode(), read_content, refuse)


def lint(
    setups: tuple[MirrorSetup, ...],
    files: MirrorFiles,
    facts: Mapping[str, ClusterFacts] | None = None,
    version: str | None = None,
) -> tuple[Finding, ...]:
    combined = combine_setups(setups, files, {}, version)
    return lint_check_list.lint(setups, combined, NOW, facts or {}, version)


def found(case: Case, text: str, files: MirrorFiles) -> list[Finding]:
    findings = lint(read(text, case.worker), files, case.facts)
    return [finding for finding in findings if finding.check == case.check]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}-{case.line}")
def test_lint_check_fires_at_its_line_only_in_the_file_with_the_mistake(
    case: Case, files: MirrorFiles
) -> None:
    severity = CHECKS[case.check].severity
    fired = [
        (each.severity, each.origin.line, each.what) for each in found(case, case.fires, files)
    ]
    assert fired[0] == (severity, case.line, case.what)
    assert found(case, case.silent, files) == []


def test_lint_connectors_without_their_worker_may_use_any_provider(files: MirrorFiles) -> None:
    text = CONNECTOR.format(f'{BYTES}, "source.cluster.ssl.key.password": "${{env:PW}}"')
    findings = lint((read_connect_json([("mm2", text)], None),), files)
    assert [each.check for each in findings if "provider" in each.check] == []


def test_lint_check_list_has_a_case_for_each_check() -> None:
    assert {case.check for case in CASES} == CHECKS.keys()


def test_lint_check_that_needs_clusters_is_silent_without_them(files: MirrorFiles) -> None:
    cases = [case for case in CASES if CHECKS[case.check].connect]
    assert [
        case.check for case in cases if found(case._replace(facts=None), case.fires, files)
    ] == []
    assert all(case.facts for case in cases)


def test_lint_findings_are_unique_and_in_the_order_of_lines(files: MirrorFiles) -> None:
    for case in CASES:
        findings = lint(read(case.fires, case.worker), files)
        lines = [each.origin.line or 0 for each in findings if each.origin.file == "mm2"]
        assert lines == sorted(lines)
        assert len(set(findings)) == len(findings)


@pytest.mark.parametrize(
    ("check", "line", "severity", "text"),
    [
        ("ignored-key", 5, "warning", BASE + "offset.flush.interval.ms = 1000\n"),
        ("ignored-key", 5, "warning", BASE + "consumer.max.poll.records = 10\n"),
        ("old-key", 5, "warning", BASE + "us->eu.topics.blacklist = x\n"),
        ("unknown-alias", 5, "warning", BASE + "us->ue.topics = x\n"),
        ("removed-key", 14, "error", STRIMZI.format("{}", "{}").replace(
            "    - source:", "    - heartbeatConnector: {}\n      source:")),
        ("key-store-without-key", 8, "error",
         BASE + TLS.format("/ca-late.pem") + "us.ssl.keystore.location = /root.pem\n"),
        # Neither is wrong for MirrorMaker 2.
        ("store-missing", 7, "info", BASE + TLS.format("/elsewhere.pem")),
        ("custom-topics", 5, "info", BASE + "topics = [a-z&&[^b]]+\n"),
        ("custom-policy", 5, "info", BASE + "replication.policy.class = com.example.Policy\n"),
        ("unsupported-class", 8, "info",
         BASE + "us.security.protocol = SASL_SSL\nus.sasl.mechanism = OAUTHBEARER\n"
         f"us.sasl.jaas.config = {MODULE.replace('plain.Plain', 'oauthbearer.OAuthBearer')};\n"
         "us.sasl.login.callback.handler.class = com.example.GcpLoginCallbackHandler\n"),
        ("not-boolean", 5, "warning", BASE + "eu->us.enabled = false # passive\n"),
        ("unknown-key", 14, "warning", STRIMZI.format("{}", "{}").replace(
            "    - source:", "    - tasksMax: 3\n      source:")),
    ],
)  # fmt: skip
def test_lint_output_has_findings_of_readers(
    check: str, line: int, severity: str, text: str, files: MirrorFiles
) -> None:
    findings = lint(read(text), files)
    found = [(each.severity, each.origin.line) for each in findings if each.check == check]
    assert found == [(severity, line)]


def test_lint_flows_with_names_that_are_not_known_are_in_no_cycle(files: MirrorFiles) -> None:
    topics = "us->eu.topics = us-[a-z&&[^b]]+\neu->us.topics = eu-.*\n"
    findings = lint(read(BASE + "eu->us.enabled = true\n" + IDENTITY + topics), files)
    checks = {each.check for each in findings}
    assert checks & {"custom-topics", "replication-cycle"} == {"custom-topics"}


def test_lint_key_that_the_version_does_not_know_has_no_effect(files: MirrorFiles) -> None:
    text = BASE + "emit.offset-syncs.enabled = false\noffset-syncs.topic.location = target\n"
    findings = lint(read(text + "eu->us.enabled = true\n"), files, version="2.8")
    names = {each.check for each in findings}
    assert names & {"offset-syncs-off", "key-of-other-version"} == {"key-of-other-version"}


def test_lint_stated_version_takes_precedence_over_that_of_the_file(files: MirrorFiles) -> None:
    text = STRIMZI.format("{metric.names.formats: new}", "{}")
    names = [each.check for each in lint(read(text), files, version="4.3")]
    assert "key-of-other-version" not in names


def test_lint_never_shows_a_secret(files: MirrorFiles) -> None:
    secret = "hunter2-$wordfish<x>"
    texts = [
        BASE + f"us.ssl.key.password = {secret}\neu.basic.auth.user.info = me:{secret}\n"
        f"us->eu.sasl.jaas.config = {MODULE} username=a password={secret};\n"
        f'eu.sasl.jaas.config = {MODULE} username="u" password="{secret}";\n'
        f"us->eu.transforms.x.secret = {secret}\npassword={secret}\n"
        f"us.sasl.oauthbearer.client.credentials.client.secret = {secret}\n",
        STRIMZI.format(f"{{source.consumer.ssl.key.password: '{secret}', pass: '{secret}'}}", "{}"),
        CONNECTOR.format(f'{BYTES}, "producer.override.sasl.password": "{secret}"'),
    ]
    shown = [str(each) for text in texts for each in lint(read(text), files)]
    assert sum("in plain text" in each for each in shown) >= 4
    assert not [each for each in shown if "hunter2" in each or "wordfish" in each]


@pytest.mark.parametrize(
    ("line", "action"),
    [
        # A typo is a question; other keys have no likeness to what was meant.
        ("us->eu.sync.topic.acl.enabled = x", "did you mean us->eu.sync.topic.acls.enabled?"),
        ("us.ssl.trustore.location = x", "did you mean us.ssl.truststore.location?"),
        ("ssl.trustore.location = x", "did you mean ssl.truststore.location?"),
        ("us->eu.source.cluster.ssl.protokol = x", "did you mean us->eu.source.cluster.ssl.protoc"),
        ("eu.producer.linger.msec = 1", "did you mean eu.producer.linger.ms?"),
        ("topcis = x", "did you mean topics?"),
        ("heartbeats.topic.retention.ms = 1", "remove"),
        ("us->eu.heartbeats.topic.retention.ms = 1", "remove"),
        ("offset.metadata.max.bytes = 1", "remove"),
        ("eu.offset.metadata.max.bytes = 1", "remove"),
        ("auto.create.topics.enable = true", "remove"),
        ("us->eu.auto.create.topics.enable = true", "remove"),
        ("us->eu.zzz = 1", "remove"),
    ],
)
def test_lint_suggests_only_what_a_typo_explains(
    line: str, action: str, files: MirrorFiles
) -> None:
    findings = lint(read(f"{BASE}{line}\n"), files)
    actions = [each.action for each in findings if each.origin.line == 5]
    assert [each for each in actions if not each.startswith(action)] == []
    assert actions


def test_lint_misplaced_key_of_strimzi_names_its_place(files: MirrorFiles) -> None:
    text = STRIMZI.format("{sync.group.offsets.enabled: true, group.id: x}", "{}").replace(
        "    - source:", "    - tasksMax: 3\n      tasks.max: 3\n      groupId: g\n      source:"
    )
    actions = {each.action for each in lint(read(text), files) if "move" in each.action}
    assert actions == {
        "move it to checkpointConnector.config",
        "move it to config",
        "move it to spec.target",
        "move it to sourceConnector, checkpointConnector or heartbeatConnector",
    }


def test_lint_alias_that_is_a_prefix_of_a_key_leaves_it_a_setting(files: MirrorFiles) -> None:
    text = """\
clusters = source, target
source.bootstrap.servers = us-1:9092
target.bootstrap.servers = eu-1:9092
source->target.enabled = true
source.cluster.alias =
"""
    findings = lint(read(text), files)
    # The names of the copies are not known to mm2slo.
    assert [each.check for each in findings if each.origin.line == 5] == ["custom-policy"]


@pytest.mark.parametrize("aliases", [("us", "eu"), ("source", "target"), ("topics", "sync")])
def test_lint_says_of_no_key_that_kafka_reads_that_nothing_reads_it(
    aliases: tuple[str, str], files: MirrorFiles
) -> None:
    text = BASE.replace("clusters = us, eu", f"clusters = {', '.join(aliases)}")
    for old, new in zip(("us", "eu"), aliases, strict=True):
        text = text.replace(f"\n{old}", f"\n{new}").replace(f">{old}.", f">{new}.")
    keys = sorted(TOP_LEVEL_KEYS - RENAMED.keys())
    wrong = {"ignored-key", "unknown-key", "unknown-alias", "ambiguous-alias"}
    findings = lint(read(text + "".join(f"{key} = 1\n" for key in keys)), files)
    assert [each for each in findings if each.check in wrong] == []


@pytest.mark.property
@example({"topics": "a, (?i)b"})
@example({"groups": "(?<x>a), (?<x>b)"})
@given(
    st.dictionaries(
        st.sampled_from([
            "topics", "topics.exclude", "groups", "tasks.max", "offset.lag.max", "x.password", "x",
            "replication.policy.separator", "replication.policy.class", "replication.factor",
            "sync.group.offsets.interval.seconds", "source.cluster.sasl.jaas.config",
            "key.converter", "offset-syncs.topic.location", "offsets.storage.topic",
        ]),
        st.text(max_size=12) | st.sampled_from(["(a,b)", "9" * 5000, "x{2,3}", "true", "${env:X}"]),
    )
)  # fmt: skip
def test_lint_never_fails_on_values(values: Mapping[str, str]) -> None:
    def refuse(*_names: str) -> bytes:
        raise UnresolvedError("not here")

    lines = [
        f"us->eu.{key} = {value.encode('unicode_escape').decode()}\n"
        for key, value in values.items()
    ]
    text = BASE + "".join(lines) + "eu->us.enabled = true\n"
    files = MirrorFiles(lambda name: refuse(name).decode(), refuse, refuse)
    findings = lint(read(text), files, ON)
    assert [each for each in findings if not (each.what and each.why and each.action)] == []
