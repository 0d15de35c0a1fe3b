"""Takes the snapshots of an audit and makes its scopes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_audit.scoping.assembling import assemble
from mm2slo_audit.scoping.expired import with_expired
from mm2slo_audit.scoping.patience import patient
from mm2slo_audit.scoping.polls import arrival_polls
from mm2slo_audit.scoping.reach import Reach
from mm2slo_audit.scoping.refusals import failed
from mm2slo_audit.scoping.scoping import Isolations, Scoping
from mm2slo_audit.scoping.snapshot import source_isolation, target_isolation
from mm2slo_audit.scoping.substance import nothing_to_judge
from mm2slo_audit.scoping.surveying import Survey
from mm2slo_core.errors import UserError
from mm2slo_kafka.errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_audit.scoping.copy_map import CopyMap
    from mm2slo_audit.scoping.narrowing import CopyKey
    from mm2slo_audit.scoping.units import Unit
    from mm2slo_core.audit.scope import UnitScope, Window
    from mm2slo_core.config import Config
    from mm2slo_kafka.client import ClusterClient


def take_scopes(
    config: Config,
    flows: Sequence[str],
    topics: Sequence[str],
    window: Window,
    clients: Mapping[str, ClusterClient],
    *,
    max_pending: int | None = None,
    clock: Callable[[], float] = time.time,
    on_progress: Callable[[str], None] = lambda _line: None,
) -> Scoping:
    """What a run over *window* may judge of *flows* (labels; none: all) and *topics* (none: all).

    A topic is named as on the source or on the target. *max_pending* (ms) wins over the flows'
    own. *on_progress* gets a line for each step.
    Raises UserError for an unknown flow or topic, a window in the future, and when no cluster pair
    could be asked. One topic that cannot be audited is in `not_audited`.
    """
    if max_pending is not None:
        config = patient(config, max_pending / 1000)
    chosen = config.select(flows)
    if window.start >= clock() * 1000:
        raise UserError(
            f"the window starts at {_moment(window.start)}, which is in the future:"
            " expected a window that has started"
        )
    on_progress("listing topics")
    reach = Reach.find(config, chosen, topics, clients)
    survey = Survey(config, clients, window, on_progress)
    survey.take(reach.units)
    not_audited = [*reach.not_audited, *survey.not_audited]
    made: list[tuple[Unit, UnitScope, Mapping[CopyKey, CopyMap]]] = []
    for read in survey.readings():
        assembled = assemble(read, window)
        try:
            scope = with_expired(read, assembled, clients)
            missing = nothing_to_judge(scope, clients)
        except KafkaOperationError as problem:
            not_audited.append(failed(read.unit.topic, problem, read.unit.flows))
            continue
        if missing is not None:
            not_audited.append(missing)
        else:
            made.append((read.unit, scope, assembled.copies))
    scopes = tuple(replace(scope, index=index) for index, (_u, scope, _c) in enumerate(made))
    return Scoping(
        scopes=scopes,
        not_audited=tuple(not_audited),
        polls=arrival_polls(scopes, survey.timelines),
        isolations=tuple(
            Isolations(
                tuple(source_isolation(feed.flow) for feed in unit.feeds), target_isolation(unit)
            )
            for unit, _scope, _copies in made
        ),
        copies=tuple(copies for _unit, _scope, copies in made),
    )


def _moment(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000))
