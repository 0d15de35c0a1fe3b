"""Sample lines, which are the same in Prometheus text format 0.0.4 and OpenMetrics 1.0."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from mm2slo_core.catalogue import MetricType
from mm2slo_exporter.exposition.metric_family import ExpositionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.catalogue import Metric

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "%": "%%"})
_ESCAPED = re.compile(r'[\\"\n%]')
_VALUES = re.compile(rb" [^ \n]+\n")
"""The values of lines, which contain no newline; label values may contain spaces."""


class LineTemplates:
    """The lines of a metric with `%r` in place of values, for `fill_in`."""

    def __init__(self, metric: Metric, names: tuple[str, ...]) -> None:
        self._metric = metric
        self._names = names
        self._lines = _lines(metric, names)

    def of(self, values: tuple[str, ...]) -> str:
        """The lines of the series with these label values.

        Raises ExpositionError for a wrong number of values, and for values that are not text.
        """
        if len(values) != len(self._names):
            raise ExpositionError(
                f"{self._metric.name} takes {len(self._names)} label values {self._names}, "
                f"got {len(values)}: {values}"
            )
        try:
            joined = "".join(values)
            joined.encode()
        except (TypeError, UnicodeEncodeError) as error:
            raise ExpositionError(
                f"{self._metric.name} has a label value that is not text: {values}: {error}"
            ) from error
        if _ESCAPED.search(joined):
            values = tuple(value.translate(_ESCAPES) for value in values)
        return "".join([line % values for line in self._lines])


def template_of(lines: bytes) -> bytes:
    """The template of which *lines* were made; keeping both would double the memory."""
    return _VALUES.sub(b" %r\n", lines.replace(b"%", b"%%"))


def fill_in(template: bytes, values: Sequence[float]) -> bytes:
    """The lines with checked values; floats in the shortest form that parses to the same value."""
    lines = template % tuple(values)
    if not _all_finite(values):
        lines = lines.replace(b" inf\n", b" +Inf\n").replace(b" -inf\n", b" -Inf\n")
    return lines


def are_same_integers(before: Sequence[float], now: Sequence[float]) -> bool:
    """Whether values have the same text: other numbers, such as 1 and 1.0, may be equal without."""
    return before == now and set(map(type, before)) == set(map(type, now)) == {int}


def check_values(metric: Metric, values: Sequence[float]) -> None:
    """Raise ExpositionError for NaN, a negative counter, and anything that is not a number."""
    if not set(map(type, values)) <= {int, float}:
        odd = next(value for value in values if type(value) not in (int, float))
        raise ExpositionError(f"{metric.name} must have numeric values, got {odd!r}")
    if metric.type is not MetricType.GAUGE and min(values) < 0:
        raise ExpositionError(f"{metric.name} must not be negative, got {min(values)!r}")
    if not _all_finite(values) and any(type(v) is float and math.isnan(v) for v in values):
        raise ExpositionError(
            f"{metric.name} has the value NaN; leave out series whose value is unknown"
        )


def _lines(metric: Metric, names: tuple[str, ...]) -> tuple[str, ...]:
    pairs = [f'{name}="%s"' for name in names]
    if metric.type is not MetricType.HISTOGRAM:
        return (f"{metric.name}{_braced(pairs)} %%r\n",)
    bounds = [*map(repr, metric.buckets), "+Inf"]
    return (
        *(f"{metric.name}_bucket{_braced([*pairs, _le(bound)])} %%r\n" for bound in bounds),
        f"{metric.name}_sum{_braced(pairs)} %%r\n",
        f"{metric.name}_count{_braced(pairs)} %%r\n",
    )


def _le(bound: str) -> str:
    return f'le="{bound}"'


def _braced(pairs: Sequence[str]) -> str:
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _all_finite(values: Sequence[float]) -> bool:
    try:
        return math.isfinite(sum(values)) or all(map(math.isfinite, values))
    except OverflowError:  # an int beyond the largest float
        return False
