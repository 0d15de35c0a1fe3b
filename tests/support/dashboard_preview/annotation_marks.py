"""Annotations as marks in charts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dashboard_preview import prometheus_api
from dashboard_preview.grafana_json.dashboard_json import Annotation
from dashboard_preview.panel_data import Context, legend
from dashboard_preview.prometheus_api import Prometheus, SeriesData


class Mark(NamedTuple):
    """A mark from `start` to `end`, in epoch seconds; both are equal for a point in time."""

    start: float
    end: float
    text: str
    colour: str


def marks(
    every: Sequence[Annotation], server: Prometheus, context: Context, width: float
) -> tuple[tuple[Mark, ...], tuple[str, ...]]:
    """The marks of a dashboard whose charts are *width* pixels wide, and the rejected queries."""
    step = context.span.step(width, context.scrape)
    found: list[Mark] = []
    refused: list[str] = []
    for each in every:
        query = context.filled(each.expr, step)
        try:
            answer = prometheus_api.query_range(server, query, context.span.aligned(step), step)
        except prometheus_api.QueryRejectedError as error:
            refused.append(f"annotation {each.title!r}: {error}")
            continue
        for series in answer:
            spans = _moments(series) if each.value_is_time else _regions(series, step)
            text = legend(each.text, series.labels)
            found += [
                Mark(start, end, text, each.colour)
                for start, end in spans
                if start <= context.span.end and end >= context.span.start
            ]
    return tuple(found), tuple(refused)


def _moments(series: SeriesData) -> Iterator[tuple[float, float]]:
    """The values are the times, in milliseconds."""
    return ((at / 1000, at / 1000) for at in sorted({value for _, value in series.points}))


def _regions(series: SeriesData, step: float) -> Iterator[tuple[float, float]]:
    """Regions where the series is 1 or more; points up to a step apart are joined."""
    start = end = None
    for at, value in series.points:
        if value < 1:
            continue
        if start is not None and end is not None and at > end + step * 1.001:
            yield start, end
            start = None
        start = at if start is None else start
        end = at
    if start is not None and end is not None:
        yield start, end
