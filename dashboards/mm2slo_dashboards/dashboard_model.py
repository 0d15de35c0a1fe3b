"""A dashboard before it is Grafana's JSON: rows of panels, each of which answers one question.

A panel's description, unit, text for no data and next link have no default, so that none is
forgotten. States are codes, texts and colours; the most severe has the highest code. Each colour
has one meaning on every dashboard, from Okabe and Ito's palette for colour-blind readers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mm2slo_core.catalogue.promql import Vector
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.link_targets import DashboardUid
from mm2slo_core.records.connect_records import ConnectState

WIDTH: Final = 24
"""Columns of Grafana's grid."""

MAX_PANELS: Final = 12
"""Panels of a dashboard, as many as one reads."""


class Kind(StrEnum):
    """A panel's visualisation; the value is Grafana's name of it."""

    STAT = "stat"
    SERIES = "timeseries"
    TABLE = "table"
    TIMELINE = "state-timeline"
    BARS = "bargauge"

    @property
    def is_instant(self) -> bool:
        """Whether its queries read the current value; others read a time range."""
        return self not in {Kind.SERIES, Kind.TIMELINE}


class PanelUnit(StrEnum):
    """Units as Grafana names them. Shares are of 1, times are in seconds."""

    SECONDS = "s"
    SHARE = "percentunit"
    COUNT = "short"
    RATE = "recps"
    REQUESTS = "reqps"
    TIMESTAMP = "dateTimeAsIso"
    """In milliseconds since the epoch."""
    BYTES = "bytes"
    BYTE_RATE = "Bps"
    FACTOR = "suffix:x"
    """A multiple, as a burn rate."""


class Colour(StrEnum):
    """What a colour means; the value is the colour."""

    GOOD = "#009E73"
    """Objective met."""
    RESTING = "#56B4E9"
    """Idle: nothing to replicate, nothing wrong."""
    WARNING = "#E69F00"
    """Needs a look."""
    BAD = "#D55E00"
    """Failed, or an objective is missed."""
    UNKNOWN = "#999999"
    """Not known."""
    PLANNED = "#CC79A7"
    """Deliberate: maintenance, a paused connector."""
    NEUTRAL = "#0072B2"
    """A value that is neither good nor bad."""


@dataclass(frozen=True, slots=True)
class PanelThresholds:
    """Colours by value: `base` below the first bound, then the colour of the last bound reached."""

    base: Colour
    bounds: tuple[tuple[float, Colour], ...] = ()

    def __post_init__(self) -> None:
        values = [value for value, _ in self.bounds]
        if values != sorted(set(values)):
            raise ValueError(f"bounds are {values}: expected ascending ones")


@dataclass(frozen=True, slots=True)
class StateMapping:
    """A code that a query returns, with its text and colour."""

    code: int
    text: str
    colour: Colour


@dataclass(frozen=True, slots=True)
class Below:
    """Values below `bound` are shown as a text."""

    bound: float
    text: str
    colour: Colour


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of values in a table; the labels of the query identify its rows."""

    title: str
    vector: Vector
    unit: PanelUnit | None = None
    """None: the panel's."""
    thresholds: PanelThresholds | None = None
    states: tuple[StateMapping, ...] = ()
    below: Below | None = None
    decimals: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One question and its answer.

    `title` is a noun phrase; `description` starts with the question, then says what is shown and
    what is bad; `no_data` says what an empty panel means. `alert` names the runbook that helps,
    `next_dashboard` the dashboard with more detail. `fills_on` is the fault in which the panel has
    data; empty where a healthy flow fills it.

    `min_interval` is the least distance of two points in seconds, for queries of very many series.
    `time_from`, as in `1d`, is the panel's own time range, used while the dashboard's is relative
    to now.

    `queries` are by legend, which may name labels as in `{{flow}}`. Tables have `columns` instead;
    `keys` are the labels that identify a row, with the titles of their columns, and `sort` the
    titles to sort by, `-` first for descending. Charts and bars start at `minimum`.
    """

    title: str
    description: str
    kind: Kind
    unit: PanelUnit
    no_data: str
    queries: Mapping[str, Vector] = field(default_factory=dict)
    next_dashboard: DashboardUid | None = None
    alert: str = ""
    fills_on: str = ""
    width: int = 12
    height: int = 8
    thresholds: PanelThresholds | None = None
    states: tuple[StateMapping, ...] = ()
    below: Below | None = None
    decimals: int | None = None
    minimum: float | None = 0.0
    maximum: float | None = None
    stacked: bool = False
    min_interval: float = 0.0
    time_from: str = ""
    colours: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[TableColumn, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    sort: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for problem in self._find_problems():
            raise ValueError(f"panel {self.title!r} {problem}")

    def _find_problems(self) -> Iterator[str]:
        if self.title.endswith("?"):
            yield "has a question as its title: expected a noun phrase"
        if not self.description or not self.no_data:
            yield "lacks its description, or what no data means"
        elif "? " not in self.description:
            yield "has a description without the question it answers"
        if bool(self.queries) == bool(self.columns):
            yield "has neither queries nor columns, or both"
        if self.columns and not self.keys:
            yield "is a table without keys for its rows"
        if not 0 < self.width <= WIDTH:
            yield f"is {self.width} columns wide: expected up to {WIDTH}"
        if self.next_dashboard is None and not self.alert:
            yield "links to no dashboard or runbook"

    @property
    def vectors(self) -> tuple[Vector, ...]:
        """What its queries or its columns read."""
        return tuple(self.queries.values()) or tuple(each.vector for each in self.columns)


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that answer one question together."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A dashboard variable: the values of `label` on the series `series`.

    With `multi` any number of values may be selected, or all: then `all_value` is the value in
    queries.
    """

    name: str
    title: str
    label: str
    series: Vector
    multi: bool = True
    all_value: str = ".+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Vertical marks in every panel, while `vector` has a sample.

    With `value_is_time` the sample is the time of the mark, in milliseconds since the epoch.
    """

    title: str
    vector: Vector
    text: str
    colour: Colour
    value_is_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard. `time_from` is its default time range, as `now-6h`; `refresh` as `30s`.

    `max_data_points` limits the points of a time series; 0 is one a pixel.
    """

    uid: DashboardUid
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotations: tuple[Annotation, ...] = ()
    time_from: str = "now-6h"
    refresh: str = "30s"
    max_data_points: int = 0

    def __post_init__(self) -> None:
        if (count := len(tuple(self.panels))) > MAX_PANELS:
            raise ValueError(f"dashboard {self.title!r} has {count} panels: expected {MAX_PANELS}")

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels in their order."""
        return (panel for row in self.rows for panel in row.panels)


NEUTRAL: Final = PanelThresholds(Colour.NEUTRAL)
"""For values without an objective."""


FLOW_STATES: Final = (
    StateMapping(0, FlowStateName.RUNNING.value, Colour.GOOD),
    StateMapping(1, FlowStateName.IDLE.value, Colour.RESTING),
    StateMapping(2, FlowStateName.UNKNOWN.value, Colour.UNKNOWN),
    StateMapping(3, FlowStateName.STOPPED.value, Colour.BAD),
)

CONNECT_STATES: Final = tuple(
    StateMapping(code, state.value.lower(), colour)
    for code, (state, colour) in enumerate(
        (
            (ConnectState.RUNNING, Colour.GOOD),
            (ConnectState.RESTARTING, Colour.RESTING),
            (ConnectState.UNASSIGNED, Colour.WARNING),
            (ConnectState.PAUSED, Colour.PLANNED),
            (ConnectState.STOPPED, Colour.BAD),
            (ConnectState.DESTROYED, Colour.UNKNOWN),
            (ConnectState.FAILED, Colour.BAD),
        )
    )
)

ALERT_SCOPES: Final = tuple(
    StateMapping(code, text, Colour.NEUTRAL)
    for code, text in enumerate(("monitoring", "cluster", "flow", "objective"), start=1)
)
"""A cause precedes its consequences."""
READY_STATES: Final = (
    StateMapping(0, "blocked", Colour.BAD),
    StateMapping(1, "ready", Colour.GOOD),
)
UP_STATES: Final = (StateMapping(0, "down", Colour.BAD), StateMapping(1, "up", Colour.GOOD))
BAD_FROM_ONE: Final = PanelThresholds(Colour.GOOD, ((1.0, Colour.BAD),))
WARN_FROM_ONE: Final = PanelThresholds(Colour.GOOD, ((1.0, Colour.WARNING),))


def bad_from(limit: float) -> PanelThresholds:
    """Good below *limit*, bad from it on."""
    return PanelThresholds(Colour.GOOD, ((limit, Colour.BAD),))


def good_from(limit: float) -> PanelThresholds:
    """Bad below *limit*, good from it on."""
    return PanelThresholds(Colour.BAD, ((limit, Colour.GOOD),))


def state_colours(states: tuple[StateMapping, ...]) -> dict[str, Colour]:
    """The colour of each state by its text, for series named after it."""
    return {state.text: state.colour for state in states}


LINES: Final = (
    *("#1F8FD0", "#7A33E0", "#E22BD6", "#777700"),
    *("#993377", "#1C57B5", "#A98CFF"),
)
"""Lines among others. They differ from each other and from the colours with a meaning, and are
visible on black and on white."""
