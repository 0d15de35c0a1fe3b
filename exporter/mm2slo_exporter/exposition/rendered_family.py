"""The sample lines of one metric, reused between renders where unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, cast

from mm2slo_core.catalogue import MetricType
from mm2slo_exporter.exposition.exposition_format import Format, metadata_lines
from mm2slo_exporter.exposition.gzip_member import Piece
from mm2slo_exporter.exposition.metric_family import ExpositionError, Histogram
from mm2slo_exporter.exposition.sample_lines import LinePrefixes, format_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.catalogue import Metric

Labels: TypeAlias = tuple[str, ...]
SeriesList: TypeAlias = "Sequence[tuple[Labels, float | Histogram]]"


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """Some series of a metric and their lines."""

    series: SeriesList
    keys: list[Labels]
    prefixes: list[str]
    lines: Piece


class RenderedFamily:
    """One metric's lines, by part.

    A part whose series are the same object as before is not rendered again, and labels of series
    in the same order as before are not. Only the newest render is kept, so removed series take no
    memory.
    """

    def __init__(self, metric: Metric, names: tuple[str, ...], level: int) -> None:
        self.names = names
        self.metadata = {fmt: Piece.of(metadata_lines(metric, fmt), level) for fmt in Format}
        self._metric = metric
        self._line_prefixes = LinePrefixes(metric, names)
        self._level = level
        self.parts: list[RenderedPart] = []

    def update(self, series: Sequence[SeriesList]) -> None:
        """Render the parts in *series*; the result is in `parts`.

        Raises ExpositionError, and changes nothing, for invalid or duplicate series.
        """
        before = dict(enumerate(self.parts))
        keys = [
            before[at].keys
            if at in before and before[at].series is each
            else [labels for labels, _ in each]
            for at, each in enumerate(series)
        ]
        if keys == [part.keys for part in self.parts]:
            prefixes = [part.prefixes for part in self.parts]
        else:
            prefixes = self._prefixes_of(keys)
        self.parts = [
            before[at]
            if at in before and before[at].series is each
            else self._render(each, keys[at], prefixes[at], before.get(at))
            for at, each in enumerate(series)
        ]

    def _render(
        self,
        series: SeriesList,
        keys: list[Labels],
        prefixes: list[str],
        before: RenderedPart | None,
    ) -> RenderedPart:
        texts = format_values(self._metric, self._numbers([value for _, value in series]))
        parts = chain.from_iterable(zip(prefixes, texts, strict=True))
        first = next(parts).removeprefix("\n")
        lines = "".join(chain((first,), parts, ("\n",))).encode()
        if before is not None and lines == before.lines.plain:
            return RenderedPart(series, keys, prefixes, before.lines)
        return RenderedPart(series, keys, prefixes, Piece.of(lines, self._level))

    def _numbers(self, values: list[float | Histogram]) -> Sequence[float]:
        if self._metric.type is not MetricType.HISTOGRAM:
            return cast("list[float]", values)  # format_values() checks the types
        return list(chain.from_iterable(map(self._histogram_numbers, values)))

    def _histogram_numbers(self, value: float | Histogram) -> tuple[float, ...]:
        expected = len(self._metric.buckets) + 1
        if not isinstance(value, Histogram) or len(value.cumulative) != expected:
            raise ExpositionError(
                f"{self._metric.name} takes a Histogram of {expected} counts, got {value!r}"
            )
        return (*value.cumulative, value.sum, value.count)

    def _prefixes_of(self, keys: Sequence[list[Labels]]) -> list[list[str]]:
        known: dict[Labels, tuple[str, ...]] = {}
        for part in self.parts:
            per_key = len(part.prefixes) // len(part.keys)
            of_keys = zip(*[iter(part.prefixes)] * per_key, strict=True)
            known.update(zip(part.keys, of_keys, strict=True))
        seen: set[Labels] = set()
        found = []
        for of_part in keys:
            prefixes: list[str] = []
            for key in of_part:
                if key in seen:
                    labels = dict(zip(self.names, key, strict=True))
                    raise ExpositionError(f"{self._metric.name} has two values for {labels}")
                seen.add(key)
                prefixes += known.get(key) or self._line_prefixes.of(key)
            found.append(prefixes)
        return found
