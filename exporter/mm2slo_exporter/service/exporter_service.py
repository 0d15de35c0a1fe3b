"""The exporter: reads flows in the background and holds the newest snapshot.

Several threads read; one evaluates the queued rounds, renders the reports and publishes the
snapshot; the web server's threads serve it.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.config.exporter_settings import RootSettings
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence, not_read
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.canary.canary_messages import LedgerState
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.exposition_family import ExpositionError, Family
from mm2slo_exporter.exposition_renderer import Renderer, Snapshot
from mm2slo_exporter.families.exporter_series import ExporterReport, ReloadOutcome
from mm2slo_exporter.families.family_composer import (
    SeriesCache,
    hide_other_groups,
    limited_families,
)
from mm2slo_exporter.flow_observation import InternalsView, Observation
from mm2slo_exporter.service.flow_manager import FlowManager
from mm2slo_exporter.service.flow_runner import FlowRunner
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_exporter.web.flow_overview import (
    ExporterReadiness,
    FlowOverview,
    FlowReadiness,
    ReloadResult,
)
from mm2slo_web.service_telemetry import process_series

logger = logging.getLogger(__name__)


class Exporter:
    """The service behind the web server (its `Site`)."""

    def __init__(
        self,
        load: Callable[[], RootSettings],
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
        self.health = CollectionHealth(clock)
        self._reloads = {ReloadOutcome.SUCCESS: 0, ReloadOutcome.FAILURE: 0}
        self._reload_lock = threading.Lock()
        rounds = RoundQueue()
        self._flows = FlowManager(config, self._selected, self.health, rounds.put, clock)
        self._publisher = SnapshotPublisher(
            self._flows, self.health, self._reloads, rounds, version=version, clock=clock
        )
        self._evaluation = Evaluator(rounds, self._flows, self._publisher, self.health)

    @property
    def config(self) -> RootSettings:
        return self._flows.config

    def start(self) -> None:
        self._flows.open()
        self._publisher.publish()
        self._evaluation.start()

    def stop(self) -> None:
        self._evaluation.stop()
        with self._reload_lock:
            self._flows.close()

    # Site

    def snapshot(self) -> Snapshot:
        return self._publisher.current()

    def readiness(self) -> ExporterReadiness:
        flows = tuple(flow_readiness(report, self.health) for report in self.reports())
        ready = bool(flows) and all(flow.ready for flow in flows)
        return ExporterReadiness(ready, flows, self._flows.stale_flows())

    def overview(self) -> tuple[FlowOverview, ...]:
        """The flows, for the HTML page."""
        return tuple(flow_overview(report) for report in self.reports())

    def reports(self) -> list[FlowReport]:
        return self._flows.reports()

    def cutover_evidence(self, slug: str) -> CutoverEvidence | None:
        """What a cutover of a flow depends on; None before a round. KeyError: unknown flow."""
        runners = {runner.flow.flow.slug: runner for runner in self._flows.running()}
        runner = runners[slug]
        evidence = runner.cutover.evidence()
        if runner.flow.label in self._flows.stale_flows():
            return not_read(runner.flow.flow, runner.report.at)
        return evidence

    def internals(self, flow: Flow) -> InternalsView:
        """What MirrorMaker 2's internal topics contain of *flow*. KeyError: unknown flow."""
        return {each.flow.flow: each for each in self._flows.running()}[flow].internals()

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

    def _checked(self) -> RootSettings:
        config = self._load()
        config.select(self._selected)
        return config


_VITAL = (CollectionStage.TOPICS, CollectionStage.END_OFFSETS)


def flow_readiness(report: FlowReport, health: CollectionHealth) -> FlowReadiness:
    """Ready once everything was read, or when a cluster is unreachable."""
    flow = report.flow
    if report.ready:
        return FlowReadiness(flow, ready=True)
    unreachable = tuple(
        f"cluster {alias}: {reason}"
        for alias in (flow.source, flow.target)
        for stage, reason in health.failing_stages(alias).items()
        if stage in _VITAL
    )
    return FlowReadiness(
        flow, ready=bool(unreachable), waiting_for=(*report.waiting_for, *unreachable)
    )


def flow_overview(report: FlowReport) -> FlowOverview:
    return FlowOverview(
        flow=report.flow,
        state=report.state.value,
        reason=str(report.state_reason),
        ready=report.ready,
        lag_records=report.lag_records,
        lag_seconds=report.lag_seconds,
        stalled_partitions=len(report.stalled),
        groups_ready=sum(group.readiness.ready for group in report.groups),
        groups=len(report.groups),
        unjudged=(
            ("excluded", report.unjudged_groups.excluded),
            ("without commits", report.unjudged_groups.without_commits),
        ),
        group_types_known=report.unjudged_groups.all_types,
    )


_TICK_SECONDS = 0.2
_STOP_SECONDS = 30.0

_TRIM_SECONDS = 60.0
"""Not after each cycle: allocating the memory again costs page faults."""


class Evaluator:
    """Evaluates queued observations in one thread, then renders once."""

    def __init__(
        self,
        rounds: RoundQueue,
        flows: FlowManager,
        publisher: SnapshotPublisher,
        health: CollectionHealth,
    ) -> None:
        self._rounds = rounds
        self._flows = flows
        self._publisher = publisher
        self._trim_at = 0.0
        self._health = health
        self._stopping = threading.Event()
        self._thread = SupervisedThread(
            Loop.EVALUATE, "", self._run, self._stopping, health.record_loop_failure
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current cycle."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.run_cycle(_TICK_SECONDS)

    def run_cycle(self, timeout: float) -> None:
        """Evaluate queued observations; waits up to *timeout* seconds for the first."""
        self._flows.take_canary_events()
        if (scraped := self._publisher.take_scraped()) is not None:
            self._flows.send_ledger_states(scraped)
        observations = self._rounds.take(timeout)
        if not observations:
            return
        started = time.perf_counter()
        for runner, observation in observations:
            self._evaluate(runner, observation)
        self._publisher.publish()
        self._publisher.cycle_seconds = time.perf_counter() - started
        if time.monotonic() >= self._trim_at:
            self._trim_at = time.monotonic() + _TRIM_SECONDS
            gc.collect(1)
            return_free_memory()

    def _evaluate(self, runner: FlowRunner, observation: Observation) -> None:
        """Evaluate one observation. A failure does not affect other flows."""
        try:
            runner.evaluate(observation)
        except Exception:
            runner.report = runner.report.not_evaluated()
            self._health.record_loop_failure(Loop.EVALUATE)
            logger.exception(
                "evaluating flow %s failed; its state is unknown until it succeeds; "
                "report this bug with the traceback below",
                runner.flow.label,
                extra={"flow": runner.flow.label},
            )


class RoundQueue:
    """Holds the newest observation of each flow: evaluating slowly must not delay it further."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[FlowRunner, Observation] = {}
        self._skipped: Counter[Flow] = Counter()

    def put(self, runner: FlowRunner, observation: Observation) -> bool:
        """Add one observation, in place of one that still waits; True if there was one."""
        with self._changed:
            before = self._waiting.get(runner)
            if before is not None:
                observation = observation.in_place_of(before)
                self._skipped[runner.flow.flow] += 1
            self._waiting[runner] = observation
            self._changed.notify()
        return before is not None

    def take(self, timeout: float) -> list[tuple[FlowRunner, Observation]]:
        """All waiting observations; waits up to *timeout* seconds for the first."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting), timeout)
            observations, self._waiting = list(self._waiting.items()), {}
        return observations

    def skipped(self, flow: Flow) -> int:
        """How many rounds of *flow* were not evaluated."""
        return self._skipped[flow]


class SnapshotPublisher:
    """Holds the newest snapshot; `publish` replaces it, `current` is what a scrape gets."""

    def __init__(
        self,
        flows: FlowManager,
        health: CollectionHealth,
        reloads: Mapping[ReloadOutcome, int],
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
            # What a canary carries must have been scraped: a restarted process counts on from it,
            # and events that Prometheus never saw would be missing. Before the snapshot, which may
            # be replaced meanwhile: the state is then older than the snapshot, never newer.
            self._scraped = self._settled
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


def return_free_memory() -> bool:
    """Call `malloc_trim`; False where the C library does not have it (only glibc does).

    glibc has one heap per thread and returns only the free top of each. With 10,000 partitions,
    80 of 300 MB resident memory were free pages below the top. A call takes 3 to 6 ms, and causes
    some 150 ms of page faults in the next cycle, which allocates most of the memory again.
    """
    trim = _malloc_trim()
    return trim is not None and bool(trim(0))


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    function: Callable[[int], int] = trim
    return function
