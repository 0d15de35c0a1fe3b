"""Renders metric families into a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.catalogue import BY_NAME
from mm2slo_exporter.exposition.exposition_format import TERMINATORS, Format
from mm2slo_exporter.exposition.gzip_member import HEADER, LEVEL, Piece, gzip_trailer
from mm2slo_exporter.exposition.metric_family import ExpositionError, Family, count_series
from mm2slo_exporter.exposition.rendered_family import RenderedFamily
from mm2slo_exporter.exposition.snapshot import Body, Encoding, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.catalogue import Metric


class Renderer:
    """Renders families into snapshots, reusing unchanged parts of the last render.

    Deterministic: the same families give the same bytes. Not thread-safe.
    """

    def __init__(
        self, catalogue: Mapping[str, Metric] = BY_NAME, *, gzip_level: int = LEVEL
    ) -> None:
        self._catalogue = catalogue
        self._level = gzip_level
        self._rendered: dict[str, RenderedFamily] = {}
        self._terminators = {fmt: Piece.of(end, gzip_level) for fmt, end in TERMINATORS.items()}

    def render(self, families: Iterable[Family]) -> Snapshot:
        """A snapshot of *families* in order, without families that have no series.

        Raises ExpositionError for a metric that is not in the catalogue, a wrong number of
        labels, a duplicate series, and NaN.
        """
        by_name = _by_name(families)
        rendered = {name: self._render_family(parts) for name, parts in by_name.items()}
        self._rendered = rendered  # drops metrics that have no series now
        bodies = {}
        for fmt in Format:
            pieces = self._pieces(fmt)
            deflated = (piece.deflated for piece in pieces)
            bodies[fmt, Encoding.IDENTITY] = Body(tuple(piece.plain for piece in pieces))
            bodies[fmt, Encoding.GZIP] = Body((HEADER, *deflated, gzip_trailer(pieces)))
        return Snapshot(bodies, sum(map(count_series, by_name.values())))

    def _render_family(self, parts: Sequence[Family]) -> RenderedFamily:
        family = parts[0]
        metric = family.metric
        if self._catalogue.get(metric.name) is not metric:
            raise ExpositionError(f"{metric.name} is not in the metrics catalogue")
        names = metric.labels_at(family.granularity)
        rendered = self._rendered.get(metric.name)
        if rendered is None or rendered.names != names:
            rendered = RenderedFamily(metric, names, self._level)
        rendered.update([part.series for part in parts])
        return rendered

    def _pieces(self, fmt: Format) -> list[Piece]:
        pieces = []
        for family in self._rendered.values():
            pieces.append(family.metadata[fmt])
            pieces += [part.lines for part in family.parts]
        return [*pieces, self._terminators[fmt]]


def _by_name(families: Iterable[Family]) -> Mapping[str, list[Family]]:
    """The families of each metric that have series, in order of the first."""
    found: dict[str, list[Family]] = {}
    for family in families:
        if not family.series:
            continue
        parts = found.setdefault(family.metric.name, [])
        parts.append(family)
        if parts[0].granularity is not family.granularity or parts[0].metric is not family.metric:
            raise ExpositionError(
                f"{family.metric.name} has two granularities: "
                f"{parts[0].granularity.label} and {family.granularity.label}"
            )
    return found
