"""Information about a flow, its state and its readiness.

All but `mm2_topic_info` are published from the start, before anything was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.flow_state import FlowStateName
from mm2slo_exporter.families.one_hot import one_hot

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable


def _info(view: FlowView, _granularity: Granularity) -> list[Series]:
    info = view.report.info
    heartbeats = "disabled" if info.heartbeats_disabled else "enabled"
    values = (info.policy, info.separator, info.engine, info.canary, heartbeats)
    return [((*view.labels, *values), 1)]


def _overridden(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [((*view.labels, each.field), 1) for each in view.report.overridden]


def _topic_info(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        ((*topic.labels.topic, topic.state.pair.target), 1)
        for topic in view.topics
        if topic.state.pair.target
    ]


def _state(view: FlowView, _granularity: Granularity) -> list[Series]:
    return one_hot(view.labels, FlowStateName, (view.report.state,))


def _observed(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.at)


def _ready(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(int(view.report.ready))


def _skipped_rounds(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.skipped_rounds)


SERIES: Final[SeriesTable] = {
    catalogue.FLOW_INFO: _info,
    catalogue.FLOW_SETTING_OVERRIDDEN: _overridden,
    catalogue.TOPIC_INFO: _topic_info,
    catalogue.FLOW_STATE: _state,
    catalogue.FLOW_OBSERVED_TIMESTAMP_SECONDS: _observed,
    catalogue.EXPORTER_FLOW_READY: _ready,
    catalogue.EXPORTER_SKIPPED_ROUNDS_TOTAL: _skipped_rounds,
}
