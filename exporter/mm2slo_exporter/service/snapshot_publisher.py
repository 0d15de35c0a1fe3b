"""Renders the flows' reports and the exporter's own metrics into the served snapshot."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_core.catalogue import Granularity
from mm2slo_exporter.exposition import ExpositionError, Renderer
from mm2slo_exporter.families import (
    ExporterReport,
    SeriesCache,
    hide_other_groups,
    limited_families,
)
from mm2slo_web.process_series import process_series

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_exporter.canary.ledger_state import LedgerState
    from mm2slo_exporter.collection_health import Health
    from mm2slo_exporter.exposition import Family, Snapshot
    from mm2slo_exporter.families.exporter_series import ReloadResult
    from mm2slo_exporter.service.flow_manager import FlowManager
    from mm2slo_exporter.service.round_queue import RoundQueue
    from mm2slo_exporter.state.flow_report import FlowReport

logger = logging.getLogger(__name__)


class Publisher:
    """Holds the newest snapshot; `publish` replaces it, `current` is what a scrape gets."""

    def __init__(
        self,
        flows: FlowManager,
        health: Health,
        reloads: Mapping[ReloadResult, int],
        rounds: RoundQueue,
        *,
        version: str,
        clock: Callable[[], float],
    ) -> None:
        self._flows = flows
        self._health = health
        self._reloads = reloads
        self._rounds = rounds
        self._version = version
        self._clock = clock
        self._published_at = clock()
        self._renderer = Renderer()
        self._series = SeriesCache()
        self._render_seconds: float | None = None
        self.cycle_seconds: float | None = None
        """Duration of the newest cycle, from its first observation to its snapshot."""
        self.snapshot: Snapshot = self._render(())
        self._settled: Mapping[str, LedgerState] = {}
        self._scraped: Mapping[str, LedgerState] | None = None

    def publish(self) -> None:
        """Render the newest reports.

        If that fails, only the exporter's own series are published, so that no stale values are
        served.
        """
        try:
            self.snapshot = self._render(self._flows.reports())
            self._settled = self._flows.ledger_states()
        except ExpositionError:
            logger.exception(
                "rendering the flows failed; only the exporter's own series are published; "
                "report this bug with the traceback below"
            )
            self.snapshot = self._render(())
        self._published_at = self._clock()

    def current(self) -> Snapshot:
        """The newest snapshot; with flows of unknown state once it is stale.

        The evaluating thread cannot publish that itself: it is stalled.
        """
        if self._clock() - self._published_at <= self._flows.stale_after:
            self._scraped = self._settled  # before the snapshot: it is not older
            return self.snapshot
        reports = [report.not_evaluated() for report in self._flows.reports()]
        return Renderer().render(self._families(reports, SeriesCache()))

    def take_scraped(self) -> Mapping[str, LedgerState] | None:
        """What was settled of canaries in the newest scrape since the last call."""
        scraped, self._scraped = self._scraped, None
        return scraped

    def _render(self, reports: Sequence[FlowReport]) -> Snapshot:
        started = time.perf_counter()
        snapshot = self._renderer.render(self._families(reports, self._series))
        self._render_seconds = time.perf_counter() - started
        return snapshot

    def _families(self, reports: Sequence[FlowReport], series: SeriesCache) -> Sequence[Family]:
        own = ExporterReport(
            version=self._version,
            health=self._health.report(),
            process=process_series(),
            kafka_requests=self._flows.request_totals(),
            reloads=dict(self._reloads),
            render_seconds=self._render_seconds,
            cycle_seconds=self.cycle_seconds,
        )
        settings = self._flows.config.exporter
        return limited_families(
            [
                hide_other_groups(
                    replace(report, skipped_rounds=self._rounds.skipped(report.flow)),
                    settings.shows_group,
                )
                for report in reports
            ],
            own,
            Granularity.parse(settings.granularity),
            settings.series_limit,
            series,
        ).families
