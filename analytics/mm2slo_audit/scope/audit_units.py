"""Units of an audit: target topics with the flows that feed them; why one is not audited (pure)."""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.topic_filters import TopicFilter
from mm2slo_core.topic_selection import TopicPair, TopicRole, replicated_topics
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError


@dataclass(frozen=True, slots=True)
class Feed:
    """A flow and its source topic that feeds a unit."""

    flow: FlowConfig
    topic: str


@dataclass(frozen=True, slots=True)
class AuditUnit:
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
) -> tuple[AuditUnit, ...]:
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
        AuditUnit(cluster, topic, tuple(found)) for (cluster, topic), found in sorted(feeds.items())
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
    units: Sequence[AuditUnit], flows: Collection[str], topics: Sequence[str]
) -> tuple[AuditUnit, ...]:
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
        if not any(topic in _topic_names(unit) for unit in fed):
            raise _unknown_topic(topic, fed)
    return tuple(unit for unit in fed if not _topic_names(unit).isdisjoint(topics))


def _topic_names(unit: AuditUnit) -> set[str]:
    return {unit.topic, *(feed.topic for feed in unit.feeds)}


def _unknown_topic(topic: str, units: Sequence[AuditUnit]) -> UserError:
    known = sorted({name for unit in units for name in _topic_names(unit)})
    close = difflib.get_close_matches(topic, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return UserError(
        f"topic {topic!r} is not copied by these flows; expected a source topic, or its copy, that"
        f" topics and audit.topics of a flow select{hint}"
    )


_REASONS: Final[Mapping[ErrorKind, NotAuditedReason]] = {
    ErrorKind.AUTHORIZATION: NotAuditedReason.AUTHORIZATION,
    ErrorKind.AUTHENTICATION: NotAuditedReason.AUTHORIZATION,
    ErrorKind.UNREACHABLE: NotAuditedReason.UNREACHABLE,
    ErrorKind.TIMEOUT: NotAuditedReason.UNREACHABLE,
    ErrorKind.TLS: NotAuditedReason.UNREACHABLE,
}


def reason_for_error(kind: ErrorKind) -> NotAuditedReason:
    return _REASONS.get(kind, NotAuditedReason.FAILED)


def not_audited_after(topic: str, error: Exception, flows: tuple[Flow, ...]) -> NotAudited:
    """A topic of *flows* that is not audited because of *error*."""
    if isinstance(error, KafkaOperationError):
        return NotAudited(topic, reason_for_error(error.kind), str(error), flows)
    if isinstance(error, TimeoutError):
        return NotAudited(topic, NotAuditedReason.UNREACHABLE, str(error), flows)
    return NotAudited(topic, NotAuditedReason.FAILED, str(error), flows)
