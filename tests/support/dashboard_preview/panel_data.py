"""The data of a panel: series, tables and errors of its queries."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from dashboard_preview.data_frames import Column, Series, Table, transformed
from dashboard_preview.grafana_json import Annotation, Panel, Target
from dashboard_preview.interpolation import interpolate
from dashboard_preview.prometheus_api import Prometheus, SeriesData, query_instant, query_range
from dashboard_preview.time_range import Span

_LABEL: Final = re.compile(r"\{\{\s*(.+?)\s*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The values of each variable, the time range, and the scrape interval (s)."""

    choices: Mapping[str, Sequence[str]]
    all_values: Mapping[str, str]
    span: Span
    scrape: float

    def filled(self, text: str, step: float) -> str:
        """*text* with variables interpolated; *step* is the panel's, in seconds."""
        return interpolate(
            text,
            self.choices,
            all_values=self.all_values,
            builtin=self.span.builtin(step, self.scrape),
        )


@dataclass(frozen=True, slots=True)
class Data:
    """The data of a panel; `step` is the interval between points in seconds."""

    span: Span
    step: float
    series: tuple[Series, ...] = ()
    table: Table = field(default_factory=Table)


def answered(panel: Panel, server: Prometheus, context: Context, width: float) -> Data:
    """The responses of *server* to the queries of *panel*, which is *width* pixels wide."""
    if panel.last:
        own = Span(context.span.end - panel.last, context.span.end)
        context = replace(context, span=own)
    step = context.span.step(panel.points or width, max(context.scrape, panel.least))
    asked = context.span.aligned(step)
    series: list[Series] = []
    tables: list[Table] = []
    for target in panel.targets:
        query = context.filled(target.expr, step)
        if target.instant:
            found = query_instant(server, query, context.span.end)
        else:
            found = query_range(server, query, asked, step)
        if target.format == "table":
            tables.append(_table(found, target, single=len(panel.targets) == 1))
        else:
            series += [
                Series(_name(target, query, each.labels), each.labels, each.points)
                for each in found
                if each.points
            ]
    shown = transformed(tables, panel.transformations)
    return Data(context.span, step, tuple(series), shown[0] if shown else Table())


def legend(text: str, labels: Mapping[str, str]) -> str:
    """*text* with `{{label}}` replaced; a missing label becomes empty."""
    return _LABEL.sub(lambda found: labels.get(found[1], ""), text)


def _name(target: Target, query: str, labels: Mapping[str, str]) -> str:
    if target.legend:
        return legend(target.legend, labels)
    inner = ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items()))
    return f"{{{inner}}}" if inner else query


def _table(found: Sequence[SeriesData], target: Target, *, single: bool) -> Table:
    """A column for each label, by name, and one for the values; empty without series.

    With several queries the value column has the letter of its query.
    """
    held = [each for each in found if each.points]
    if not held:
        return Table()
    labels = sorted({name for each in held for name in each.labels})
    return Table(
        (
            Column("Time", tuple(each.points[0][0] * 1000 for each in held)),
            *(Column(name, tuple(each.labels.get(name, "") for each in held)) for name in labels),
            Column(
                "Value" if single else f"Value #{target.letter}",
                tuple(each.points[0][1] for each in held),
            ),
        )
    )


class Mark(NamedTuple):
    """A mark from `start` to `end`, in epoch seconds; both are equal for a point in time."""

    start: float
    end: float
    text: str
    colour: str


def marks(
    every: Sequence[Annotation], server: Prometheus, context: Context, width: float
) -> list[Mark]:
    """The marks of a dashboard whose charts are *width* pixels wide."""
    step = context.span.step(width, context.scrape)
    found: list[Mark] = []
    for each in every:
        query = context.filled(each.expr, step)
        for series in query_range(server, query, context.span.aligned(step), step):
            spans = _moments(series) if each.value_is_time else _regions(series, step)
            text = legend(each.text, series.labels)
            found += [
                Mark(start, end, text, each.colour)
                for start, end in spans
                if start <= context.span.end and end >= context.span.start
            ]
    return found


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
