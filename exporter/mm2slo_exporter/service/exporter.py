"""The exporter: reads flows in the background and keeps a finished snapshot at hand.

Threads read; one evaluates and renders; the web server's only pick up what is finished.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from mm2slo_core.errors import UserError
from mm2slo_exporter.families.own_health import ReloadResult as ReloadOutcome
from mm2slo_exporter.health import Health
from mm2slo_exporter.service.evaluation import Evaluation, Rounds
from mm2slo_exporter.service.flows import Flows
from mm2slo_exporter.service.publishing import Publisher
from mm2slo_exporter.service.readiness import flow_overview, flow_readiness
from mm2slo_exporter.web.site import Readiness, ReloadResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.config import Config
    from mm2slo_exporter.exposition import Snapshot
    from mm2slo_exporter.state.model import FlowReport
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
        """*load* gives the configuration anew at each reload; *flows* are labels, none for all.

        Raises UserError for a configuration or a label that cannot be used.
        """
        self._load = load
        self._selected = tuple(flows)
        config = self._checked()
        self.health = Health(clock)
        self._reloads = {ReloadOutcome.SUCCESS: 0, ReloadOutcome.FAILURE: 0}
        self._reload_lock = threading.Lock()
        rounds = Rounds()
        self._flows = Flows(config, self._selected, self.health, rounds.put)
        self._publisher = Publisher(
            self._flows, self.health, self._reloads, version=version, started_at=clock()
        )
        self._evaluation = Evaluation(rounds, self._flows, self._publisher)

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._flows.config

    # Life

    def start(self) -> None:
        """Begin to read and to publish; returns at once."""
        self._flows.open()
        self._evaluation.start()

    def stop(self) -> None:
        """End all threads and the canary process."""
        self._evaluation.stop()
        with self._reload_lock:
            self._flows.close()

    # Site

    def snapshot(self) -> Snapshot:
        """The newest finished exposition."""
        return self._publisher.snapshot

    def readiness(self) -> Readiness:
        """Which flow waits for what."""
        flows = tuple(
            flow_readiness(runner.flow.flow, runner.report, self.health)
            for runner in self._flows.running()
        )
        return Readiness(bool(flows) and all(flow.ready for flow in flows), flows)

    def overview(self) -> tuple[FlowOverview, ...]:
        """The flows, for the page."""
        return tuple(flow_overview(report) for report in self.reports())

    def reports(self) -> list[FlowReport]:
        """The newest report of each flow that has one."""
        return self._flows.reports()

    def reload(self) -> ReloadResult:
        """Read the configuration again and apply it; flows that did not change go on untouched.

        A configuration that cannot be used changes nothing; it is counted and logged.
        """
        with self._reload_lock:
            before = self.config
            try:
                config = self._checked()
                changed = self._flows.apply(config)
            except UserError as error:
                self._reloads[ReloadOutcome.FAILURE] += 1
                logger.error("reload refused, the old configuration stays: %s", error)
                return ReloadResult(done=False, message=str(error))
            self._reloads[ReloadOutcome.SUCCESS] += 1
            message = f"reloaded; {changed} flow(s) started anew"
            if config.exporter.listen != before.exporter.listen:
                message += "; exporter.listen takes effect after a restart"
            logger.info(message)
            return ReloadResult(done=True, message=message)

    def _checked(self) -> Config:
        config = self._load()
        config.select(self._selected)
        return config
