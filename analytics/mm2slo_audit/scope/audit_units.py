"""Units of an audit: target topics with the flows that feed them (pure)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.name_filters import TopicFilter
from mm2slo_core.topic_selection import TopicRole, replicated_topics
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_core.topic_selection import TopicPair
    from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True)
class Feed:
    """A flow and its source topic that feeds a unit."""

    flow: FlowConfig
    topic: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A target topic and its feeds."""

    cluster: str
    topic: str
    feeds: tuple[Feed, ...]

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The flows that feed it."""
        return tuple(feed.flow.flow for feed in self.feeds)

    @property
    def shared(self) -> bool:
        """Whether several flows feed it."""
        return len(self.feeds) > 1


def plan_units(
    flows: Iterable[FlowConfig],
    topics: Mapping[str, Iterable[str]],
    own_topics: Collection[str] = (),
) -> tuple[Unit, ...]:
    """The units of *flows*, sorted by cluster and topic.

    *topics*: topics by source cluster; *own_topics*: mm2slo's own topics, which are not audited. A
    flow's `audit` section may exclude topics.
    """
    feeds: dict[tuple[str, str], list[Feed]] = {}
    for flow in flows:
        for pair in audited_pairs(flow, topics.get(flow.flow.source, ()), own_topics):
            if pair.target:
                key = (flow.flow.target, pair.target)
                feeds.setdefault(key, []).append(Feed(flow, pair.source))
    return tuple(
        Unit(cluster, topic, tuple(found)) for (cluster, topic), found in sorted(feeds.items())
    )


def audited_pairs(
    flow: FlowConfig, topics: Iterable[str], own_topics: Collection[str]
) -> Iterator[TopicPair]:
    """The topics of *flow* to audit, also those whose copy has no known name."""
    audited = TopicFilter(flow.audit.topics, flow.audit.topics_exclude)
    for pair in replicated_topics(flow, topics, flow.canary.topic):
        if pair.role is not TopicRole.DATA or pair.source in own_topics:
            continue
        if audited.matches(pair.source):
            yield pair


def select_units(
    units: Sequence[Unit], flows: Collection[str], topics: Sequence[str]
) -> tuple[Unit, ...]:
    """The units fed by *flows* (labels; empty: all) and named by *topics* (empty: all).

    Topics are named as on the source or the target. Raises UserError for a topic that none of
    these flows copies.
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
        f"topic {topic!r} is not copied by these flows; expected a source topic, or its copy, that"
        f" topics and audit.topics of a flow select{hint}"
    )
