"""From families of series to a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.catalogue import BY_NAME
from mm2slo_exporter.exposition.deflate import HEADER, LEVEL, deflated, trailer
from mm2slo_exporter.exposition.family import ExpositionError, Family, count_series
from mm2slo_exporter.exposition.metadata import ENDS, Format
from mm2slo_exporter.exposition.rendered import RenderedFamily
from mm2slo_exporter.exposition.snapshot import Body, Encoding, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.catalogue import Metric


class Renderer:
    """Renders families into snapshots, reusing whatever did not change since the last time.

    Deterministic: the same families give the same bytes, whatever was rendered before. Not for
    use by two threads at once.
    """

    def __init__(
        self, catalogue: Mapping[str, Metric] = BY_NAME, *, gzip_level: int = LEVEL
    ) -> None:
        self._catalogue = catalogue
        self._level = gzip_level
        self._rendered: dict[str, RenderedFamily] = {}
        self._ends_deflated = {fmt: deflated(end, gzip_level) for fmt, end in ENDS.items()}

    def render(self, families: Iterable[Family]) -> Snapshot:
        """A snapshot of *families*, in their order; those without series are left out.

        Raises ExpositionError when a metric is not in the catalogue, a series has the wrong
        number of labels or comes twice, or a value is NaN.
        """
        merged = [family for family in _merged(families) if family.series]
        rendered = {family.metric.name: self._render_family(family) for family in merged}
        self._rendered = rendered  # metrics without series now are forgotten here
        bodies = {}
        for fmt in Format:
            plain = self._plain(fmt)
            bodies[fmt, Encoding.IDENTITY] = Body(plain)
            bodies[fmt, Encoding.GZIP] = Body(self._gzipped(fmt, plain))
        return Snapshot(bodies, count_series(merged))

    def _render_family(self, family: Family) -> RenderedFamily:
        metric = family.metric
        if self._catalogue.get(metric.name) is not metric:
            raise ExpositionError(f"{metric.name} is not in the catalogue of metrics")
        names = metric.labels_at(family.granularity)
        rendered = self._rendered.get(metric.name)
        if rendered is None or rendered.names != names:
            rendered = RenderedFamily(metric, names, self._level)
        rendered.update(family.series)
        return rendered

    def _plain(self, fmt: Format) -> tuple[bytes, ...]:
        chunks = [
            chunk
            for family in self._rendered.values()
            for chunk in (family.metadata[fmt], family.lines)
        ]
        return (*chunks, ENDS[fmt])

    def _gzipped(self, fmt: Format, plain: tuple[bytes, ...]) -> tuple[bytes, ...]:
        chunks = [
            chunk
            for family in self._rendered.values()
            for chunk in (family.metadata_deflated[fmt], family.lines_deflated)
        ]
        return (HEADER, *chunks, self._ends_deflated[fmt], trailer(plain))


def _merged(families: Iterable[Family]) -> Iterable[Family]:
    merged: dict[str, Family] = {}
    for family in families:
        first = merged.get(family.metric.name)
        if first is None:
            merged[family.metric.name] = family
            continue
        if first.granularity is not family.granularity or first.metric is not family.metric:
            raise ExpositionError(
                f"{family.metric.name} comes in two granularities: "
                f"{first.granularity.label} and {family.granularity.label}"
            )
        merged[family.metric.name] = Family(
            first.metric, [*first.series, *family.series], first.granularity
        )
    return merged.values()
