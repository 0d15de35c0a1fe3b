"""The data of a panel: series, tables and errors of its queries."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dashboard_preview import prometheus_api
from dashboard_preview.data_frames import Column, Series, Table
from dashboard_preview.grafana_json.dashboard_json import Panel, Target
from dashboard_preview.interpolation import interpolate
from dashboard_preview.prometheus_api import Prometheus, SeriesData
from dashboard_preview.time_range import Span
from dashboard_preview.transformations import transformed

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
    refused: tuple[str, ...] = ()


def answered(panel: Panel, server: Prometheus, context: Context, width: float) -> Data:
    """The responses of *server* to the queries of *panel*, which is *width* pixels wide."""
    if panel.last and context.span.relative:
        own = Span(context.span.end - panel.last, context.span.end, relative=True)
        context = replace(context, span=own)
    step = context.span.step(panel.points or width, max(context.scrape, panel.least))
    asked = context.span.aligned(step)
    series: list[Series] = []
    tables: list[Table] = []
    refused: list[str] = []
    for target in panel.targets:
        query = context.filled(target.expr, step)
        try:
            if target.instant:
                found = prometheus_api.query_instant(server, query, context.span.end)
            else:
                found = prometheus_api.query_range(server, query, asked, step)
        except prometheus_api.QueryRejectedError as error:
            refused.append(f"{target.letter}: {error}")
            continue
        if target.format == "table":
            tables.append(_table(found, target, single=len(panel.targets) == 1))
        else:
            series += [
                Series(_name(target, query, each.labels), each.labels, each.points)
                for each in found
                if each.points
            ]
    shown = transformed(tables, panel.transformations)
    return Data(context.span, step, tuple(series), shown[0] if shown else Table(), tuple(refused))


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
