"""The exporter: reads flows in the background and holds the newest snapshot.

Several threads read; one evaluates and renders; the web server's threads serve the snapshot.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from mm2slo_core.user_errors import UserError
from mm2slo_exporter.collection_health import Health
from mm2slo_exporter.families.exporter_series import ReloadResult as ReloadOutcome
from mm2slo_exporter.service.evaluation import Evaluator
from mm2slo_exporter.service.flow_manager import FlowManager
from mm2slo_exporter.service.flow_readiness import flow_overview, flow_readiness
from mm2slo_exporter.service.round_queue import RoundQueue
from mm2slo_exporter.service.snapshot_publisher import Publisher
from mm2slo_exporter.web.site import Readiness, ReloadResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.config import Config
    from mm2slo_exporter.exposition import Snapshot
    from mm2slo_exporter.state.flow_report import FlowReport
    from mm2slo_exporter.web.site import FlowOverview

logger = logging.getLogger(__name__)


class Exporter:
    """The service behind the web server (its `Site`)."""

    def __init__(
        self,
        load: Callable[[], Config],
        *,
        flows: Sequence[str] = (),
        version: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*load* reads the configuration at start and reload; *flows* are labels, empty for all.

        Raises UserError for an invalid configuration or an unknown label.
        """
        self._load = load
        self._selected = tuple(flows)
        config = self._checked()
        self.health = Health(clock)
        self._reloads = {ReloadOutcome.SUCCESS: 0, ReloadOutcome.FAILURE: 0}
        self._reload_lock = threading.Lock()
        rounds = RoundQueue()
        self._flows = FlowManager(config, self._selected, self.health, rounds.put, clock)
        self._publisher = Publisher(
            self._flows, self.health, self._reloads, rounds, version=version, clock=clock
        )
        self._evaluation = Evaluator(rounds, self._flows, self._publisher, self.health)

    @property
    def config(self) -> Config:
        return self._flows.config

    def start(self) -> None:
        """Start all threads; returns at once."""
        self._flows.open()
        self._publisher.publish()
        self._evaluation.start()

    def stop(self) -> None:
        """Stop all threads and the canary process."""
        self._evaluation.stop()
        with self._reload_lock:
            self._flows.close()

    # Site

    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._publisher.current()

    def readiness(self) -> Readiness:
        """Readiness of each flow, and what it waits for."""
        flows = tuple(flow_readiness(report, self.health) for report in self.reports())
        ready = bool(flows) and all(flow.ready for flow in flows)
        return Readiness(ready, flows, self._flows.stale_flows())

    def overview(self) -> tuple[FlowOverview, ...]:
        """The flows, for the HTML page."""
        return tuple(flow_overview(report) for report in self.reports())

    def reports(self) -> list[FlowReport]:
        """The newest report of each flow."""
        return self._flows.reports()

    def reload(self) -> ReloadResult:
        """Read the configuration again and apply it; unchanged flows keep running.

        An invalid configuration is counted, logged and not applied.
        """
        with self._reload_lock:
            before = self.config
            try:
                config = self._checked()
                changed = self._flows.apply(config)
            except UserError as error:
                self._reloads[ReloadOutcome.FAILURE] += 1
                logger.error("reload failed; keeping the previous configuration: %s", error)
                return ReloadResult(done=False, message=str(error))
            self._reloads[ReloadOutcome.SUCCESS] += 1
            message = f"reloaded; {changed} flow(s) restarted"
            if config.exporter.listen != before.exporter.listen:
                message += "; restart the exporter to apply exporter.listen"
            logger.info(message)
            return ReloadResult(done=True, message=message)

    def _checked(self) -> Config:
        config = self._load()
        config.select(self._selected)
        return config
