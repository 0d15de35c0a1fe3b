"""PromQL built from the catalogue's objects, so that a renamed metric is a Python error.

A `Vector` is an expression with the labels of its result; selecting or grouping by a missing label
is an error. Literals are escaped only here.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mm2slo_core.catalogue.metric import Metric, MetricType
from mm2slo_core.catalogue.prometheus_series import RecordedSeries

SCRAPE_LABELS: Final = ("job", "instance")
"""Labels that Prometheus adds to every scraped series."""

_UNITS: Final = (
    (86_400_000, "d"),
    (3_600_000, "h"),
    (60_000, "m"),
    (1_000, "s"),
    (1, "ms"),
)
_COUNTER_FUNCTIONS: Final = ("increase", "rate", "irate", "resets")


def duration(seconds: float) -> str:
    """Format a duration as Prometheus does: 300 -> `5m`, 5400 -> `1h30m`, 0.5 -> `500ms`.

    Raises ValueError below a millisecond, which Prometheus does not support.
    """
    rest = round(seconds * 1000)
    if rest <= 0:
        raise ValueError(f"duration is {seconds!r} s; expected 1 ms or more")
    parts = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def number(value: float) -> str:
    """Format a number without floating-point noise: 0.1 + 0.2 -> `0.3`, 12.0 -> `12`."""
    return f"{value:.12g}"


def quoted(text: str) -> str:
    """Return *text* as an escaped string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped.replace(chr(13), chr(92) + "r")}"'


@dataclass(frozen=True, slots=True)
class Matcher:
    """A label matcher: `operator` is one of `=`, `!=`, `=~` and `!~`."""

    label: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.label}{self.operator}{quoted(self.value)}"


def equal(label: str, value: str) -> Matcher:
    """Return `label="value"`."""
    return Matcher(label, "=", value)


def unequal(label: str, value: str) -> Matcher:
    """Return `label!="value"`."""
    return Matcher(label, "!=", value)


def matching(label: str, pattern: str) -> Matcher:
    """Return `label=~"pattern"`, an RE2 expression that must match the whole value."""
    return Matcher(label, "=~", pattern)


_STRING: Final = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`"""
_SELECTOR: Final = re.compile(
    rf"(?:{_STRING})|(?<![\w:.$])(?P<name>[A-Za-z_:][\w:]*)"
    rf"(?:\{{(?P<matchers>(?:{_STRING}|[^}}\"'`])*)\}})?"
)


def add_matcher(expression: str, series: Collection[str], matcher: Matcher) -> str:
    """Return *expression* with *matcher* in every selector of *series*, by their names."""

    def added(found: re.Match[str]) -> str:
        if found["name"] not in series:
            return found[0]
        matchers = (found["matchers"], str(matcher))
        return f"{found['name']}{{{', '.join(filter(None, matchers))}}}"

    return _SELECTOR.sub(added, expression)


def unmatching(label: str, pattern: str) -> Matcher:
    """Return `label!~"pattern"`."""
    return Matcher(label, "!~", pattern)


@dataclass(frozen=True, slots=True)
class Vector:
    """An expression that evaluates to an instant vector with these labels."""

    text: str
    labels: tuple[str, ...]

    def __str__(self) -> str:
        return self.text


def select(
    series: Metric | RecordedSeries, *matchers: Matcher, part: str = "", offset: float = 0.0
) -> Vector:
    """Return an instant vector selector for *series*.

    *part* is `bucket`, `sum` or `count` of a histogram; *offset* is in seconds.
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
    """Return `function(series[window])`, window in seconds, as in `increase` or `max_over_time`.

    A *window* of text is used unchanged, as in Grafana's `$__rate_interval`. Raises ValueError for
    a counter function on a series that is no counter.
    """
    # On a gauge these functions take each decrease for a reset, and give a wrong, plausible number.
    is_counter = isinstance(series, Metric) and (series.type is MetricType.COUNTER or bool(part))
    if function in _COUNTER_FUNCTIONS and not is_counter:
        raise ValueError(f"{function}() needs a counter; {series.name} is not a counter")
    name, labels = _series(series, matchers, part)
    length = window if isinstance(window, str) else duration(window)
    return Vector(f"{function}({name}[{length}])", labels)


def continued_increase(
    now: Vector, metric: Metric, window: float | str, lookback: float, *matchers: Matcher
) -> str:
    """Return the increase above 0 of a counter that a restarted exporter continues.

    `increase()` omits the first value of a series, which after a restart under another `instance`
    contains what happened meanwhile. So the counter also increases by what *now*, its maximum by
    labels, exceeds the maximum in *lookback* seconds before the *window*; all of it counts if the
    flow was not scraped then.
    """
    name, labels = _series(metric, matchers, "")
    length = window if isinstance(window, str) else duration(window)
    past = f"{name}[{duration(lookback)}] offset {length}"
    before = aggregate("max", Vector(f"max_over_time({past})", labels), now.labels)
    risen = aggregate("max", over("increase", metric, window, *matchers), now.labels)
    return (
        f"(\n  {now}\n  -\n  {before}\n) > 0\n"
        f"or\n{risen} > 0\n"
        f"or\n(\n  {now}\n  unless {on(('flow',), now)}\n  present_over_time({past})\n) > 0"
    )


def aggregate(operator: str, vector: Vector, by: Sequence[str]) -> Vector:
    """Return `operator by (labels) (vector)`; ValueError for a label that *vector* lacks."""
    _check(by, vector.labels, vector.text)
    return Vector(f"{operator} by ({', '.join(by)}) ({vector})", tuple(by))


def either(*vectors: Vector) -> Vector:
    """Return `a or b`: per label set, the series of the first vector that has one."""
    common = tuple(
        label for label in vectors[0].labels if all(label in each.labels for each in vectors)
    )
    return Vector(" or ".join(map(str, vectors)), common)


def on(labels: Sequence[str], *vectors: Vector) -> str:
    """Return `on (labels)`; ValueError if one of *vectors* lacks a label."""
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
            raise ValueError(f"{series.name} has no samples named {name}")
        if part == "bucket":
            labels = (*labels, "le")
    _check([matcher.label for matcher in matchers], labels, name)
    chosen = f"{{{', '.join(map(str, matchers))}}}" if matchers else ""
    return f"{name}{chosen}", labels


def _check(wanted: Iterable[str], present: Sequence[str], where: str) -> None:
    unknown = [label for label in wanted if label not in present]
    if unknown:
        raise ValueError(
            f"{where} has no label {', '.join(unknown)}; its labels: {', '.join(present)}"
        )
