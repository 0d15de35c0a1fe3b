"""Series about a flow as a whole: information, state, connectors, drift, timeline.

All information but `mm2_topic_info` is published from the start, before anything was read.
Connector and task states, from Connect's status topic on the target, are not published while the
target is unreadable; their label values are Connect's names in lower case. Drift that needs the
target (as assignments do) is not published while it is unreadable, drift that compares both
clusters while either is. Counters are always published.
"""

from collections import Counter
from collections.abc import Callable
from operator import attrgetter
from typing import Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.records.connect_records import ConnectState
from mm2slo_exporter.exposition_family import SeriesList
from mm2slo_exporter.families.series_view import (
    FlowSeriesView,
    Series,
    SeriesOf,
    SeriesTable,
    by_counter,
    by_topic,
    one_hot,
    topic_series,
)
from mm2slo_exporter.state.flow_report import TopicState


def _flow_info(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    info = view.report.info
    heartbeats = "disabled" if info.heartbeats_disabled else "enabled"
    values = (info.policy, info.separator, info.engine, info.canary, heartbeats)
    return [((*view.labels, *values), 1)]


def _overridden_settings(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [((*view.labels, each.field), 1) for each in view.report.overridden]


def _topic_info(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [
        ((*topic.labels, topic.state.pair.target), 1)
        for topic in view.topics
        if topic.state.pair.target
    ]


def _flow_state(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return one_hot(view.labels, FlowStateName, (view.report.state,))


def _observed_at(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.at)


def _flow_ready(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(int(view.report.ready))


def _skipped_rounds(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.skipped_rounds)


FLOW_SERIES: Final[SeriesTable] = {
    catalogue.FLOW_INFO: _flow_info,
    catalogue.FLOW_SETTING_OVERRIDDEN: _overridden_settings,
    catalogue.TOPIC_INFO: _topic_info,
    catalogue.FLOW_STATE: _flow_state,
    catalogue.FLOW_OBSERVED_TIMESTAMP_SECONDS: _observed_at,
    catalogue.EXPORTER_FLOW_READY: _flow_ready,
    catalogue.EXPORTER_SKIPPED_ROUNDS_TOTAL: _skipped_rounds,
}
_CONNECT_STATES: Final = tuple(state.value.lower() for state in ConnectState)


def _connector_states(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    if not view.report.target_readable:
        return []
    return [
        series
        for found in view.report.tasks
        if found.task is None
        for series in one_hot(
            (*view.labels, found.connector), _CONNECT_STATES, (found.state.lower(),)
        )
    ]


def _task_states(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    if not view.report.target_readable:
        return []
    return [
        series
        for found in view.report.tasks
        if found.task is not None
        for series in one_hot(
            (*view.labels, found.connector, str(found.task)),
            _CONNECT_STATES,
            (found.state.lower(),),
        )
    ]


CONNECT_SERIES: Final[SeriesTable] = {
    catalogue.CONNECTOR_STATE: _connector_states,
    catalogue.TASK_STATE: _task_states,
}


def _on_target(metric: catalogue.Metric, get: Callable[[TopicState], float | None]) -> SeriesOf:
    """A value that needs the target."""
    series = by_topic(metric, get)

    def readable(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
        return series(view, granularity) if view.report.target_readable else []

    return readable


def _missing_partitions(topic: TopicState) -> int | None:
    return int(topic.missing_on_target) if topic.pair.target else None


def _partition_drift(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
    if not _both_readable(view):
        return []
    values = [
        None if source is None or target is None else abs(source - target)
        for source, target in (
            (topic.state.source_partition_count, topic.state.target_partition_count)
            for topic in view.topics
        )
    ]
    return topic_series(catalogue.PARTITION_DRIFT, view, granularity, values)


def _config_drift(view: FlowSeriesView, granularity: Granularity) -> list[Series]:
    """At flow level, the number of data topics in which a setting differs."""
    if not _both_readable(view):
        return []
    if granularity >= Granularity.TOPIC:
        return [
            ((*topic.labels, name), 1) for topic in view.topics for name in topic.state.config_drift
        ]
    topics = Counter(
        name for topic in view.topics if topic.is_data for name in topic.state.config_drift
    )
    return [((*view.labels, name), count) for name, count in sorted(topics.items())]


_RECREATIONS_BY_SIDE: Final = {
    side: by_counter(catalogue.TOPIC_RECREATIONS_TOTAL, f"{side}_recreations_total")
    for side in ("source", "target")
}


def _recreations(view: FlowSeriesView, granularity: Granularity) -> list[Series]:
    return [
        ((*labels, side), count)
        for side, series in _RECREATIONS_BY_SIDE.items()
        for labels, count in series(view, granularity)
    ]


def _both_readable(view: FlowSeriesView) -> bool:
    return view.report.source_readable and view.report.target_readable


DRIFT_SERIES: Final[SeriesTable] = {
    catalogue.TOPIC_MISSING: _on_target(catalogue.TOPIC_MISSING, _missing_partitions),
    catalogue.PARTITION_DRIFT: _partition_drift,
    catalogue.TOPIC_CONFIG_DRIFT: _config_drift,
    catalogue.ASSIGNED_MISSING_PARTITIONS: _on_target(
        catalogue.ASSIGNED_MISSING_PARTITIONS, attrgetter("assigned_missing")
    ),
    catalogue.UNASSIGNED_PARTITIONS: _on_target(
        catalogue.UNASSIGNED_PARTITIONS, attrgetter("unassigned")
    ),
    catalogue.SOURCE_TRUNCATIONS_TOTAL: by_counter(
        catalogue.SOURCE_TRUNCATIONS_TOTAL, "truncations_total"
    ),
    catalogue.TOPIC_RECREATIONS_TOTAL: _recreations,
}


def _timeline_writer(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    timeline = view.report.timeline
    return view.flow_series(None if timeline is None else int(timeline.writer))


def _timeline_bytes(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    timeline = view.report.timeline
    return view.flow_series(None if timeline is None else timeline.bytes_total)


def _timeline_records(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    timeline = view.report.timeline
    return view.flow_series(None if timeline is None else timeline.records_total)


def _arrival_bracket(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.arrival_bracket)


def _history_start(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.history_since)


TIMELINE_SERIES: Final[SeriesTable] = {
    catalogue.EXPORTER_TIMELINE_WRITER: _timeline_writer,
    catalogue.EXPORTER_TIMELINE_BYTES_TOTAL: _timeline_bytes,
    catalogue.EXPORTER_TIMELINE_RECORDS_TOTAL: _timeline_records,
    catalogue.EXPORTER_ARRIVAL_BRACKET_SECONDS: _arrival_bracket,
    catalogue.EXPORTER_HISTORY_START_TIMESTAMP_SECONDS: _history_start,
}
