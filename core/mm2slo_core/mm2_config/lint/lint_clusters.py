"""Checks of replication factors, and against what clusters reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.internal_topics import OffsetSyncsLocation
from mm2slo_core.mm2_config.lint.lint_flows import storage_topics
from mm2slo_core.mm2_config.lint.lint_input import Hit
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.name_filters import TopicFilter
from mm2slo_core.topic_selection import TopicRole, replicated_topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.mm2_config.lint.lint_input import LintFlow, LintInput

_SOURCE, _CHECKPOINT, _HEARTBEAT = ConnectorKind
_SYNCS: Final = "offset-syncs.topic.replication.factor"
_FACTORS: Final = {
    "replication.factor": _SOURCE,
    _SYNCS: _SOURCE,
    "checkpoints.topic.replication.factor": _CHECKPOINT,
    "heartbeats.topic.replication.factor": _HEARTBEAT,
    **{f"{name}.storage.replication.factor": None for name in ("config", "offset", "status")},
}
_LIMITS: Final = ("retention.ms", "retention.bytes", "max.message.bytes")


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
    for pair in pairs:
        here, there = source.settings.get(pair.source, {}), target.settings.get(pair.target, {})
        for key in _LIMITS:
            if key in here and key in there and _limit(there[key]) < _limit(here[key]):
                what = f"{pair.target}: {key} = {there[key]}, on the source {here[key]}"
                yield Hit("lower-target-limit", flow.mirror.origin, what)
    for topic in sorted(storage_topics(flow) & target.settings.keys()):
        policy = target.settings[topic].get("cleanup.policy", "compact")
        if policy != "compact":
            what = f"{topic} on {label.target} has cleanup.policy = {policy}"
            yield Hit("storage-not-compacted", flow.mirror.origin, what)


def _limit(value: str) -> float:
    return float("inf") if value == "-1" else float(value)
