"""Reads the scopes of an audit from the clusters."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_audit.scope.arrival_polls import collect_arrival_polls
from mm2slo_audit.scope.cluster_survey import ClusterSurvey
from mm2slo_audit.scope.empty_window import explain_empty_window
from mm2slo_audit.scope.expired_counts import add_expired_counts
from mm2slo_audit.scope.kafka_scopes import Isolations, KafkaScopes
from mm2slo_audit.scope.max_pending_override import override_max_pending
from mm2slo_audit.scope.not_audited_reasons import not_audited_after
from mm2slo_audit.scope.offset_snapshot import source_isolation, target_isolation
from mm2slo_audit.scope.reachable_units import ReachableUnits
from mm2slo_audit.scope.unit_assembly import assemble_scope
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_audit.scope.audit_units import Unit
    from mm2slo_audit.scope.copy_map import CopyMap
    from mm2slo_audit.scope.scope_bounds import CopyKey
    from mm2slo_core.audit.audit_scope import UnitScope, Window
    from mm2slo_core.config import Config
    from mm2slo_kafka.cluster_client import ClusterClient


def read_scopes(
    config: Config,
    flows: Sequence[str],
    topics: Sequence[str],
    window: Window,
    clients: Mapping[str, ClusterClient],
    *,
    max_pending: int | None = None,
    clock: Callable[[], float] = time.time,
    on_progress: Callable[[str], None] = lambda _line: None,
) -> KafkaScopes:
    """The scopes of *flows* (labels; empty: all) and *topics* (empty: all) in *window*.

    Topics are named as on the source or the target. *max_pending* (ms) overrides that of the flows.
    *on_progress* gets a line for each step. Topics that cannot be audited are in `not_audited`.
    Raises UserError for an unknown flow or topic, a window in the future, and if no pair of
    clusters answers.
    """
    if max_pending is not None:
        config = override_max_pending(config, max_pending / 1000)
    chosen = config.select(flows)
    if window.start >= clock() * 1000:
        raise UserError(
            f"the window starts in the future, at {_format_time(window.start)};"
            " expected a window that has started"
        )
    on_progress("listing topics")
    reach = ReachableUnits.find(config, chosen, topics, clients)
    survey = ClusterSurvey(config, clients, window, on_progress)
    survey.read(reach.units)
    not_audited = [*reach.not_audited, *survey.not_audited]
    made: list[tuple[Unit, UnitScope, Mapping[CopyKey, CopyMap]]] = []
    for read in survey.readings():
        assembled = assemble_scope(read, window)
        try:
            scope = add_expired_counts(read, assembled, clients)
            missing = explain_empty_window(scope, clients)
        except KafkaOperationError as problem:
            not_audited.append(not_audited_after(read.unit.topic, problem, read.unit.flows))
            continue
        if missing is not None:
            not_audited.append(missing)
        else:
            made.append((read.unit, scope, assembled.copies))
    scopes = tuple(replace(scope, index=index) for index, (_u, scope, _c) in enumerate(made))
    return KafkaScopes(
        scopes=scopes,
        not_audited=tuple(not_audited),
        polls=collect_arrival_polls(scopes, survey.timelines, survey.arrivals),
        isolations=tuple(
            Isolations(
                tuple(source_isolation(feed.flow) for feed in unit.feeds), target_isolation(unit)
            )
            for unit, _scope, _copies in made
        ),
        copies=tuple(copies for _unit, _scope, copies in made),
        notes=reach.notes,
    )


def _format_time(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000))
