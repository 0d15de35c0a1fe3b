"""Sample lines, which are the same in Prometheus text format 0.0.4 and OpenMetrics 1.0."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from mm2slo_core.catalogue import MetricType
from mm2slo_exporter.exposition.metric_family import ExpositionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mm2slo_core.catalogue import Metric

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_ESCAPED = re.compile(r'[\\"\n]')


class LinePrefixes:
    r"""Renders the text before each value of a series, from `\n` to the space.

    Each line starts with the newline of the line before, so that joining prefixes and values
    gives complete lines.
    """

    def __init__(self, metric: Metric, names: tuple[str, ...]) -> None:
        self._metric = metric
        self._names = names
        self._templates = _templates(metric, names)

    def of(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """The prefixes of the series with these label values.

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
        return tuple([template % values for template in self._templates])


def _templates(metric: Metric, names: tuple[str, ...]) -> tuple[str, ...]:
    pairs = [f'{name}="%s"' for name in names]
    if metric.type is not MetricType.HISTOGRAM:
        return (f"\n{metric.name}{_braced(pairs)} ",)
    bounds = [*map(repr, metric.buckets), "+Inf"]
    return (
        *(f"\n{metric.name}_bucket{_braced([*pairs, _le(bound)])} " for bound in bounds),
        f"\n{metric.name}_sum{_braced(pairs)} ",
        f"\n{metric.name}_count{_braced(pairs)} ",
    )


def _le(bound: str) -> str:
    return f'le="{bound}"'


def _braced(pairs: Sequence[str]) -> str:
    return "{" + ",".join(pairs) + "}" if pairs else ""


def format_values(metric: Metric, values: Sequence[float]) -> Iterable[str]:
    """The values as text; floats in the shortest form that parses to the same value.

    Raises ExpositionError for NaN, a negative counter, and anything that is not a number.
    """
    if not set(map(type, values)) <= {int, float}:
        odd = next(value for value in values if type(value) not in (int, float))
        raise ExpositionError(f"{metric.name} must have numeric values, got {odd!r}")
    if metric.type is not MetricType.GAUGE and min(values) < 0:
        raise ExpositionError(f"{metric.name} must not be negative, got {min(values)!r}")
    if _all_finite(values):
        return map(repr, values)
    return [_special(metric, value) for value in values]


def _all_finite(values: Sequence[float]) -> bool:
    try:
        return all(map(math.isfinite, values))
    except OverflowError:  # an int beyond the largest float; handled by the slow path
        return False


def _special(metric: Metric, value: float) -> str:
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        raise ExpositionError(
            f"{metric.name} has the value NaN; leave out series whose value is unknown"
        )
    return "+Inf" if value > 0 else "-Inf"
