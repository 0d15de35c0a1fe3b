"""Queries to Prometheus and their results."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dashboard_preview.time_range import Span


class Prometheus(Protocol):
    """The HTTP API, GET alone: https://prometheus.io/docs/prometheus/latest/querying/api/ ."""

    def get(self, path: str, parameters: Sequence[tuple[str, str]]) -> Any:
        """The `data` of the response to `/api/v1/<path>`."""


class SeriesData(NamedTuple):
    """A series from Prometheus: epoch seconds and values without NaN."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


def query_instant(server: Prometheus, query: str, at: float) -> tuple[SeriesData, ...]:
    """The result of an instant query, each series with one point."""
    return _series(server.get("query", (("query", query), ("time", _time(at)))))


def query_range(server: Prometheus, query: str, span: Span, step: float) -> tuple[SeriesData, ...]:
    """The result of a range query."""
    parameters = (
        ("query", query),
        ("start", _time(span.start)),
        ("end", _time(span.end)),
        ("step", _time(step)),
    )
    return _series(server.get("query_range", parameters))


def query_label_values(server: Prometheus, label: str, match: str, span: Span) -> tuple[str, ...]:
    """The values of *label* on the series *match* within *span*, sorted."""
    times = (("start", _time(span.start)), ("end", _time(span.end)))
    return tuple(sorted(server.get(f"label/{label}/values", (("match[]", match), *times))))


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _series(data: Any) -> tuple[SeriesData, ...]:
    if data["resultType"] == "scalar":
        return (SeriesData({}, _points([data["result"]])),)
    return tuple(
        SeriesData(each["metric"], _points(each.get("values") or [each["value"]]))
        for each in data["result"]
    )


def _points(values: Sequence[Sequence[Any]]) -> tuple[tuple[float, float], ...]:
    read = ((float(at), float(value)) for at, value in values)
    return tuple((at, value) for at, value in read if not math.isnan(value))
