"""The sample lines of one metric, reused between renders where unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, cast

from mm2slo_core.catalogue import MetricType
from mm2slo_exporter.exposition.exposition_format import Format, metadata_lines
from mm2slo_exporter.exposition.gzip_member import Piece
from mm2slo_exporter.exposition.metric_family import ExpositionError, Histogram, SeriesColumns
from mm2slo_exporter.exposition.sample_lines import (
    LineTemplates,
    are_same_integers,
    check_values,
    fill_in,
    template_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.catalogue import Metric
    from mm2slo_exporter.exposition.metric_family import SeriesList

Labels: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """Some series of a metric and their lines."""

    series: SeriesList
    keys: list[Labels]
    lines: Piece


class RenderedFamily:
    """One metric's lines, by part.

    A part whose series are the same object as before is not rendered again, and labels of a part
    with the same labels as before are not. Only the newest render is kept, so removed series take
    no memory.
    """

    def __init__(self, metric: Metric, names: tuple[str, ...], level: int) -> None:
        self.names = names
        self.metadata = {fmt: Piece.of(metadata_lines(metric, fmt), level) for fmt in Format}
        self._metric = metric
        self._templates = LineTemplates(metric, names)
        self._level = level
        self.parts: list[RenderedPart] = []

    def update(self, series: Sequence[SeriesList]) -> None:
        """Render the parts in *series*; the result is in `parts`.

        Raises ExpositionError, and changes nothing, for invalid or duplicate series.
        """
        before = dict(enumerate(self.parts))
        keys = [
            before[at].keys if at in before and before[at].series is each else _labels_of(each)
            for at, each in enumerate(series)
        ]
        if keys != [part.keys for part in self.parts]:
            self._check_distinct(keys)
        self.parts = [
            before[at]
            if at in before and before[at].series is each
            else self._render(each, keys[at], before.get(at))
            for at, each in enumerate(series)
        ]

    def _render(
        self, series: SeriesList, keys: list[Labels], before: RenderedPart | None
    ) -> RenderedPart:
        numbers = self._numbers(series)
        if before is not None and before.keys == keys:
            if are_same_integers(self._numbers(before.series), numbers):
                return RenderedPart(series, keys, before.lines)
            template = template_of(before.lines.plain)
        else:
            template = "".join(map(self._templates.of, keys)).encode()
        check_values(self._metric, numbers)
        lines = fill_in(template, numbers)
        if before is not None and lines == before.lines.plain:
            return RenderedPart(series, keys, before.lines)
        return RenderedPart(series, keys, Piece.of(lines, self._level))

    def _numbers(self, series: SeriesList) -> Sequence[float]:
        if isinstance(series, SeriesColumns):
            return series.values
        values = [value for _, value in series]
        if self._metric.type is not MetricType.HISTOGRAM:
            return cast("list[float]", values)  # check_values() checks the types
        return list(chain.from_iterable(map(self._histogram_numbers, values)))

    def _histogram_numbers(self, value: float | Histogram) -> tuple[float, ...]:
        expected = len(self._metric.buckets) + 1
        if not isinstance(value, Histogram) or len(value.cumulative) != expected:
            raise ExpositionError(
                f"{self._metric.name} takes a Histogram of {expected} counts, got {value!r}"
            )
        return (*value.cumulative, value.sum, value.count)

    def _check_distinct(self, keys: Sequence[list[Labels]]) -> None:
        seen: set[Labels] = set()
        for key in chain.from_iterable(keys):
            if key in seen:
                labels = dict(zip(self.names, key, strict=True))
                raise ExpositionError(f"{self._metric.name} has two values for {labels}")
            seen.add(key)


def _labels_of(series: SeriesList) -> list[Labels]:
    return series.labels if isinstance(series, SeriesColumns) else [labels for labels, _ in series]
