"""Scopes as both clusters give them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_audit.run.ports import Scoped, Unscoped
from mm2slo_audit.scoping import open_clients, take_scopes
from mm2slo_core.errors import UserError
from mm2slo_core.selection import replication_policy
from mm2slo_kafka.errors import KafkaProblem

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mm2slo_audit.scoping import Scoping as KafkaScopes
    from mm2slo_core.audit.scope import NotAudited, Window
    from mm2slo_core.config import Config, FlowConfig
    from mm2slo_core.topology import Flow


class KafkaScoping:
    """Asks the clusters of *config*, with clients that last as long as the question."""

    def __init__(self, config: Config, max_pending: float | None = None) -> None:
        self._config = config
        self._max_pending = None if max_pending is None else round(max_pending * 1000)

    def take(self, flows: Sequence[FlowConfig], topics: Sequence[str], window: Window) -> Scoped:
        """See `Scoping.take`."""
        try:
            with open_clients(self._config) as clients:
                found = take_scopes(
                    self._config,
                    [flow.label for flow in flows],
                    topics,
                    window,
                    clients,
                    max_pending=self._max_pending,
                )
        except KafkaProblem as problem:
            raise UserError(str(problem)) from None
        return Scoped(
            scopes=found.scopes,
            not_audited=tuple(
                Unscoped(each, each.flows or _feeding(each, flows)) for each in found.not_audited
            ),
            detail=found,
        )

    def without(self, scoped: Scoped, indexes: Collection[int]) -> Scoped:
        """See `Scoping.without`: places are indexes, so what remains moves up."""
        found: KafkaScopes = scoped.detail
        kept = [scope.index for scope in found.scopes if scope.index not in indexes]
        place = {index: number for number, index in enumerate(kept)}
        fewer = replace(
            found,
            scopes=tuple(replace(found.scopes[index], index=place[index]) for index in kept),
            polls=tuple(
                replace(poll, topic=place[poll.topic])
                for poll in found.polls
                if poll.topic in place
            ),
            isolations=tuple(found.isolations[index] for index in kept),
            copies=tuple(found.copies[index] for index in kept),
        )
        return replace(scoped, scopes=fewer.scopes, detail=fewer)


def _feeding(topic: NotAudited, flows: Sequence[FlowConfig]) -> tuple[Flow, ...]:
    """The flows that a topic's name tells of; where it tells nothing, those to one cluster."""
    named = [flow.flow for flow in flows if flow.label == topic.target_topic]
    named = named or [
        flow.flow
        for flow in flows
        if replication_policy(flow).topic_source(topic.target_topic) == flow.flow.source
    ]
    some = named or [flow.flow for flow in flows]
    return tuple(flow for flow in some if flow.target == some[0].target)
