"""PromQL from the catalogue's objects, so that a renamed metric is an error of Python.

A `Vector` is an expression together with the labels of its result; selecting or grouping by a
label that is not there is refused. Literals are escaped here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import Metric, MetricType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.catalogue import RecordedSeries

SCRAPE_LABELS: Final = ("job", "instance")
"""On every scraped series, put there by Prometheus."""
_UNITS: Final = (
    (86_400_000, "d"),
    (3_600_000, "h"),
    (60_000, "m"),
    (1_000, "s"),
    (1, "ms"),
)
_COUNTER_FUNCTIONS: Final = ("increase", "rate", "irate", "resets")


def duration(seconds: float) -> str:
    """A duration as Prometheus writes it: 300 -> `5m`, 5400 -> `1h30m`, 0.5 -> `500ms`.

    Raises ValueError below a millisecond, which Prometheus cannot say.
    """
    rest = round(seconds * 1000)
    if rest <= 0:
        raise ValueError(f"duration is {seconds!r} s: expected a millisecond or more")
    words = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count}{unit}")
    return "".join(words)


def number(value: float) -> str:
    """A number without artefacts of binary fractions: 0.1 + 0.2 -> `0.3`, 12.0 -> `12`."""
    return f"{value:.12g}"


def quoted(text: str) -> str:
    """A string literal; whatever *text* holds stays within it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped.replace(chr(13), chr(92) + "r")}"'


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label: `operator` is one of `=`, `!=`, `=~` and `!~`."""

    label: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.label}{self.operator}{quoted(self.value)}"


def equal(label: str, value: str) -> Matcher:
    """`label="value"`."""
    return Matcher(label, "=", value)


def unequal(label: str, value: str) -> Matcher:
    """`label!="value"`."""
    return Matcher(label, "!=", value)


def matching(label: str, pattern: str) -> Matcher:
    """`label=~"pattern"`, an RE2 expression that must fit the whole value."""
    return Matcher(label, "=~", pattern)


def unmatching(label: str, pattern: str) -> Matcher:
    """`label!~"pattern"`."""
    return Matcher(label, "!~", pattern)


@dataclass(frozen=True, slots=True)
class Vector:
    """An expression whose result is an instant vector with these labels."""

    text: str
    labels: tuple[str, ...]

    def __str__(self) -> str:
        return self.text


def select(
    series: Metric | RecordedSeries, *matchers: Matcher, part: str = "", offset: float = 0.0
) -> Vector:
    """The newest sample of each series of *series*.

    *part* is `bucket`, `sum` or `count` of a histogram. *offset* (seconds) looks back.
    """
    name, labels = _series(series, matchers, part)
    back = f" offset {duration(offset)}" if offset else ""
    return Vector(f"{name}{back}", labels)


def over(
    function: str,
    series: Metric | RecordedSeries,
    window: float | str,
    *matchers: Matcher,
    part: str = "",
) -> Vector:
    """`function(series[window])`, window in seconds, as in `increase` or `max_over_time`.

    A *window* that is text stands as it is: Grafana's `$__rate_interval` is one. Raises ValueError
    for a counter's function on what is no counter.
    """
    is_counter = isinstance(series, Metric) and (series.type is MetricType.COUNTER or bool(part))
    if function in _COUNTER_FUNCTIONS and not is_counter:
        raise ValueError(f"{function}() needs a counter, and {series.name} is none")
    name, labels = _series(series, matchers, part)
    length = window if isinstance(window, str) else duration(window)
    return Vector(f"{function}({name}[{length}])", labels)


def aggregate(operator: str, vector: Vector, by: Sequence[str]) -> Vector:
    """`operator by (labels) (vector)`; ValueError for a label that *vector* has not."""
    _check(by, vector.labels, vector.text)
    return Vector(f"{operator} by ({', '.join(by)}) ({vector})", tuple(by))


def either(*vectors: Vector) -> Vector:
    """The first of *vectors* that has a series of these labels: `a or b`."""
    common = tuple(
        label for label in vectors[0].labels if all(label in each.labels for each in vectors)
    )
    return Vector(" or ".join(map(str, vectors)), common)


def on(labels: Sequence[str], *vectors: Vector) -> str:
    """`on (labels)`; ValueError when one of *vectors* lacks a label."""
    for vector in vectors:
        _check(labels, vector.labels, vector.text)
    return f"on ({', '.join(labels)})"


def _series(
    series: Metric | RecordedSeries, matchers: Sequence[Matcher], part: str
) -> tuple[str, tuple[str, ...]]:
    labels = series.labels
    if isinstance(series, Metric):
        labels = (*labels, *SCRAPE_LABELS)
    name = series.name
    if part or (isinstance(series, Metric) and series.type is MetricType.HISTOGRAM):
        name = f"{name}_{part}"
        if not isinstance(series, Metric) or name not in series.sample_names:
            raise ValueError(f"{series.name} has no samples called {name}")
        if part == "bucket":
            labels = (*labels, "le")
    _check([matcher.label for matcher in matchers], labels, name)
    chosen = f"{{{', '.join(map(str, matchers))}}}" if matchers else ""
    return f"{name}{chosen}", labels


def _check(wanted: Iterable[str], present: Sequence[str], where: str) -> None:
    unknown = [label for label in wanted if label not in present]
    if unknown:
        raise ValueError(f"no label {', '.join(unknown)} on {where}: it has {', '.join(present)}")
