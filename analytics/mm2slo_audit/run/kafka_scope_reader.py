"""Reads the scopes of a run from the Kafka clusters."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_audit.run.audit_ports import RunScope
from mm2slo_audit.scope import open_clients, read_scopes
from mm2slo_audit.scope.reachable_units import ReachableUnits
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from mm2slo_audit.scope import Clients, KafkaScopes
    from mm2slo_core.audit.audit_scope import UnitScope, Window
    from mm2slo_core.config import Config, FlowConfig
    from mm2slo_core.topology import Flow


class KafkaScopeReader:
    """Reads from the clusters of *config*; clients are open only during a call."""

    def __init__(self, config: Config, max_pending: float | None = None) -> None:
        self._config = config
        self._max_pending = None if max_pending is None else round(max_pending * 1000)

    def list_topics(
        self, flows: Sequence[FlowConfig], topics: Sequence[str]
    ) -> Collection[tuple[Flow, str]]:
        """See `ScopeReader.list_topics`."""
        with self._clients() as clients:
            reach = ReachableUnits.find(self._config, flows, topics, clients)
        asked = {flow.flow for flow in flows}
        return {
            (flow, reached.unit.topic)
            for reached in reach.units
            for flow in reached.unit.flows
            if flow in asked
        }

    def read_scopes(
        self, flows: Sequence[FlowConfig], topics: Sequence[str], window: Window
    ) -> RunScope:
        """See `ScopeReader.read_scopes`."""
        with self._clients() as clients:
            found = read_scopes(
                self._config,
                [flow.label for flow in flows],
                topics,
                window,
                clients,
                max_pending=self._max_pending,
            )
        return RunScope(
            scopes=found.scopes,
            not_audited=found.not_audited,
            detail=found,
            notes=found.notes,
            restarting_completion=frozenset(
                scope.index for scope in found.scopes if _covers_log_start(scope)
            ),
        )

    def without(self, scoped: RunScope, indexes: Collection[int]) -> RunScope:
        """See `ScopeReader.without`; the remaining scopes get new indexes."""
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
        restarting_completion = frozenset(
            place[index] for index in scoped.restarting_completion if index in place
        )
        return replace(
            scoped, scopes=fewer.scopes, detail=fewer, restarting_completion=restarting_completion
        )

    @contextmanager
    def _clients(self) -> Iterator[Clients]:
        try:
            with open_clients(self._config) as clients:
                yield clients
        except KafkaOperationError as problem:
            raise UserError(str(problem)) from None


def _covers_log_start(scope: UnitScope) -> bool:
    """Whether the sources have no records older than the window."""
    return all(each.read_from == each.log_start for flow in scope.flows for each in flow.partitions)
