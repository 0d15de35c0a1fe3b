"""Reads the scopes of a run from the Kafka clusters.

After the survey of the clusters each unit's scope is assembled; then records that expired before
they were replicated are counted, and units without records in the window are explained.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from mm2slo_audit.audit_options import override_max_pending
from mm2slo_audit.scope.arrival_polls import collect_arrival_polls
from mm2slo_audit.scope.audit_units import AuditUnit, not_audited_after
from mm2slo_audit.scope.cluster_readings import ClusterClients, open_clients, read_first_timestamps
from mm2slo_audit.scope.cluster_survey import ClusterSurvey
from mm2slo_audit.scope.reachable_units import ReachableUnits
from mm2slo_audit.scope.scope_assembly import (
    AssembledScope,
    CopyKey,
    CopyMap,
    FeedReading,
    Isolations,
    RunScope,
    UnitReading,
    assemble_scope,
    source_isolation,
    target_isolation,
)
from mm2slo_audit.scope.sync_history import (
    ExpiredRange,
    PartitionSnapshot,
    count_arrived_in,
    find_expired_ranges,
)
from mm2slo_core.audit.audit_scope import FlowScope, NotAudited, NotAuditedReason, UnitScope, Window
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError


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
            return read_scopes(
                self._config,
                [flow.label for flow in flows],
                topics,
                window,
                clients,
                max_pending=self._max_pending,
            )

    @contextmanager
    def _clients(self) -> Iterator[ClusterClients]:
        try:
            with open_clients(self._config) as clients:
                yield clients
        except KafkaOperationError as problem:
            raise UserError(str(problem)) from None


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
) -> RunScope:
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
    made: list[tuple[AuditUnit, UnitScope, Mapping[CopyKey, CopyMap]]] = []
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
    return RunScope(
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


def explain_empty_window(
    scope: UnitScope, clients: Mapping[str, ClusterClient]
) -> NotAudited | None:
    """Why nothing can be judged: the window expired on the source or is empty. None: it can.

    Raises KafkaOperationError.
    """
    flows = tuple(flow.flow for flow in scope.flows)
    sources = [each for flow in scope.flows for each in flow.partitions]
    if any(each.expired for each in sources):
        return None
    if all(each.read_from == each.end for each in sources) and all(
        each.read_from == each.end for each in scope.partitions
    ):
        return NotAudited(
            scope.target_topic,
            NotAuditedReason.EMPTY,
            "neither side has records in the window or after it",
            flows,
        )
    if not sources or not all(_is_expired(flow, scope, clients) for flow in scope.flows):
        return None
    if not any(each.log_start for each in sources):
        return None
    return NotAudited(
        scope.target_topic,
        NotAuditedReason.EXPIRED,
        "the oldest records of "
        + " and ".join(f"{flow.source_topic} on {flow.flow.source}" for flow in scope.flows)
        + " are newer than the window",
        flows,
    )


def _is_expired(flow: FlowScope, scope: UnitScope, clients: Mapping[str, ClusterClient]) -> bool:
    """Whether no remaining source record can be in the window."""
    left = {
        TopicPartition(flow.source_topic, each.partition): (each.read_from, each.end)
        for each in flow.partitions
        if each.read_from < each.end
    }
    # A log with records before the window still has the window.
    started = [each for each in flow.partitions if each.read_from < each.end]
    if any(each.read_from > each.log_start or each.log_start == 0 for each in started):
        return False
    found = read_first_timestamps(clients[flow.flow.source], left)
    return all(key in found and found[key] >= scope.window.end for key in left)


_SLACK_SECONDS: Final = 5.0


class _UndatedRange(NamedTuple):
    """*size* records of a range with unknown arrival: the record after it decides."""

    key: CopyKey
    expired: ExpiredRange
    size: int


def add_expired_counts(
    read: UnitReading, made: AssembledScope, clients: Mapping[str, ClusterClient]
) -> UnitScope:
    """Set `expired` of each source partition. Raises KafkaOperationError.

    Records count by their arrival if the timeline has it; otherwise a range counts if the first
    record after it is in the window.
    """
    counts: dict[CopyKey, int] = {}
    unknown: list[_UndatedRange] = []
    for index, feed in enumerate(read.feeds):
        for number in range(feed.partitions) if feed.has_positions else ():
            key = (index, number)
            timeline = None if feed.timeline is None else feed.timeline.partitions.get(number)
            present = _partition_snapshot(read, made, key)
            for expired in find_expired_ranges(
                made.positions[key].log_syncs,
                timeline,
                present,
                dense=read.dense,
                position_period=_position_period(feed),
            ):
                counted, rest = 0, expired.end - expired.start
                if timeline is not None:
                    counted, rest = count_arrived_in(expired, timeline, made.scope.window, present)
                counts[key] = counts.get(key, 0) + counted
                if rest:
                    unknown.append(_UndatedRange(key, expired, rest))
    while unknown:
        # One record of a partition per request.
        once = {each.key: each for each in reversed(unknown)}
        unknown = [each for each in unknown if once[each.key] is not each]
        for each in _select_in_window(read, made, tuple(once.values()), clients):
            counts[each.key] = counts.get(each.key, 0) + each.size
    return _set_expired_counts(made.scope, counts)


def _partition_snapshot(read: UnitReading, made: AssembledScope, key: CopyKey) -> PartitionSnapshot:
    index, number = key
    feed = read.feeds[index]
    readings, here = feed.readings, feed.key(number)
    known = made.positions[key]
    copied_to = None
    if read.dense and number < read.partitions and known.log_syncs:
        last = known.log_syncs[-1]
        reached = last.upstream + read.readings.ends[read.key(number)] - last.downstream
        # A value beyond the source's end means that the target has other writers.
        copied_to = reached if last.upstream < reached <= readings.ends[here] else None
    return PartitionSnapshot(
        at=readings.requested_at,
        log_start=readings.starts[here],
        source_end=readings.ends[here],
        reached=known.reached,
        copied_to=copied_to,
    )


def _position_period(feed: FeedReading) -> float:
    flow = feed.feed.flow
    # A transaction contains records and offsets.
    return 0.0 if flow.exactly_once else flow.offset_flush_interval + _SLACK_SECONDS


def _select_in_window(
    read: UnitReading,
    made: AssembledScope,
    undated: tuple[_UndatedRange, ...],
    clients: Mapping[str, ClusterClient],
) -> Iterator[_UndatedRange]:
    """Ranges whose first remaining record is in the window."""
    sources: dict[str, dict[TopicPartition, tuple[int, int]]] = {}
    targets: dict[TopicPartition, tuple[int, int]] = {}
    for key, expired, _size in undated:
        feed = read.feeds[key[0]]
        here, there = feed.key(key[1]), read.key(key[1])
        start, end = feed.readings.starts[here], feed.readings.ends[here]
        if expired.end < start and expired.next_copy is not None:
            targets[there] = (expired.next_copy, read.readings.ends[there])
        elif max(start, expired.end) < end:
            of_feed = sources.setdefault(feed.feed.flow.flow.source, {})
            of_feed[here] = (max(start, expired.end), end)
        elif there in read.readings.ends:
            # No record remains: the range came after the last copy.
            last = read.readings.ends[there]
            targets[there] = (max(0, last - 1), last)
    at_source = {alias: read_first_timestamps(clients[alias], of) for alias, of in sources.items()}
    at_target = read_first_timestamps(clients[read.unit.cluster], targets)
    window = made.scope.window
    for each in undated:
        feed = read.feeds[each.key[0]]
        here, there = feed.key(each.key[1]), read.key(each.key[1])
        alias = feed.feed.flow.flow.source
        if here in sources.get(alias, {}):
            moment = at_source[alias].get(here)
            of_window = moment is None or window.contains(moment)
        elif each.expired.next_copy is not None:
            moment = at_target.get(there)
            of_window = moment is None or window.contains(moment)
        else:
            moment = at_target.get(there)
            of_window = moment is None or moment < window.end
        if of_window:
            yield each


def _set_expired_counts(scope: UnitScope, counts: Mapping[CopyKey, int]) -> UnitScope:
    return replace(
        scope,
        flows=tuple(
            replace(
                flow,
                partitions=tuple(
                    replace(each, expired=counts.get((index, each.partition), 0))
                    for each in flow.partitions
                ),
            )
            for index, flow in enumerate(scope.flows)
        ),
    )
