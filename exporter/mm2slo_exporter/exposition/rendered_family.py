"""The sample lines of one metric, reused between renders where unchanged."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, cast

from mm2slo_core.catalogue import MetricType
from mm2slo_exporter.exposition.exposition_format import Format, metadata_lines
from mm2slo_exporter.exposition.gzip_member import deflate
from mm2slo_exporter.exposition.metric_family import ExpositionError, Histogram
from mm2slo_exporter.exposition.sample_lines import LinePrefixes, format_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.catalogue import Metric

Labels: TypeAlias = tuple[str, ...]


class RenderedFamily:
    """One metric's lines. Labels are not rendered again for series in the same order as before.

    Only the newest render is kept, so removed series take no memory.
    """

    def __init__(self, metric: Metric, names: tuple[str, ...], level: int) -> None:
        self.names = names
        self.metadata = {fmt: metadata_lines(metric, fmt) for fmt in Format}
        self.metadata_deflated = {
            fmt: deflate(lines, level) for fmt, lines in self.metadata.items()
        }
        self._metric = metric
        self._line_prefixes = LinePrefixes(metric, names)
        self._level = level
        self._keys: list[Labels] = []
        self._prefixes: list[str] = []
        self.lines = b""
        self.lines_deflated = b""

    def update(self, series: Sequence[tuple[Labels, float | Histogram]]) -> None:
        """Render *series*; the result is in `lines` and `lines_deflated`.

        Raises ExpositionError, and changes nothing, for invalid or duplicate series.
        """
        keys = [labels for labels, _ in series]
        texts = format_values(self._metric, self._numbers([value for _, value in series]))
        prefixes = self._prefixes if keys == self._keys else self._prefixes_of(keys)
        parts = chain.from_iterable(zip(prefixes, texts, strict=True))
        first = next(parts).removeprefix("\n")
        lines = "".join(chain((first,), parts, ("\n",))).encode()
        self._keys, self._prefixes = keys, prefixes
        if lines != self.lines:
            self.lines, self.lines_deflated = lines, deflate(lines, self._level)

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

    def _prefixes_of(self, keys: list[Labels]) -> list[str]:
        per_key = len(self._prefixes) // len(self._keys) if self._keys else 1
        known = dict(
            zip(self._keys, zip(*[iter(self._prefixes)] * per_key, strict=True), strict=True)
        )
        found: dict[Labels, tuple[str, ...]] = {}
        for key in keys:
            if key in found:
                labels = dict(zip(self.names, key, strict=True))
                raise ExpositionError(f"{self._metric.name} has two values for {labels}")
            found[key] = known.get(key) or self._line_prefixes.of(key)
        return list(chain.from_iterable(found.values()))
