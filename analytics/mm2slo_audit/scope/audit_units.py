"""Units of audit: each target topic with all the flows that feed it (pure)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.name_filters import TopicFilter
from mm2slo_core.topic_selection import TopicRole, replicated_topics
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True)
class Feed:
    """A flow and the topic of its source that it copies into a unit."""

    flow: FlowConfig
    topic: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A topic of a target cluster, and everything that is copied into it."""

    cluster: str
    topic: str
    feeds: tuple[Feed, ...]

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Those that feed it."""
        return tuple(feed.flow.flow for feed in self.feeds)

    @property
    def shared(self) -> bool:
        """Whether several flows write the topic."""
        return len(self.feeds) > 1


def plan_units(
    flows: Iterable[FlowConfig],
    topics: Mapping[str, Iterable[str]],
    ours: Collection[str] = (),
) -> tuple[Unit, ...]:
    """The units that *flows* make, sorted by cluster and topic.

    *topics* are the topics of each source cluster that could be listed; *ours* are topics of
    mm2slo itself, which nobody audits. A flow's own `audit` section may leave topics out.
    """
    feeds: dict[tuple[str, str], list[Feed]] = {}
    for flow in flows:
        audited = TopicFilter(flow.audit.topics, flow.audit.topics_exclude)
        for pair in replicated_topics(flow, topics.get(flow.flow.source, ()), flow.canary.topic):
            if pair.role is not TopicRole.DATA or pair.source in ours:
                continue
            if audited.matches(pair.source):
                key = (flow.flow.target, pair.target)
                feeds.setdefault(key, []).append(Feed(flow, pair.source))
    return tuple(
        Unit(cluster, topic, tuple(found)) for (cluster, topic), found in sorted(feeds.items())
    )


def select_units(
    units: Sequence[Unit], flows: Collection[str], topics: Sequence[str]
) -> tuple[Unit, ...]:
    """The units that one of *flows* (labels; none: all) feeds and that *topics* name (none: all).

    A topic is named as on the source or as on the target. Raises UserError for a topic that none
    of these flows copies.
    """
    fed = [
        unit for unit in units if not flows or any(feed.flow.label in flows for feed in unit.feeds)
    ]
    if not topics:
        return tuple(fed)
    for topic in topics:
        if not any(topic in _names(unit) for unit in fed):
            raise _unknown_topic(topic, fed)
    return tuple(unit for unit in fed if not _names(unit).isdisjoint(topics))


def _names(unit: Unit) -> set[str]:
    return {unit.topic, *(feed.topic for feed in unit.feeds)}


def _unknown_topic(topic: str, units: Sequence[Unit]) -> UserError:
    known = sorted({name for unit in units for name in _names(unit)})
    close = difflib.get_close_matches(topic, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return UserError(
        f"no topic {topic!r} is copied by these flows: expected the name of a source topic, or of"
        f" its copy, that topics and audit.topics of a flow let through{hint}"
    )
