"""A dashboard before it is Grafana's JSON: boards of rows of panels, each of them a question.

What every panel owes its reader (a description, a unit, what an empty one means, where to go
next) has no default here, so that none is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_core.boards import Board as Identity
    from mm2slo_core.promql import Vector
    from mm2slo_dashboards.colours import Colour

WIDTH: Final = 24
"""Columns of Grafana's grid."""


class Kind(StrEnum):
    """How figures are shown; the value is Grafana's name of the panel."""

    STAT = "stat"
    SERIES = "timeseries"
    TABLE = "table"
    TIMELINE = "state-timeline"
    HEATMAP = "heatmap"
    BARS = "bargauge"


class Unit(StrEnum):
    """Units as Grafana names them. Shares are of 1, times are in seconds."""

    SECONDS = "s"
    SHARE = "percentunit"
    COUNT = "short"
    RATE = "recps"
    REQUESTS = "reqps"
    MOMENT = "dateTimeAsIso"
    """A point in time; Grafana wants milliseconds since the epoch."""
    BYTES = "bytes"
    BYTE_RATE = "Bps"
    FACTOR = "none"
    """A ratio that may be above 1, as a burn rate."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Colours by value: `base` below the first bound, then the colour of the last bound reached."""

    base: Colour
    bounds: tuple[tuple[float, Colour], ...] = ()

    def __post_init__(self) -> None:
        values = [value for value, _ in self.bounds]
        if values != sorted(set(values)):
            raise ValueError(f"bounds are {values}: expected ascending ones")


@dataclass(frozen=True, slots=True)
class State:
    """A code that a query gives, the word for it and its colour."""

    code: int
    word: str
    colour: Colour


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question to Prometheus; `legend` may name labels as in `{{flow}}`.

    An instant query asks for now, any other one for the course.
    """

    vector: Vector
    legend: str = ""
    instant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of figures in a table; its rows are told apart by the labels of the query."""

    title: str
    vector: Vector
    unit: Unit
    steps: Steps | None = None
    states: tuple[State, ...] = ()
    decimals: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One question and its answer.

    `title` asks, `description` says what is shown and what is bad, `no_data` what an empty panel
    means. `alert` names the runbook that helps, `leads` the board that tells more. `fills` is the
    fault in which the panel has data; empty where a healthy flow fills it.

    A course has a point every `step` seconds at most, for what would be too many series to look
    at; `last`, as in `1d`, is a time range of its own, which holds while the board's is relative
    to now.

    Tables have `columns` instead of `queries`; `keys` are the labels that tell their rows apart,
    with the columns' titles, and `sort` the titles to sort by, `-` first for descending.
    """

    title: str
    description: str
    kind: Kind
    unit: Unit
    no_data: str
    queries: tuple[Query, ...] = ()
    leads: Identity | None = None
    alert: str = ""
    fills: str = ""
    width: int = 12
    height: int = 8
    steps: Steps | None = None
    states: tuple[State, ...] = ()
    decimals: int | None = None
    least: float | None = None
    most: float | None = None
    stacked: bool = False
    step: float = 0.0
    last: str = ""
    colours: Mapping[str, Colour] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    sort: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for complaint in self._complaints():
            raise ValueError(f"panel {self.title!r} {complaint}")

    def _complaints(self) -> Iterator[str]:
        if not self.title.endswith("?"):
            yield "asks no question"
        if not self.description or not self.no_data:
            yield "lacks its description, or what no data means"
        if bool(self.queries) == bool(self.columns):
            yield "has neither queries nor columns, or both"
        if self.columns and not self.keys:
            yield "is a table whose rows nothing tells apart"
        if not 0 < self.width <= WIDTH:
            yield f"is {self.width} columns wide: expected up to {WIDTH}"
        if self.leads is None and not self.alert:
            yield "leads nowhere"

    @property
    def asked(self) -> tuple[Query, ...]:
        """Its queries; those of a table's columns are instant."""
        return self.queries or tuple(
            Query(vector=column.vector, instant=True) for column in self.columns
        )


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that answer one question together."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A choice at the top of a board: values of `label` on the series `series`.

    With `several` any number may be chosen, or all: then `everything` stands in the queries.
    """

    name: str
    title: str
    label: str
    series: Vector
    several: bool = True
    everything: str = ".+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Vertical marks in every panel, where and while `vector` has a sample.

    With `at_value` the sample is the time of the mark, in milliseconds since the epoch.
    """

    title: str
    vector: Vector
    text: str
    colour: Colour
    at_value: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A dashboard. `since` is the usual time range, as in `now-6h`; `refresh` as in `30s`.

    `points` is the most that a course on it has; 0 stands for one a pixel.
    """

    identity: Identity
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    marks: tuple[Marks, ...] = ()
    since: str = "now-6h"
    refresh: str = "30s"
    points: int = 0

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels in their order."""
        return (panel for row in self.rows for panel in row.panels)
