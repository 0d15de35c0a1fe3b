"""Checks of keys, values and replication factors of connectors and workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.config.suggestion import suggest
from mm2slo_core.internal_topics import OffsetSyncsLocation
from mm2slo_core.mm2_config import connector_keys
from mm2slo_core.mm2_config.findings import Origin
from mm2slo_core.mm2_config.flow_precedence import WORKER_PREFIXES
from mm2slo_core.mm2_config.lint.lint_input import Hit
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


def check_keys(flow: LintFlow, _lint: LintInput) -> Iterator[Hit]:
    for name, setting, alias in _keys(flow):
        known, key, origin = connector_keys.connector_key(name), setting.key, setting.origin
        if alias is not None:
            if name not in _CLUSTER_KEYS and not name.startswith(_CLUSTER_PREFIXES):
                close = suggest(name, _CLUSTER_KEYS)
                meant = f"{flow.flow}.{name}" if known else close and f"{alias}.{close}"
                action = meant and f"write {meant}"
                yield Hit("unknown-key", origin, f"{key} is not a setting", action)
        elif known is None and name in connector_keys.WORKER_KEYS:
            action = f"set it for the workers, as {flow.flow.target}.{name} in dedicated mode"
            yield Hit("key-without-effect", origin, f"{key} has no effect here", action)
        elif known is None:
            close = connector_keys.suggest_connector_key(name)
            action = close and f"write {key.removesuffix(name)}{close}"
            yield Hit("unknown-key", origin, f"{key} is not a setting", action)
        elif known.kinds.isdisjoint(
            kind for kind, c in flow.mirror.connectors.items() if c.settings.get(name) == setting
        ):
            places: list[str] = sorted(known.kinds)
            if name in connector_keys.CLIENT_KEYS:
                places = [f"source.cluster.{name}", f"target.cluster.{name}"]
            action = f"move it to {' or '.join(places)}" if places else None
            yield Hit("key-without-effect", origin, f"{key} has no effect here", action)
        elif not known.exists_in(flow.version):
            action = known.new_name and f"write {known.new_name}"
            what = f"{key} is not a setting of Kafka {flow.version.major}.{flow.version.minor}"
            yield Hit("key-of-other-version", origin, what, action)


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
                if setting.key.startswith(f"{alias}."):
                    yield setting.key.removeprefix(f"{alias}."), setting, alias
