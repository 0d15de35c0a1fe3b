"""Series of events: canaries, MirrorMaker 2's heartbeats, and the events of each SLI.

Presence, age and newest arrival are not published while the target is unreadable; counters and
histograms are, but nothing of canaries for flows without them. SLI counters are published from the
start: increase() does not see the first event of a counter that first appears with it.
"""

from operator import attrgetter
from typing import Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_exporter.families.series_view import (
    FlowSeriesView,
    Labels,
    Series,
    SeriesOf,
    SeriesTable,
    latency_series,
)


def _canary_labels(view: FlowSeriesView) -> Labels:
    return (*view.labels, view.report.info.canary)


def _canary_value(view: FlowSeriesView, value: float | None) -> list[Series]:
    if view.report.canary is None or value is None:
        return []
    return [(_canary_labels(view), value)]


def _outcome_total(outcome: str) -> SeriesOf:
    get = attrgetter(outcome)

    def series(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
        totals = view.report.canary
        return _canary_value(view, None if totals is None else get(totals))

    return series


def _canary_latency(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return (
        [] if report.canary is None else latency_series(_canary_labels(view), report.canary_latency)
    )


def _pending_canaries(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return _canary_value(view, view.report.canary_pending)


def _newest_arrival(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return _canary_value(view, report.canary_arrived_at if report.target_readable else None)


CANARY_SERIES: Final[SeriesTable] = {
    catalogue.CANARY_LATENCY_SECONDS: _canary_latency,
    catalogue.CANARY_SENT_TOTAL: _outcome_total("sent"),
    catalogue.CANARY_RECEIVED_TOTAL: _outcome_total("received"),
    catalogue.CANARY_LATE_TOTAL: _outcome_total("late"),
    catalogue.CANARY_LOST_TOTAL: _outcome_total("lost"),
    catalogue.CANARY_EXPIRED_TOTAL: _outcome_total("expired"),
    catalogue.CANARY_DUPLICATES_TOTAL: _outcome_total("duplicates"),
    catalogue.CANARY_REORDERED_TOTAL: _outcome_total("reordered"),
    catalogue.CANARY_MOVED_TOTAL: _outcome_total("moved"),
    catalogue.CANARY_UNKNOWN_TOTAL: _outcome_total("unknown"),
    catalogue.CANARY_PENDING: _pending_canaries,
    catalogue.CANARY_LAST_ARRIVAL_TIMESTAMP_SECONDS: _newest_arrival,
}


def _heartbeats_present(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return view.flow_series(int(report.heartbeats.present) if report.target_readable else None)


def _newest_heartbeat(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return view.flow_series(report.heartbeats.newest_at if report.target_readable else None)


def _heartbeat_age(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return view.flow_series(report.heartbeats.age_seconds if report.target_readable else None)


def _heartbeat_latency(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return latency_series(view.labels, view.report.heartbeat_latency)


def _heartbeats_received(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.heartbeats.received_total)


def _heartbeats_missing(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.heartbeats.missing_total)


HEARTBEAT_SERIES: Final[SeriesTable] = {
    catalogue.HEARTBEATS_PRESENT: _heartbeats_present,
    catalogue.HEARTBEAT_LAST_TIMESTAMP_SECONDS: _newest_heartbeat,
    catalogue.HEARTBEAT_AGE_SECONDS: _heartbeat_age,
    catalogue.HEARTBEAT_LATENCY_SECONDS: _heartbeat_latency,
    catalogue.HEARTBEATS_RECEIVED_TOTAL: _heartbeats_received,
    catalogue.HEARTBEATS_MISSING_TOTAL: _heartbeats_missing,
}


def _sli_events(attribute: str) -> SeriesOf:
    get = attrgetter(attribute)

    def series(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
        return [
            ((*view.labels, str(key.sli), key.tier), get(count))
            for key, count in view.report.slis.items()
        ]

    return series


SLI_SERIES: Final[SeriesTable] = {
    catalogue.SLI_GOOD_EVENTS_TOTAL: _sli_events("good"),
    catalogue.SLI_EVENTS_TOTAL: _sli_events("total"),
    catalogue.SLI_UNKNOWN_EVENTS_TOTAL: _sli_events("unknown"),
}
