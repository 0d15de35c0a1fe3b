"""Checks of a MirrorMaker 2 configuration: keys and values, secrets, filters, clusters."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime, timedelta
from itertools import chain, combinations, permutations, product
from typing import Final, NamedTuple

from cryptography import x509

from mm2slo_core.config.client_security import Security
from mm2slo_core.config.config_checks import check_offset_syncs
from mm2slo_core.config.config_document import suggest_typo
from mm2slo_core.config.exporter_settings import PolicyKind
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.java_values import read_boolean, read_integer, read_servers, share_servers
from mm2slo_core.mm2_config import connector_settings
from mm2slo_core.mm2_config.connector_settings import WORKER_PREFIXES, default_value, is_read
from mm2slo_core.mm2_config.mirror_setup import (
    ConnectorKind,
    Form,
    MirrorFlow,
    MirrorSetup,
    Origin,
    Setting,
)
from mm2slo_core.mm2_config.provider_references import (
    REFERENCE,
    UNDECLARED,
    JaasError,
    parse_jaas,
    undeclared_providers,
)
from mm2slo_core.mm2_config.running_settings import find_setting
from mm2slo_core.replication_policy import KafkaVersion, OffsetSyncsLocation
from mm2slo_core.topic_filters import RecordTransforms, TopicFilter
from mm2slo_core.topic_selection import (
    SyncedSettings,
    TopicRole,
    replicated_topics,
    replication_policy,
)
from mm2slo_core.topology import Flow, hops


class LintHit(NamedTuple):
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
        found = find_setting(connector.settings, key) if connector else None
        return found if found and is_read(found, key, self.version) else None

    def value(self, kind: ConnectorKind | None, key: str) -> str:
        """The value that a connector or worker uses; "" if it is not known."""
        if found := self.setting(kind, key):
            return found.value.strip()
        return default_value(key) if kind in self.mirror.connectors else ""

    def number(self, kind: ConnectorKind | None, key: str) -> int:
        """The value as a number, 0 if it is none."""
        return read_integer(self.value(kind, key)) or 0

    def off_key(self, kind: ConnectorKind, name: str) -> str | None:
        """The key that switches off *name* of a connector; None if it is on."""
        if read_boolean(self.value(kind, f"{name}.enabled")) is False:
            return f"{name}.enabled"
        # Scheduler and the connectors do nothing at an interval below 0.
        pace = f"{name}.interval.seconds"
        return pace if self.number(kind, pace) < 0 else None

    def hit(
        self, check: str, kind: ConnectorKind | None, key: str,
        *, what: str | None = None, action: str | None = None,
    ) -> LintHit:  # fmt: skip
        """A hit where the value of *key* was written."""
        found = self.setting(kind, key)
        default = f"{self.flow}: {key} = {self.value(kind, key)} (default)"
        shown = f"{found.key} = {found.value.strip()}" if found else default
        place = found or (self.mirror.connectors.get(kind) if kind else None) or self.mirror
        return LintHit(check, place.origin, what or shown, action)


@dataclass(frozen=True, slots=True)
class LintInput:
    """All files together. By alias: *security* where it could be read, *facts* if connected."""

    setups: Sequence[MirrorSetup]
    flows: Sequence[LintFlow]
    security: Mapping[str, Security]
    facts: Mapping[str, ClusterFacts]
    now: datetime

    @property
    def mirrors(self) -> Iterator[tuple[MirrorSetup, MirrorFlow]]:
        """All flows, also disabled ones: their herders have workers, and emit heartbeats."""
        return ((setup, flow) for setup in self.setups for flow in setup.flows)


_SOURCE, _CHECKPOINT, _HEARTBEAT = ConnectorKind

# Checks of switches, also of a default: check, connector, and key without `.enabled`.
_SWITCHES: Final = (
    ("checkpoints-off", _CHECKPOINT, "emit.checkpoints"),
    ("offset-syncs-off", _SOURCE, "emit.offset-syncs"),
    ("group-sync-off", _CHECKPOINT, "sync.group.offsets"),
    ("no-refresh", _SOURCE, "refresh.topics"),
    ("no-refresh", _CHECKPOINT, "refresh.groups"),
)
# Of one value: check, connector, key, and the values it reports.
_VALUES: Final = (
    ("errors-tolerated", _SOURCE, "errors.tolerance", {"all"}),
    ("single-task", _SOURCE, "tasks.max", {"1"}),
    ("records-skipped", _SOURCE, "source.consumer.auto.offset.reset", {"latest", "none"}),
)

_SAME_IN_BOTH: Final = (
    "replication.policy.class", "replication.policy.separator", "topic.filter.class",
    "replication.policy.internal.topic.separator.enabled", "offset-syncs.topic.location",
)  # fmt: skip
_SYNCS: Final = "offset-syncs.topic.replication.factor"

_FACTORS: Final = {
    "replication.factor": _SOURCE,
    _SYNCS: _SOURCE,
    "checkpoints.topic.replication.factor": _CHECKPOINT,
    "heartbeats.topic.replication.factor": _HEARTBEAT,
    **{f"{name}.storage.replication.factor": None for name in ("config", "offset", "status")},
}
_CLUSTER_KEYS: Final = connector_settings.CLIENT_KEYS | connector_settings.WORKER_KEYS
_CLUSTER_PREFIXES: Final = (
    *(*WORKER_PREFIXES, "admin.", "consumer.", "producer.", "listeners.", "metrics.context."),
    *("sasl.", "security.", "ssl."),  # by check_client_keys
)

# Their classes may read other keys of a client.
_CLASSES: Final = (
    *("interceptor.classes", "metric.reporters", "partitioner.class", ".handler.class"),
    *("ssl.engine.factory.class", "sasl.login.class", "rest.extension.classes"),
)
_COMMENT: Final = re.compile(r"\s#")
_QUOTED: Final = re.compile(r"""(["']).*\1""", re.DOTALL)

# Where a key of the workers belongs, by form.
_WORKERS: Final = {
    Form.PROPERTIES: "as {flow.target}.{name}",
    Form.STRIMZI: "in spec.target.config, or before v1 in the config of connectCluster",
    Form.CONNECT_JSON: "in connect-distributed.properties",
}


def check_keys(flow: LintFlow, _lint: LintInput) -> Iterator[LintHit]:
    form, has_classes = flow.setup.form, any(key.endswith(_CLASSES) for key, *_ in _keys(flow))
    for name, setting, alias in _keys(flow):
        known, key, origin = connector_settings.connector_key(name), setting.key, setting.origin
        unknown = None if has_classes else connector_settings.unknown_client_key(name)
        if unknown:
            action = unknown[1] and f"did you mean {key.removesuffix(name)}{unknown[1]}?"
            what = f"{key} is not a setting of Kafka's {unknown[0]}"
            yield LintHit("unknown-key", origin, what, action)
        elif alias is not None:
            is_known = name in _CLUSTER_KEYS or name.startswith(_CLUSTER_PREFIXES)
            close = None if is_known else suggest_typo(name, _CLUSTER_KEYS)
            if not is_known and (known or close or not has_classes):
                action = close and f"did you mean {alias}.{close}?"
                action = f"write {flow.flow}.{name}" if known else action
                yield LintHit("unknown-key", origin, f"{key} is not a setting", action)
        elif known is None and name in connector_settings.WORKER_KEYS:
            place = _WORKERS[form].format(flow=flow.flow, name=name)
            action = f"set it for the workers, {place}"
            yield LintHit("key-without-effect", origin, f"{key} has no effect here", action)
        elif known is None:
            close = connector_settings.suggest_connector_key(name)
            action = close and f"did you mean {key.removesuffix(name)}{close}?"
            yield LintHit("unknown-key", origin, f"{key} is not a setting", action)
        elif known.kinds.isdisjoint(
            kind for kind, c in flow.mirror.connectors.items() if c.settings.get(name) == setting
        ):
            places: list[str] = sorted(known.kinds)
            if form is Form.STRIMZI:  # sourceConnector.config
                places = [f"{each[6].lower()}{each[7:]}.config" for each in places]
            if name in connector_settings.CLIENT_KEYS:
                places = [f"source.cluster.{name}", f"target.cluster.{name}"]
            close = None if places else connector_settings.suggest_connector_key(name)
            action = close and f"did you mean {key.removesuffix(name)}{close}?"
            action = f"move it to {' or '.join(places)}" if places else action
            yield LintHit("key-without-effect", origin, f"{key} has no effect here", action)
        elif not known.exists_in(flow.version):
            action = known.new_name and f"write {known.new_name}"
            what = f"{key} is not a setting of Kafka {flow.version.major}.{flow.version.minor}"
            yield LintHit("key-of-other-version", origin, what, action)


def check_client_keys(lint: LintInput) -> Iterator[LintHit]:
    """Keys of clusters that no client knows, and that no class of the user may read."""
    for cluster in (each for setup in lint.setups for each in setup.clusters.values()):
        has_classes = any(key.endswith(_CLASSES) for key in cluster.client)
        for name, setting in cluster.client.items():
            unknown = connector_settings.unknown_client_key(f"admin.{name}")
            is_own = setting.key in {name, f"{cluster.alias}.{name}"}
            if not unknown or not is_own or name in connector_settings.WORKER_KEYS:
                continue
            if close := unknown[1]:
                close = setting.key.removesuffix(name) + close.removeprefix("admin.")
            if close or not has_classes:
                what = f"{setting.key} is not a setting of Kafka's clients"
                action = close and f"did you mean {close}?"
                yield LintHit("unknown-key", setting.origin, what, action)


def check_texts(flow: LintFlow, _lint: LintInput) -> Iterator[LintHit]:
    """Values that Kafka refuses, and comments and quotes that become a part of a value."""
    parts = [each.settings for each in flow.mirror.connectors.values()]
    for name, setting in chain(*(each.items() for each in (*parts, flow.mirror.worker.settings))):
        key, value = setting.key, setting.value.strip()
        if SECRET.search(name) or name.endswith("jaas.config") or "${" in value:
            continue
        if name.startswith(("transforms.", "predicates.")):
            continue
        is_known = name in connector_settings.WORKER_KEYS or connector_settings.connector_key(name)
        expected = connector_settings.expected_value(name, value) if is_known else None
        expected = expected or connector_settings.expected_items(name, value, flow.version)
        if expected and not (name == "enabled" and flow.setup.form is Form.PROPERTIES):
            what = f"{key} = {value[:50]}; expected {expected}"
            yield LintHit("refused-value", setting.origin, what)
        elif _COMMENT.search(value):
            yield LintHit("comment-in-value", setting.origin, f"{key} has a # in its value")
        elif _QUOTED.fullmatch(value):
            yield LintHit("quoted-value", setting.origin, f"{key} has quotes around its value")


def check_setting_values(flow: LintFlow, _lint: LintInput) -> Iterator[LintHit]:
    for check, kind, name in _SWITCHES:
        if off := flow.off_key(kind, name):
            yield flow.hit(check, kind, off)
    for check, kind, key, bad in _VALUES:
        if flow.value(kind, key).lower() in bad:
            yield flow.hit(check, kind, key)
    if flow.config is None:
        return
    # A checkpoint is at most one record beyond an offset sync (KAFKA-12468), and within a run of
    # records OffsetSyncWriter sends a sync only every offset.lag.max of them.
    if flow.number(_SOURCE, "offset.lag.max") > flow.config.readiness.max_redelivery_records:
        yield flow.hit("large-offset-lag", _SOURCE, "offset.lag.max")
    for name in ("sync.group.offsets", "emit.checkpoints"):
        key = f"{name}.interval.seconds"
        is_slow = flow.number(_CHECKPOINT, key) > flow.config.freshness[-1].threshold
        if is_slow and not flow.off_key(_CHECKPOINT, name):
            yield flow.hit("slow-group-sync", _CHECKPOINT, key)


def check_factors(flow: LintFlow, lint: LintInput) -> Iterator[LintHit]:
    """Replication factors; without `--connect` only those of 1."""
    at_source = flow.config and flow.config.offset_syncs_location is OffsetSyncsLocation.SOURCE
    for key, kind in _FACTORS.items():
        factor = flow.number(kind, key)
        # Only offset syncs may be on the source (KIP-716); all else is created on the target.
        alias = flow.flow.source if at_source and key == _SYNCS else flow.flow.target
        facts = lint.facts.get(alias)
        if factor == 1:
            yield flow.hit("single-copy", kind, key)
        elif facts and factor > facts.brokers:
            what = f"{key} = {factor:g}, but {alias} has {facts.brokers} brokers"
            yield flow.hit("too-few-brokers", kind, key, what=what)


def check_connectors(flow: LintFlow, lint: LintInput) -> Iterator[LintHit]:
    """Differences between connectors, and what they need from clusters and workers."""
    origin, form = flow.mirror.origin, flow.setup.form
    has_checkpoints = _CHECKPOINT in flow.mirror.connectors
    if not has_checkpoints:
        yield LintHit("checkpoints-off", origin, f"{flow.flow} has no checkpoint connector")
    # MirrorCheckpointConnector computes names of topics again, by its own settings: with others it
    # reads other topics than the source connector writes, and translates nothing, without an error.
    for key in _SAME_IN_BOTH if has_checkpoints else ():
        here, there = flow.value(_SOURCE, key), flow.value(_CHECKPOINT, key)
        if not connector_settings.means_the_same(key, here, there):
            here, there = here or "empty", there or "empty"
            what = f"{key} is {here} for the source connector, {there} for the other"
            yield flow.hit("connectors-differ", _CHECKPOINT, key, what=what)
    for side in ("source", "target"):
        yield from _logins(flow, side)
    for key in ("key.converter", "value.converter", "header.converter"):
        kind = _SOURCE if flow.setting(_SOURCE, key) else None
        # Connect's default converts headers; others must be set.
        default = "SimpleHeaderConverter" if key[0] == "h" and form is Form.CONNECT_JSON else ""
        value = flow.value(kind, key) or default
        if value and not value.endswith("ByteArrayConverter"):
            yield flow.hit("converter", kind, key, what=f"{flow.flow}: {key} = {value}")
    source = flow.setup.clusters.get(flow.flow.source)
    protocol = source.client.get("security.protocol") if source else None
    has_users = protocol and protocol.value.strip().upper() != "PLAINTEXT"
    if not has_users and not flow.off_key(_SOURCE, "sync.topic.acls"):
        yield flow.hit("acl-sync-without-users", _SOURCE, "sync.topic.acls.enabled")
    # Without it, a worker that is not the leader cannot pass on new task settings (KIP-710).
    rest = flow.setup.process.get("dedicated.mode.enable.internal.rest")
    if form is Form.PROPERTIES and not (rest and rest.value.strip().lower() == "true"):
        yield LintHit("no-internal-rest", Origin(origin.file), "the internal REST server is off")
    # MirrorHeartbeatConnector writes to its target: a flow replicates the heartbeats of herders
    # that have its source as target.
    writers = (each for _, each in lint.mirrors if each.flow.target == flow.flow.source)
    if not any(_HEARTBEAT in each.working_connectors for each in writers):
        yield LintHit(
            "heartbeats-missing", origin, f"no flow emits heartbeats to {flow.flow.source}"
        )


def _logins(flow: LintFlow, side: str) -> Iterator[LintHit]:
    """Connectors without a login to a cluster to which others have one."""
    protocol, jaas = f"{side}.cluster.security.protocol", f"{side}.cluster.sasl.jaas.config"
    connectors = flow.mirror.connectors.values()
    with_sasl = [each for each in connectors if "SASL" in flow.value(each.kind, protocol).upper()]
    other = next((each.name for each in with_sasl if jaas in each.settings), None)
    for each in with_sasl:
        if other and jaas not in each.settings:
            what = f"{each.name} has no {jaas}, but {other} has"
            yield LintHit("connectors-differ", each.settings[protocol].origin, what)


def _keys(flow: LintFlow) -> Iterator[tuple[str, Setting, str | None]]:
    """Keys of connectors, and those of clusters with the alias; others are the reader's."""
    is_dedicated = flow.setup.form is Form.PROPERTIES
    prefix = f"{flow.flow}." if is_dedicated else ""
    for connector in flow.mirror.connectors.values():
        for key, setting in connector.settings.items():
            # Strimzi's operator derives other keys. Without a prefix, clients have theirs as well.
            is_shared = is_dedicated and setting.key == key and key not in _CLUSTER_KEYS
            if is_shared or setting.key == prefix + key:
                yield key, setting, None
            for alias in (flow.flow.source, flow.flow.target) if is_dedicated else ():
                if setting.key in connector_settings.TOP_LEVEL_KEYS:
                    continue
                if setting.key.startswith(f"{alias}."):
                    yield setting.key.removeprefix(f"{alias}."), setting, alias


_FILTERS: Final = {
    "topics": _SOURCE,
    "topics.exclude": _SOURCE,
    "groups": _CHECKPOINT,
    "groups.exclude": _CHECKPOINT,
}
_COMMA: Final = re.compile(r"\{\d*,\d*\}")
_GLOB: Final = re.compile(r"(?<!\\)[\w-]\*")
_ANY: Final = re.compile(r"\.[*+]\??")
_LONGEST_NAME: Final = 249  # Kafka's Topic.MAX_NAME_LENGTH
_OLDEST: Final = "message.timestamp.before.max.ms"
# What lets a copy expire earlier than its original, or refuse a record that the source accepted.
_LIMITS: Final = ("retention.ms", "retention.bytes", "max.message.bytes")


def check_filters(flow: LintFlow, lint: LintInput) -> Iterator[LintHit]:
    for key, kind in _FILTERS.items():
        if _COMMA.search(flow.value(kind, key)):
            yield flow.hit("comma-in-pattern", kind, key)
        elif _GLOB.search(flow.value(kind, key)):
            yield flow.hit("glob", kind, key)
    if flow.value(_SOURCE, "topics") == ".*":
        yield flow.hit("all-topics", _SOURCE, "topics")
    for _, other in lint.mirrors:
        if flow.config and other.flow.target == flow.flow.source:
            for pair in replicated_topics(flow.config, other.worker.topics)[:1]:
                what = f"{flow.flow} replicates {pair.source}, of the workers of {other.flow}"
                yield LintHit("internal-topics", flow.mirror.origin, what)


def check_names(flow: LintFlow, _lint: LintInput) -> Iterator[LintHit]:
    if flow.config and not _is_identity(flow.config):
        separator = flow.config.policy.separator
        for alias in (flow.flow.source, flow.flow.target):
            if separator in alias:
                what = f"the alias {alias} contains the separator {separator}"
                yield LintHit("separator-in-alias", flow.mirror.origin, what)
        if separator != ".":
            yield flow.hit("separator", _SOURCE, "replication.policy.separator")


def check_transforms(flow: LintFlow, _lint: LintInput) -> Iterator[LintHit]:
    for alias in RecordTransforms(flow.config.transforms).routers if flow.config else ():
        yield flow.hit("renamed-copies", _SOURCE, f"transforms.{alias}.type")


def check_topology(lint: LintInput) -> Iterator[LintHit]:
    """Cycles, several writers of a topic, and copies that arrive on two paths."""
    origins = {each.flow: each.mirror.origin for each in lint.flows}
    configs = {each.flow: each.config for each in lint.flows if each.config}
    samples = {flow: _samples(config) for flow, config in configs.items()}
    identity = sorted(flow for flow in configs if _is_identity(configs[flow]))
    # Topics, and expressions with their exclusions, since no topic is known for some.
    shared: set[str | tuple[str, ...]] = {each for flow in identity for each in samples[flow]}
    for config in (configs[flow] for flow in identity):
        shared |= {(each, *config.topics_exclude) for each in config.topics}
    groups = {tuple(f for f in identity if _selects(configs[f], each)) for each in shared}

    for each in check_offset_syncs(dict(enumerate(configs.values()))):
        flow = [*configs][int(each.path[1])]
        yield LintHit("shared-offset-syncs", origins[flow], each.what)
    cycles = {flow for group in groups for flow in group if hops(group, flow.target, flow.source)}
    # A name says nothing about the identity flow to the default policy of the way back.
    for flow in (each for each in identity if each.reverse in configs.keys() - {*identity}):
        back = configs[flow.reverse]
        copies = [pair.target for pair in replicated_topics(back, samples[flow])]
        if any(_selects(configs[flow], each) and _selects(back, each) for each in copies):
            cycles |= {flow, flow.reverse}
    for flow in sorted(cycles):
        yield LintHit("replication-cycle", origins[flow], f"{flow} is a part of a cycle of flows")
    pairs = {pair for group in groups for pair in permutations(group, 2)}
    for flow, other in sorted(pair for pair in pairs if pair[0].target == pair[1].target):
        what = f"{flow} and {other} write the same topics"
        yield LintHit("two-writers", origins[flow], what)
    for one, two in product(sorted(configs.keys() - {*identity}), repeat=2):
        direct = configs.get(Flow(one.source, two.target)) if one.target == two.source else None
        for topic in sorted(samples[one]) if direct else ():
            copy = replication_policy(configs[one]).remote_topic(one.source, topic)
            if direct and _selects(direct, topic) and _selects(configs[two], copy):
                copy = replication_policy(configs[two]).remote_topic(two.source, copy)
                what = f"{two} also replicates copies of {one}, as {copy}"
                yield LintHit("double-prefix", origins[two], what)


def check_aliases(lint: LintInput) -> Iterator[LintHit]:
    """Clusters that several aliases of one MirrorMaker 2 lead to."""
    for setup in lint.setups:
        used = {alias for each in setup.enabled_flows for alias in astuple(each.flow)}
        clusters = [each for alias, each in setup.clusters.items() if alias in used]
        for one, other in combinations(clusters, 2):
            ids = {lint.facts[each.alias].cluster_id for each in (one, other) if lint.facts}
            is_one = len(ids) == 1 and None not in ids
            if is_one or share_servers(one.servers or "", other.servers or ""):
                same = f"cluster id: {ids.pop()}" if is_one else f"servers: {other.servers}"
                what = f"{one.alias} and {other.alias} have the same {same}"
                yield LintHit("one-cluster", other.origin, what)


def check_workers(flow: LintFlow, lint: LintInput) -> Iterator[LintHit]:
    # Source tasks write with the producer of their worker (Worker.baseProducerConfigs), which does
    # not know `target.cluster.*`; only `producer.override.*` (KIP-458) leads elsewhere.
    target = flow.servers(flow.flow.target)
    written = {flow.written_servers(kind) for kind in flow.mirror.working_connectors}
    for servers in sorted(filter(None, written), key=lambda each: each.origin):
        if target is None or "${" in servers.value + target or share_servers(servers.value, target):
            continue
        known = {each.alias: each.servers or "" for each in flow.setup.clusters.values()}
        others = sorted(alias for alias in known if share_servers(servers.value, known[alias]))
        where = " or ".join(others) or servers.value
        what = f"records of {flow.flow} are written to {where}, not to {target}"
        yield LintHit("wrong-target" if others else "other-target", servers.origin, what)


def check_storage(lint: LintInput) -> Iterator[LintHit]:
    """Topics of workers: not compacted, or of two groups, by a server of their cluster."""
    users: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    mirrors = list(lint.mirrors)
    for index, (setup, each) in enumerate(mirrors):
        alias = each.flow.target
        settings = lint.facts[alias].settings if alias in lint.facts else {}
        for topic in sorted(each.worker.topics & settings.keys()):
            if (policy := settings[topic].get("cleanup.policy", "compact")) != "compact":
                what = f"{topic} on {alias} has cleanup.policy = {policy}"
                yield LintHit("storage-not-compacted", each.origin, what)
        target = setup.clusters.get(alias)
        servers = (target.servers if target else None) or ""
        for key in product(each.worker.topics, {*(read_servers(servers) or [servers])} - {""}):
            users[key].append(index)
    shared: dict[tuple[int, int], str] = {}
    for (topic, _), found in sorted(users.items()):
        for pair in permutations(found, 2):
            shared.setdefault(pair, topic)
    for (one, other), topic in sorted(shared.items()):
        (setup, here), (there, its) = mirrors[one], mirrors[other]
        # Dedicated mode has workers for each flow, and other forms for a resource or a cluster.
        is_one = setup is there and here.worker.group_id == its.worker.group_id
        if not is_one or setup.form is Form.PROPERTIES:
            what = f"the workers of {here.flow} and {its.flow} both use {topic}"
            yield LintHit("shared-storage", here.origin, what)


def check_clusters(flow: LintFlow, lint: LintInput) -> Iterator[LintHit]:
    label, config = flow.flow, flow.config
    source, target = lint.facts.get(label.source), lint.facts.get(label.target)
    if not (source and target and config):
        return
    found = replicated_topics(config, source.partitions)
    pairs = [pair for pair in found if pair.role is TopicRole.DATA]
    partitions = max(1, sum(source.partitions[pair.source] for pair in pairs))
    if flow.number(_SOURCE, "tasks.max") > partitions:
        yield flow.hit("idle-tasks", _SOURCE, "tasks.max", action=f"set it to {partitions}")
    # Flags such as (?i) would apply to later entries as well.
    for pattern in config.topics if "(?" not in str(config.topics) else ():
        if not any(map(TopicFilter((pattern,), ()).matches, source.partitions)):
            what = f"no topic of {label.source} matches {pattern}"
            yield flow.hit("no-topic", _SOURCE, "topics", what=what)
    syncs = not flow.off_key(_SOURCE, "sync.topic.configs")
    is_copied = syncs and SyncedSettings(config.config_properties_exclude).is_synced(_OLDEST)
    for pair in pairs:
        if len(pair.target) > _LONGEST_NAME:
            what = f"the copy of {pair.source} needs a name of {len(pair.target)} characters"
            yield LintHit("name-too-long", flow.mirror.origin, what)
        here, there = source.settings.get(pair.source, {}), target.settings.get(pair.target, {})
        for key in _LIMITS:
            if key in here and key in there and _limit(there[key]) < _limit(here[key]):
                what = f"{pair.target}: {key} = {there[key]}, on the source {here[key]}"
                yield LintHit("lower-target-limit", flow.mirror.origin, what)
        if _OLDEST in there or (_OLDEST in here and is_copied):
            topic = pair.target if _OLDEST in there else pair.source
            what = f"{topic}: {_OLDEST} = {there.get(_OLDEST) or here[_OLDEST]}"
            yield LintHit("timestamp-limit", flow.mirror.origin, what)


def _is_identity(config: FlowConfig) -> bool:
    return config.policy.kind is PolicyKind.IDENTITY


def _selects(config: FlowConfig, topic: str | tuple[str, ...]) -> bool:
    """Whether *config* replicates a topic, or has an expression with the same exclusions."""
    if isinstance(topic, tuple):
        return topic[0] in config.topics and topic[1:] == config.topics_exclude
    return bool(replicated_topics(config, [topic]))


def _samples(config: FlowConfig) -> set[str]:
    """Names that *config* replicates, as far as its expressions are simple."""
    patterns = (part for entry in config.topics for part in entry.split("|"))
    names = (_ANY.sub("x", pattern).replace("\\", "") for pattern in patterns)
    return {name for name in names if _selects(config, name)}


def _limit(value: str) -> float:
    return float("inf") if value == "-1" else float(value)


SECRET: Final = re.compile(
    r"(?:password|passphrase|secret|keystore\.key|(?:access|refresh)\.?token)$", re.IGNORECASE
)
# Expressions, in which ${a:b} may be meant.
_FREE_TEXTS: Final = ("transforms.", "predicates.", "topics", "groups", "config.properties")
_PLACEHOLDER: Final = re.compile(
    r"\{\{.*?\}\}|(?<![?k])<[A-Za-z][\w .-]*>|\$\{?(?!ConnectionString)[A-Za-z_]\w*\}?"
    r"|\A(?:x{3,}|\*{3,}|change[_-]?me|replace[_-]?me|todo|tbd|fixme|your[_-][\w-]+)\Z",
    re.IGNORECASE,
)
_RENEWAL: Final = timedelta(days=30)


def check_plain_secrets(lint: LintInput) -> Iterator[LintHit]:
    found = {each: key for setup in lint.setups for key, each in _settings(setup)}
    for setting, key in found.items():
        if key.endswith("endpoint.identification.algorithm") and not setting.value.strip():
            yield LintHit("host-names-not-verified", setting.origin, f"{setting.key} is empty")
        for name, value in _texts(setting, key).items():
            is_secret, rest = bool(SECRET.search(name)), REFERENCE.sub("", value.strip())
            # A password may contain such characters.
            search = _PLACEHOLDER.fullmatch if is_secret else _PLACEHOLDER.search
            if is_secret and not value.strip():
                yield LintHit("empty-password", setting.origin, f"{name} is empty")
            elif search(rest) and not key.startswith("transforms."):  # TimestampRouter has ${topic}
                yield LintHit("placeholder", setting.origin, f"{name} has a placeholder")
            elif is_secret and rest:
                yield LintHit("plain-text-password", setting.origin, f"{name} is in plain text")


def check_providers(lint: LintInput) -> Iterator[LintHit]:
    for setup in lint.setups:
        for key, each in _settings(setup):
            if SECRET.search(key) or not key.startswith(_FREE_TEXTS):
                for what in undeclared_providers(each, setup.providers):
                    yield LintHit(UNDECLARED[0], each.origin, what)


def check_certificates(lint: LintInput) -> Iterator[LintHit]:
    for cluster in (each for setup in lint.setups for each in setup.clusters.values()):
        security = lint.security.get(cluster.alias)
        tls = security.tls if security else None
        # Brokers may use any of several CAs, as during a renewal.
        for what, pem, decisive in (
            ("client certificate", tls and tls.certificate, min),
            ("newest CA certificate", tls and tls.ca, max),
        ):
            if found := x509.load_pem_x509_certificates(pem.encode()) if pem else []:
                end = decisive(each.not_valid_after_utc for each in found)
                if (left := end - lint.now) < _RENEWAL:
                    state = "expires-soon" if left > timedelta(0) else "expired"
                    text = f"the {what} of {cluster.alias} is valid until {end:%Y-%m-%d}"
                    yield LintHit(f"certificate-{state}", cluster.origin, text)


def _settings(setup: MirrorSetup) -> Iterator[tuple[str, Setting]]:
    """All settings, with the keys that Kafka sees."""
    for cluster in setup.clusters.values():
        yield from cluster.client.items()
    for flow in setup.flows:
        yield from flow.worker.settings.items()
        for connector in flow.connectors.values():
            yield from connector.settings.items()


def _texts(setting: Setting, key: str) -> Mapping[str, str]:
    """The value, or the options of `sasl.jaas.config`, by names for messages."""
    try:
        options = parse_jaas(setting.value).options if key.endswith("jaas.config") else {}
    except JaasError:
        options = {}
    texts = {f"{setting.key}: {name}": value for name, value in options.items()}
    return texts or {setting.key: setting.value}
