"""Builds the snapshot that is served: the flows' reports and the exporter's own figures."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from mm2slo_core.catalogue import Granularity
from mm2slo_exporter.exposition import ExpositionError, Renderer
from mm2slo_exporter.families import LabelCache, OwnReport, limited_families
from mm2slo_exporter.service.process import process_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_exporter.exposition import Snapshot
    from mm2slo_exporter.families.own_health import ReloadResult
    from mm2slo_exporter.health import Health
    from mm2slo_exporter.service.flows import Flows
    from mm2slo_exporter.state.model import FlowReport

logger = logging.getLogger(__name__)


class Publisher:
    """Holds the newest finished snapshot; `publish` replaces it whole."""

    def __init__(
        self,
        flows: Flows,
        health: Health,
        reloads: Mapping[ReloadResult, int],
        *,
        version: str,
        started_at: float,
    ) -> None:
        self._flows = flows
        self._health = health
        self._reloads = reloads
        self._version = version
        self._started_at = started_at
        self._renderer = Renderer()
        self._labels = LabelCache()
        self._render_seconds: float | None = None
        self.cycle_seconds: float | None = None
        """How long the newest cycle took, from its first round to its snapshot."""
        self.snapshot: Snapshot = self._render(())

    def publish(self) -> None:
        """Render what is known now.

        Flows that cannot be rendered leave the exporter's own series alone on the page: no
        figure may stay there and grow stale unseen.
        """
        try:
            self.snapshot = self._render(self._flows.reports())
        except ExpositionError:
            logger.exception("the flows cannot be published; report this with the text below")
            self.snapshot = self._render(())

    def _render(self, reports: Sequence[FlowReport]) -> Snapshot:
        started = time.perf_counter()
        own = OwnReport(
            version=self._version,
            health=self._health.report(),
            process=process_report(self._started_at),
            kafka_requests=self._flows.request_totals(),
            reloads=dict(self._reloads),
            render_seconds=self._render_seconds,
            cycle_seconds=self.cycle_seconds,
        )
        settings = self._flows.config.exporter
        limited = limited_families(
            reports,
            own,
            Granularity.parse(settings.granularity.value),
            settings.series_limit,
            self._labels,
        )
        snapshot = self._renderer.render(limited.families)
        self._render_seconds = time.perf_counter() - started
        return snapshot
