"""Metrics of the exporter itself: collection, failures, cost.

Values that are None (no render yet, no /proc) are not published.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_exporter.collection_health import HealthReport
from mm2slo_exporter.exposition_family import Histogram
from mm2slo_exporter.families.series_view import Series, one_hot


class ReloadOutcome(StrEnum):
    """The result of a configuration reload; values of the label `result`."""

    SUCCESS = "success"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class ExporterReport:
    """Everything published about the exporter itself."""

    version: str
    health: HealthReport
    process: Mapping[catalogue.Metric, Sequence[Series]]
    kafka_requests: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By cluster and API."""
    reloads: Mapping[ReloadOutcome, int] = field(default_factory=dict)
    render_seconds: float | None = None
    cycle_seconds: float | None = None


ExporterSeriesOf: TypeAlias = "Callable[[ExporterReport, Granularity], list[Series]]"


def _one(value: float | None) -> list[Series]:
    return [] if value is None else [((), value)]


def _build(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [((own.version,), 1)]


def _durations(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [
        ((cluster, str(stage)), Histogram.from_counts(took.counts, took.total_seconds))
        for (cluster, stage), took in sorted(own.health.durations.items())
    ]


def _errors(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [
        ((cluster, str(stage), str(reason)), count)
        for (cluster, stage, reason), count in sorted(own.health.errors.items())
    ]


def _last_success(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [
        ((cluster, str(stage)), at)
        for (cluster, stage), at in sorted(own.health.last_success.items())
    ]


def _listing_intervals(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [((cluster,), each) for cluster, each in sorted(own.health.listing_intervals.items())]


def _requests(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [(labels, count) for labels, count in sorted(own.kafka_requests.items())]


def _malformed(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [
        ((cluster, str(kind), str(reason)), count)
        for (cluster, kind, reason), count in sorted(own.health.malformed.items())
    ]


def _loop_failures(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [((str(loop),), count) for loop, count in sorted(own.health.loop_failures.items())]


def _granularity_in_force(_own: ExporterReport, granularity: Granularity) -> list[Series]:
    return one_hot((), (level.label for level in Granularity), (granularity.label,))


def _render(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return _one(own.render_seconds)


def _cycle(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return _one(own.cycle_seconds)


def _reloads(own: ExporterReport, _granularity: Granularity) -> list[Series]:
    return [((str(result),), own.reloads.get(result, 0)) for result in ReloadOutcome]


def _process(metric: catalogue.Metric) -> ExporterSeriesOf:
    return lambda own, _granularity: list(own.process.get(metric, ()))


EXPORTER_TABLE: Final[Mapping[catalogue.Metric, ExporterSeriesOf]] = {
    catalogue.EXPORTER_BUILD_INFO: _build,
    catalogue.EXPORTER_COLLECT_DURATION_SECONDS: _durations,
    catalogue.EXPORTER_COLLECT_ERRORS_TOTAL: _errors,
    catalogue.EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS: _last_success,
    catalogue.EXPORTER_TOPICS_INTERVAL_SECONDS: _listing_intervals,
    catalogue.EXPORTER_KAFKA_REQUESTS_TOTAL: _requests,
    catalogue.EXPORTER_MALFORMED_RECORDS_TOTAL: _malformed,
    catalogue.EXPORTER_LOOP_FAILURES_TOTAL: _loop_failures,
    catalogue.EXPORTER_GRANULARITY: _granularity_in_force,
    catalogue.EXPORTER_RENDER_DURATION_SECONDS: _render,
    catalogue.EXPORTER_CYCLE_DURATION_SECONDS: _cycle,
    catalogue.EXPORTER_CONFIG_RELOADS_TOTAL: _reloads,
    **{metric: _process(metric) for metric in catalogue.GROUPS["Process"]},
}
