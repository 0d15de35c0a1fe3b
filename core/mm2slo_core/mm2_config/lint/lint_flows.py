"""Checks of filters and names, and between flows and worker groups."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.flow_config import PolicyKind
from mm2slo_core.mm2_config.lint.lint_input import Hit
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.topic_selection import replicated_topics, replication_policy
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
            for pair in replicated_topics(flow.config, storage_topics(other))[:1]:
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


def check_topology(flow: LintFlow, lint: LintInput) -> Iterator[Hit]:
    """Cycles, several writers of a topic, and copies that arrive on two paths."""
    configs = {each.flow: each.config for each in lint.flows if each.config}
    own, label, origin = flow.config, flow.flow, flow.mirror.origin
    if own and _is_identity(own):
        identity = {other for other, config in configs.items() if _is_identity(config)}
        back = FlowGraph(frozenset(identity)).hops(label.target, label.source)
        if back and (back > 1 or _overlap(own, configs[label.reverse])):
            yield Hit("replication-cycle", origin, f"{label} is a part of a cycle of flows")
        for other in sorted(identity - {label}):
            if other.target == label.target and _overlap(own, configs[other]):
                what = f"{label} and {other} write the same topics"
                yield Hit("two-writers", origin, what)
        return
    for other, config in configs.items() if own else ():
        direct = configs.get(Flow(other.source, label.target))
        if own and direct and other.target == label.source and not _is_identity(config):
            for topic in _samples(config):
                copy = replication_policy(config).remote_topic(other.source, topic)
                if replicated_topics(direct, [topic]) and replicated_topics(own, [copy]):
                    copy = replication_policy(own).remote_topic(label.source, copy)
                    what = f"{label} also replicates copies of {other}, as {copy}"
                    yield Hit("double-prefix", origin, what)


def check_workers(flow: LintFlow, lint: LintInput) -> Iterator[Hit]:
    servers = flow.setting(None, "bootstrap.servers")
    source, target = _servers(flow, flow.flow.source), _servers(flow, flow.flow.target)
    if servers and source == servers.value != target:
        what = f"the workers of {flow.flow} use {flow.flow.source}"
        yield Hit("workers-at-source", servers.origin, what)
    for other in lint.flows:
        # Each resource of Strimzi has workers of its own.
        group, theirs = (each.mirror.worker.group_id for each in (flow, other))
        shared = sorted(storage_topics(flow) & storage_topics(other))
        is_same = flow.setup is other.setup and group == theirs
        if shared and not is_same and _servers(other, other.flow.target) == target:
            what = f"the workers of {flow.flow} and {other.flow} both use {shared[0]}"
            yield Hit("shared-storage", flow.mirror.origin, what)


def storage_topics(flow: LintFlow) -> set[str]:
    """The topics of the workers of *flow*, on its target."""
    worker = flow.mirror.worker
    return {*filter(None, (worker.configs_topic, worker.offsets_topic, worker.status_topic))}


def _servers(flow: LintFlow, alias: str) -> str | None:
    cluster = flow.setup.clusters.get(alias)
    servers = cluster.client.get("bootstrap.servers") if cluster else None
    return servers.value if servers else None


def _is_identity(config: FlowConfig) -> bool:
    return config.policy.kind is PolicyKind.IDENTITY


def _samples(config: FlowConfig) -> set[str]:
    """Names that *config* replicates, as far as its expressions are simple."""
    patterns = (part for entry in config.topics for part in entry.split("|"))
    names = {_ANY.sub("x", pattern).replace("\\", "") for pattern in patterns}
    return {pair.source for pair in replicated_topics(config, names)}


def _overlap(one: FlowConfig, other: FlowConfig) -> bool:
    names = _samples(one) | _samples(other)
    return any(
        replicated_topics(one, [name]) and replicated_topics(other, [name]) for name in names
    )
