"""Checks between flows: unknown aliases, duplicate names and topics, replication cycles."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.config.flow_config import Engine, FlowConfig, PolicyKind
from mm2slo_core.config.section_checks import Finding
from mm2slo_core.config.suggestion import did_you_mean
from mm2slo_core.internal_topics import OffsetSyncsLocation
from mm2slo_core.topology import Flow, slug_collisions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def check_aliases(flows: Mapping[int, Flow], clusters: Mapping[str, object]) -> Iterator[Finding]:
    """All flows are between configured clusters. *flows* by their position in the file."""
    for index, flow in flows.items():
        for alias in (flow.source, flow.target):
            if alias not in clusters:
                yield Finding(
                    ("flows", index, "flow"),
                    f"{flow.label!r} refers to the unknown cluster {alias!r}",
                    f"one of {', '.join(clusters)}" if clusters else "a cluster under clusters",
                    did_you_mean(alias, clusters, f"add {alias} under clusters"),
                )  # fmt: skip


def check_names(flows: Mapping[int, Flow]) -> Iterator[Finding]:
    """Flows and their ids are unique."""
    first: dict[Flow, int] = {}
    for index, flow in flows.items():
        if flow in first:
            yield Finding(
                ("flows", index, "flow"),
                f"{flow.label!r} is already configured as flows[{first[flow]}]",
                "each flow once", "merge the two entries",
            )  # fmt: skip
        first.setdefault(flow, index)
    for slug, claims in slug_collisions(first).items():
        yield Finding(
            ("flows", max(first[flow] for flow in claims), "flow"),
            f"the flows {', '.join(flow.label for flow in claims)} share the id {slug!r}",
            "aliases that differ in more than case and punctuation", "rename an alias",
        )  # fmt: skip


def check_offset_syncs(flows: Mapping[int, FlowConfig]) -> Iterator[Finding]:
    """Each flow has its own offset-syncs topic: the records do not contain the flow.

    On cluster A, A->B with location `source` and B->A with location `target` both use
    `mm2-offset-syncs.B.internal`.
    """
    writers: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, config in flows.items():
        if config.engine is not Engine.MIRRORMAKER2:
            continue
        flow, policy = config.flow, config.policy
        if config.offset_syncs_location is OffsetSyncsLocation.TARGET:
            flow = flow.reverse
        separator = policy.separator if policy.internal_separator else "."
        writers[flow.source, flow.target, separator].append(index)
    for (holder, other, separator), indexes in writers.items():
        labels = {flows[index].label for index in indexes}
        if len(labels) > 1:
            topic = f"mm2-offset-syncs{separator}{other}{separator}internal"
            yield Finding(
                ("flows", max(indexes), "offset_syncs_location"),
                f"the flows {', '.join(sorted(labels))} share the topic {topic!r} on {holder!r}",
                "one offset-syncs topic per flow, otherwise their offsets cannot be translated",
                "set the same offset-syncs.topic.location for both flows in MirrorMaker 2 and here",
            )  # fmt: skip


def check_replication_cycles(flows: Mapping[int, FlowConfig]) -> Iterator[Finding]:
    """Under the identity policy, no canary topic is replicated back to its source."""
    first: dict[Flow, str] = {}
    for index, config in flows.items():
        if config.policy.kind is not PolicyKind.IDENTITY:
            continue
        if config.canary.carrier is not CanaryCarrier.TOPIC:
            continue
        topic = first.setdefault(config.flow, config.canary.topic)
        if first.get(config.flow.reverse) == topic:
            yield Finding(
                ("flows", index, "canary", "topic"),
                f"{topic!r} is replicated in a cycle: {config.flow.reverse} has the same canary "
                "topic, and the identity policy does not mark the source",
                "a topic other than that of the reverse flow",
                "use one topic per flow, and include each in the topics of its own flow only",
            )  # fmt: skip
