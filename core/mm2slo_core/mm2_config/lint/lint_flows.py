"""Checks of filters and names, between flows and worker groups, and against clusters."""

from __future__ import annotations

import re
from dataclasses import astuple
from itertools import combinations, product
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.flow_checks import check_offset_syncs
from mm2slo_core.config.flow_config import PolicyKind
from mm2slo_core.java_values import share_servers
from mm2slo_core.mm2_config.lint.lint_input import Hit
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.name_filters import TopicFilter
from mm2slo_core.record_transforms import RecordTransforms
from mm2slo_core.topic_drift import SyncedSettings
from mm2slo_core.topic_selection import TopicRole, replicated_topics, replication_policy
from mm2slo_core.topology import Flow, FlowGraph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_core.mm2_config.lint.lint_input import LintFlow, LintInput

_SOURCE, _CHECKPOINT, _ = ConnectorKind
_FILTERS: Final = {"topics": _SOURCE, "topics.exclude": _SOURCE, "groups": _CHECKPOINT,
                   "groups.exclude": _CHECKPOINT}  # fmt: skip
_COMMA: Final = re.compile(r"\{\d*,\d*\}")
_GLOB: Final = re.compile(r"(?<!\\)[\w-]\*")
_ANY: Final = re.compile(r"\.[*+]\??")
_LONGEST_NAME: Final = 249  # Kafka's Topic.MAX_NAME_LENGTH
_OLDEST: Final = "message.timestamp.before.max.ms"
_LIMITS: Final = ("retention.ms", "retention.bytes", "max.message.bytes")


def check_filters(flow: LintFlow, lint: LintInput) -> Iterator[Hit]:
    for key, kind in _FILTERS.items():
        if _COMMA.search(flow.value(kind, key)):
            yield flow.hit("comma-in-pattern", kind, key)
        elif _GLOB.search(flow.value(kind, key)):
            yield flow.hit("glob", kind, key)
    if flow.value(_SOURCE, "topics") == ".*":
        yield flow.hit("all-topics", _SOURCE, "topics")
    for other in lint.flows:
        if flow.config and other.flow.target == flow.flow.source:
            for pair in replicated_topics(flow.config, other.storage)[:1]:
                what = f"{flow.flow} replicates {pair.source}, of the workers of {other.flow}"
                yield Hit("internal-topics", flow.mirror.origin, what)


def check_names(flow: LintFlow, _lint: LintInput) -> Iterator[Hit]:
    if flow.config and not _is_identity(flow.config):
        separator = flow.config.policy.separator
        for alias in (flow.flow.source, flow.flow.target):
            if separator in alias:
                what = f"the alias {alias} contains the separator {separator}"
                yield Hit("separator-in-alias", flow.mirror.origin, what)
        if separator != ".":
            yield flow.hit("separator", _SOURCE, "replication.policy.separator")


def check_transforms(flow: LintFlow, _lint: LintInput) -> Iterator[Hit]:
    for alias in RecordTransforms(flow.config.transforms).routers if flow.config else ():
        yield flow.hit("renamed-copies", _SOURCE, f"transforms.{alias}.type")


def check_topology(lint: LintInput) -> Iterator[Hit]:
    """Cycles, several writers of a topic, and copies that arrive on two paths."""
    origins = {each.flow: each.mirror.origin for each in lint.flows}
    configs = {each.flow: each.config for each in lint.flows if each.config}
    samples = {flow: _samples(config) for flow, config in configs.items()}
    identity = FlowGraph(frozenset(flow for flow in configs if _is_identity(configs[flow])))

    def overlap(one: Flow, other: Flow) -> bool:
        return any(
            _selects(configs[one], name) and _selects(configs[other], name)
            for name in samples[one] | samples[other]
        )

    for each in check_offset_syncs(dict(enumerate(configs.values()))):
        flow = [*configs][int(each.path[1])]
        yield Hit("shared-offset-syncs", origins[flow], each.what)
    for flow in sorted(identity.flows):
        back = identity.hops(flow.target, flow.source)
        if back and (back > 1 or overlap(flow, flow.reverse)):
            yield Hit("replication-cycle", origins[flow], f"{flow} is a part of a cycle of flows")
        for other in (Flow(source, flow.target) for source in identity.sources_into(flow.target)):
            if other != flow and overlap(flow, other):
                what = f"{flow} and {other} write the same topics"
                yield Hit("two-writers", origins[flow], what)
    for one, two in product(sorted(configs.keys() - identity.flows), repeat=2):
        direct = configs.get(Flow(one.source, two.target)) if one.target == two.source else None
        for topic in sorted(samples[one]) if direct else ():
            copy = replication_policy(configs[one]).remote_topic(one.source, topic)
            if direct and _selects(direct, topic) and _selects(configs[two], copy):
                copy = replication_policy(configs[two]).remote_topic(two.source, copy)
                what = f"{two} also replicates copies of {one}, as {copy}"
                yield Hit("double-prefix", origins[two], what)


def check_aliases(lint: LintInput) -> Iterator[Hit]:
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
                yield Hit("one-cluster", other.origin, what)


def check_workers(flow: LintFlow, lint: LintInput) -> Iterator[Hit]:
    target = flow.servers(flow.flow.target)
    written = {flow.written_servers(kind) for kind in flow.mirror.working_connectors}
    for servers in sorted(filter(None, written), key=lambda each: each.origin):
        if target is None or "${" in servers.value + target or share_servers(servers.value, target):
            continue
        known = {each.alias: each.servers or "" for each in flow.setup.clusters.values()}
        others = sorted(alias for alias in known if share_servers(servers.value, known[alias]))
        where = " or ".join(others) or servers.value
        what = f"records of {flow.flow} are written to {where}, not to {target}"
        yield Hit("wrong-target" if others else "other-target", servers.origin, what)
    for other in lint.flows:
        # Each resource of Strimzi has workers of its own.
        group, theirs = (each.mirror.worker.group_id for each in (flow, other))
        shared = sorted(flow.storage & other.storage)
        is_same = flow.setup is other.setup and group == theirs
        there = other.servers(other.flow.target)
        if shared and not is_same and share_servers(there or "", target or ""):
            what = f"the workers of {flow.flow} and {other.flow} both use {shared[0]}"
            yield Hit("shared-storage", flow.mirror.origin, what)


def check_clusters(flow: LintFlow, lint: LintInput) -> Iterator[Hit]:
    label, config = flow.flow, flow.config
    source, target = lint.facts.get(label.source), lint.facts.get(label.target)
    if not (source and target and config):
        return
    found = replicated_topics(config, source.partitions)
    pairs = [pair for pair in found if pair.role is TopicRole.DATA]
    partitions = max(1, sum(source.partitions[pair.source] for pair in pairs))
    if flow.number(_SOURCE, "tasks.max") > partitions:
        yield flow.hit("idle-tasks", _SOURCE, "tasks.max", action=f"set it to {partitions}")
    for pattern in config.topics:
        if not any(map(TopicFilter((pattern,), ()).matches, source.partitions)):
            what = f"no topic of {label.source} matches {pattern}"
            yield flow.hit("no-topic", _SOURCE, "topics", what=what)
    syncs = flow.value(_SOURCE, "sync.topic.configs.enabled") == "true"
    is_copied = syncs and SyncedSettings(config.config_properties_exclude).is_synced(_OLDEST)
    for pair in pairs:
        if len(pair.target) > _LONGEST_NAME:
            what = f"the copy of {pair.source} needs a name of {len(pair.target)} characters"
            yield Hit("name-too-long", flow.mirror.origin, what)
        here, there = source.settings.get(pair.source, {}), target.settings.get(pair.target, {})
        for key in _LIMITS:
            if key in here and key in there and _limit(there[key]) < _limit(here[key]):
                what = f"{pair.target}: {key} = {there[key]}, on the source {here[key]}"
                yield Hit("lower-target-limit", flow.mirror.origin, what)
        if _OLDEST in there or (_OLDEST in here and is_copied):
            topic = pair.target if _OLDEST in there else pair.source
            what = f"{topic}: {_OLDEST} = {there.get(_OLDEST) or here[_OLDEST]}"
            yield Hit("timestamp-limit", flow.mirror.origin, what)
    for topic in sorted(flow.storage & target.settings.keys()):
        policy = target.settings[topic].get("cleanup.policy", "compact")
        if policy != "compact":
            what = f"{topic} on {label.target} has cleanup.policy = {policy}"
            yield Hit("storage-not-compacted", flow.mirror.origin, what)


def _is_identity(config: FlowConfig) -> bool:
    return config.policy.kind is PolicyKind.IDENTITY


def _selects(config: FlowConfig, topic: str) -> bool:
    return bool(replicated_topics(config, [topic]))


def _samples(config: FlowConfig) -> set[str]:
    """Names that *config* replicates, as far as its expressions are simple."""
    patterns = (part for entry in config.topics for part in entry.split("|"))
    names = (_ANY.sub("x", pattern).replace("\\", "") for pattern in patterns)
    return {name for name in names if _selects(config, name)}


def _limit(value: str) -> float:
    return float("inf") if value == "-1" else float(value)
