"""Checks of keys, values and replication factors of connectors and workers."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.suggestion import suggest_typo
from mm2slo_core.internal_topics import OffsetSyncsLocation
from mm2slo_core.mm2_config import connector_keys
from mm2slo_core.mm2_config.findings import Origin
from mm2slo_core.mm2_config.flow_precedence import WORKER_PREFIXES
from mm2slo_core.mm2_config.lint.lint_input import Hit
from mm2slo_core.mm2_config.lint.lint_secrets import SECRET
from mm2slo_core.mm2_config.mirror_setup import EMIT, ConnectorKind, Form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.mm2_config.lint.lint_input import LintFlow, LintInput
    from mm2slo_core.mm2_config.mirror_setup import Setting

_SOURCE, _CHECKPOINT, _HEARTBEAT = ConnectorKind
# Checks of one value, also of a default: check, connector, key, and the values it reports.
_VALUES: Final = (
    ("checkpoints-off", _CHECKPOINT, "emit.checkpoints.enabled", {"false"}),
    ("offset-syncs-off", _SOURCE, "emit.offset-syncs.enabled", {"false"}),
    ("group-sync-off", _CHECKPOINT, "sync.group.offsets.enabled", {"false"}),
    ("errors-tolerated", _SOURCE, "errors.tolerance", {"all"}),
    ("single-task", _SOURCE, "tasks.max", {"1"}),
    ("records-skipped", _SOURCE, "source.consumer.auto.offset.reset", {"latest", "none"}),
    ("records-skipped", _SOURCE, "consumer.auto.offset.reset", {"latest", "none"}),
    ("no-refresh", _SOURCE, "refresh.topics.enabled", {"false"}),
    ("no-refresh", _CHECKPOINT, "refresh.groups.enabled", {"false"}),
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
_CLUSTER_KEYS: Final = connector_keys.CLIENT_KEYS | connector_keys.WORKER_KEYS
_CLUSTER_PREFIXES: Final = (*WORKER_PREFIXES, "admin.", "consumer.", "producer.", "sasl.", "ssl.")
# Their classes may read other keys of a client.
_CLASSES: Final = ("interceptor.classes", "metric.reporters", "partitioner.class", ".handler.class")
_COMMENT: Final = re.compile(r"\s#")
_QUOTED: Final = re.compile(r"""(["']).*\1""", re.DOTALL)
# Where a key of the workers belongs, by form.
_WORKERS: Final = {
    Form.PROPERTIES: "as {flow.target}.{name}",
    Form.STRIMZI: "in spec.target.config, or before v1 in the config of connectCluster",
    Form.CONNECT_JSON: "in connect-distributed.properties",
}


def check_keys(flow: LintFlow, _lint: LintInput) -> Iterator[Hit]:
    form, has_classes = flow.setup.form, any(key.endswith(_CLASSES) for key, *_ in _keys(flow))
    for name, setting, alias in _keys(flow):
        known, key, origin = connector_keys.connector_key(name), setting.key, setting.origin
        unknown = None if has_classes else connector_keys.unknown_client_key(name)
        if unknown:
            action = unknown[1] and f"did you mean {key.removesuffix(name)}{unknown[1]}?"
            what = f"{key} is not a setting of Kafka's {unknown[0]}"
            yield Hit("unknown-key", origin, what, action)
        elif alias is not None:
            if name not in _CLUSTER_KEYS and not name.startswith(_CLUSTER_PREFIXES):
                close = suggest_typo(name, _CLUSTER_KEYS)
                action = close and f"did you mean {alias}.{close}?"
                action = f"write {flow.flow}.{name}" if known else action
                yield Hit("unknown-key", origin, f"{key} is not a setting", action)
        elif known is None and name in connector_keys.WORKER_KEYS:
            place = _WORKERS[form].format(flow=flow.flow, name=name)
            action = f"set it for the workers, {place}"
            yield Hit("key-without-effect", origin, f"{key} has no effect here", action)
        elif known is None:
            close = connector_keys.suggest_connector_key(name)
            action = close and f"did you mean {key.removesuffix(name)}{close}?"
            yield Hit("unknown-key", origin, f"{key} is not a setting", action)
        elif known.kinds.isdisjoint(
            kind for kind, c in flow.mirror.connectors.items() if c.settings.get(name) == setting
        ):
            places: list[str] = sorted(known.kinds)
            if form is Form.STRIMZI:  # sourceConnector.config
                places = [f"{each[6].lower()}{each[7:]}.config" for each in places]
            if name in connector_keys.CLIENT_KEYS:
                places = [f"source.cluster.{name}", f"target.cluster.{name}"]
            action = f"move it to {' or '.join(places)}" if places else None
            yield Hit("key-without-effect", origin, f"{key} has no effect here", action)
        elif not known.exists_in(flow.version):
            action = known.new_name and f"write {known.new_name}"
            what = f"{key} is not a setting of Kafka {flow.version.major}.{flow.version.minor}"
            yield Hit("key-of-other-version", origin, what, action)


def check_texts(flow: LintFlow, _lint: LintInput) -> Iterator[Hit]:
    """Values that Kafka refuses, and comments and quotes that become a part of a value."""
    parts = [each.settings for each in flow.mirror.connectors.values()]
    for name, setting in chain(*(each.items() for each in (*parts, flow.mirror.worker.settings))):
        key, value = setting.key, setting.value.strip()
        if SECRET.search(name) or name.endswith("jaas.config") or "${" in value:
            continue
        if name.startswith(("transforms.", "predicates.")):
            continue
        is_known = name in connector_keys.WORKER_KEYS or connector_keys.connector_key(name)
        expected = connector_keys.expected_value(name, value) if is_known else None
        expected = expected or connector_keys.expected_items(name, value, flow.version)
        if expected and not (name == "enabled" and flow.setup.form is Form.PROPERTIES):
            what = f"{key} = {value[:50]}; expected {expected}"
            yield Hit("refused-value", setting.origin, what)
        elif _COMMENT.search(value):
            yield Hit("comment-in-value", setting.origin, f"{key} has a # in its value")
        elif _QUOTED.fullmatch(value):
            yield Hit("quoted-value", setting.origin, f"{key} has quotes around its value")


def check_values(flow: LintFlow, _lint: LintInput) -> Iterator[Hit]:
    for check, kind, key, bad in _VALUES:
        if flow.value(kind, key).lower() in bad:
            yield flow.hit(check, kind, key)
    if flow.config is None:
        return
    if flow.number(_SOURCE, "offset.lag.max") > flow.config.readiness.max_redelivery_records:
        yield flow.hit("large-offset-lag", _SOURCE, "offset.lag.max")
    for name in ("sync.group.offsets", "emit.checkpoints"):
        key = f"{name}.interval.seconds"
        is_slow = flow.number(_CHECKPOINT, key) > flow.config.freshness[-1].threshold
        if is_slow and flow.value(_CHECKPOINT, f"{name}.enabled") == "true":
            yield flow.hit("slow-group-sync", _CHECKPOINT, key)


def check_factors(flow: LintFlow, lint: LintInput) -> Iterator[Hit]:
    """Replication factors; without `--connect` only those of 1."""
    at_source = flow.config and flow.config.offset_syncs_location is OffsetSyncsLocation.SOURCE
    for key, kind in _FACTORS.items():
        factor = flow.number(kind, key)
        alias = flow.flow.source if at_source and key == _SYNCS else flow.flow.target
        facts = lint.facts.get(alias)
        if factor == 1:
            yield flow.hit("single-copy", kind, key)
        elif facts and factor > facts.brokers:
            what = f"{key} = {factor:g}, but {alias} has {facts.brokers} brokers"
            yield flow.hit("too-few-brokers", kind, key, what=what)


def check_connectors(flow: LintFlow, lint: LintInput) -> Iterator[Hit]:
    """Differences between connectors, and what they need from clusters and workers."""
    origin, form = flow.mirror.origin, flow.setup.form
    has_checkpoints = _CHECKPOINT in flow.mirror.connectors
    if not has_checkpoints:
        yield Hit("checkpoints-off", origin, f"{flow.flow} has no checkpoint connector")
    for key in _SAME_IN_BOTH if has_checkpoints else ():
        here, there = flow.value(_SOURCE, key), flow.value(_CHECKPOINT, key)
        # Classes may have their package.
        if here.rpartition(".")[2] != there.rpartition(".")[2]:
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
    if not has_users and flow.value(_SOURCE, "sync.topic.acls.enabled") == "true":
        yield flow.hit("acl-sync-without-users", _SOURCE, "sync.topic.acls.enabled")
    rest = flow.setup.process.get("dedicated.mode.enable.internal.rest")
    if form is Form.PROPERTIES and not (rest and rest.value.strip().lower() == "true"):
        yield Hit("no-internal-rest", Origin(origin.file), "the internal REST server is off")
    switches = (
        each.connectors[_HEARTBEAT].settings.get(EMIT[_HEARTBEAT][0])
        for setup in lint.setups
        for each in setup.flows
        if each.flow.target == flow.flow.source and _HEARTBEAT in each.connectors
    )
    if all(switch and switch.is_false for switch in switches):
        yield Hit("heartbeats-missing", origin, f"no flow emits heartbeats to {flow.flow.source}")


def _logins(flow: LintFlow, side: str) -> Iterator[Hit]:
    """Connectors without a login to a cluster to which others have one."""
    protocol, jaas = f"{side}.cluster.security.protocol", f"{side}.cluster.sasl.jaas.config"
    connectors = flow.mirror.connectors.values()
    with_sasl = [each for each in connectors if "SASL" in flow.value(each.kind, protocol).upper()]
    other = next((each.name for each in with_sasl if jaas in each.settings), None)
    for each in with_sasl:
        if other and jaas not in each.settings:
            what = f"{each.name} has no {jaas}, but {other} has"
            yield Hit("connectors-differ", each.settings[protocol].origin, what)


def _keys(flow: LintFlow) -> Iterator[tuple[str, Setting, str | None]]:
    """Keys of connectors, and those of clusters with the alias; others are the reader's."""
    is_dedicated = flow.setup.form is Form.PROPERTIES
    for connector in flow.mirror.connectors.values():
        for key, setting in connector.settings.items():
            # Strimzi's operator derives other keys.
            own = setting.key.startswith(f"{flow.flow}.") if is_dedicated else setting.key == key
            if own:
                yield key, setting, None
            for alias in (flow.flow.source, flow.flow.target) if is_dedicated else ():
                if setting.key in connector_keys.TOP_LEVEL_KEYS:
                    continue
                if setting.key.startswith(f"{alias}."):
                    yield setting.key.removeprefix(f"{alias}."), setting, alias
