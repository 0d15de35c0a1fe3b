"""`mm2slo report serve`: the report service, with a recorder if no Prometheus is configured.

It checks that Prometheus has loaded the generated rules, and applies exclusions as `mm2slo
exclude` does.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from mm2slo_cli.config_files import load_source, log_findings
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.exclusion_effects import (
    EffectSteps,
    ExclusionTargets,
    MonitoringApi,
    add_silence,
    apply_exclusions,
    expire_silence,
    silence_obstacle,
)
from mm2slo_cli.gc_pause import paused_gc
from mm2slo_cli.option_values import now_ms
from mm2slo_cli.report_sources import (
    create_reporter,
    create_source,
    exporter_urls,
    open_store,
    optional_path,
)
from mm2slo_cli.service_process import (
    Interrupted,
    interrupt_on_signals,
    log_to_file,
    notify_ready,
)
from mm2slo_core.config.config_model import Config
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_exporter import log_output
from mm2slo_report.access_tokens import TokenFile, unmatched_patterns
from mm2slo_report.service_settings import (
    Settings,
    allowed_hosts,
    is_loopback,
    require_tokens_or_loopback,
)
from mm2slo_report.sli_source import SliSource
from mm2slo_store.store import Store
from mm2slo_web.access_files import certificate_files
from mm2slo_web.web_access import OPEN, WebAccess
from mm2slo_web.web_config import TlsServerConfig
from mm2slo_web.web_server import WebServer, bind

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from mm2slo_report.recording.recorder import Recorder


logger = logging.getLogger(__name__)

HELP = (
    "Serve reports over HTTP: status page at /, API at /slo, reports at /slo/report.\n\n"
    "Reads history from the server in report.prometheus. If none is configured, the service "
    "scrapes the exporters itself and records their counters in the results store."
)


@config_options()
def serve(
    *,
    source: ConfigSource,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Results store; overrides audit.store.")
    ] = None,
) -> None:
    """Serve until SIGINT or SIGTERM."""
    loaded, findings = load_source(source)
    log_output.configure_logging(loaded.report.log, "repl-api")
    log_to_file("repl-api")
    log_findings(findings)
    # Logs its plugins at each start.
    logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)
    with interrupt_on_signals(), suppress(Interrupted), open_server(loaded, store) as server:
        logger.info("serving %s/", server.url)
        notify_ready()
        server.wait()


@contextmanager
def open_server(
    loaded: Config, store: str | None = None, *, cache_seconds: float | None = None
) -> Iterator[WebServer]:
    """Run the server; everything is closed afterwards.

    *cache_seconds* overrides how long responses are cached. Raises UserError
    when the address is in use or a file cannot be read.
    """
    settings = create_settings(loaded)
    if cache_seconds is not None:
        settings = replace(settings, cache_seconds=cache_seconds)
    access = _access(loaded)
    with ExitStack() as stack:
        bound = stack.enter_context(bind(loaded.report.listen, "report.listen"))
        results = stack.enter_context(open_store(loaded, store))
        recorder = None
        if loaded.report.prometheus is None:
            recorder = stack.enter_context(run_recorder(loaded, results))
        source = create_source(loaded, results)
        rules = missing_rules(loaded, source)
        app = _app(loaded, results, settings, recorder, source, rules=rules)
        yield stack.enter_context(WebServer(app, bound, access))


def create_settings(loaded: Config) -> Settings:
    """Create the settings of the service. Raises UserError."""
    from mm2slo_report.service_settings import References

    report, links = loaded.report, loaded.alerting.links
    tokens = None if report.tokens_file is None else TokenFile(report.tokens_file)
    for warning in unmatched_patterns(
        tokens.valid if tokens else (), [each.flow for each in loaded.flows]
    ):
        logger.warning("%s", warning)
    require_tokens_or_loopback(report.listen.host, tokens)
    named = [*report.hosts, *([urlsplit(links.report).hostname or ""] if links.report else [])]
    own = (socket.gethostname(), socket.getfqdn()) if not is_loopback(report.listen.host) else ()
    return Settings(
        version=version("mm2slo"),
        tokens=tokens,
        hosts=allowed_hosts(report.listen.host, named, own),
        any_address=not is_loopback(report.listen.host),
        tls=report.tls is not None,
        reports_per_minute=report.reports_per_minute,
        references=References(
            dashboard=links.dashboard,
            runbook=links.runbook,
            prometheus=links.prometheus,
            splunk=links.splunk,
        ),
    )


@contextmanager
def run_recorder(loaded: Config, results: Store) -> Iterator[Recorder]:
    """Run the recorder; of several services with one store, one records."""
    with paused_gc():
        from mm2slo_report.recording.exporter_scraper import ScrapeTarget
        from mm2slo_report.recording.recorder import Recorder, RecordingThread
        from mm2slo_report.recording.recorder_history import RecorderLease

    settings = loaded.report.recorder
    token_file, ca_file = optional_path(settings.token_file), optional_path(settings.ca_file)
    targets = [
        ScrapeTarget.at(each, token_file=token_file, ca_file=ca_file)
        for each in exporter_urls(loaded)
    ]
    holder = f"{socket.gethostname()}, {loaded.report.listen}"
    lease = RecorderLease(results, holder, settings.interval)
    recorder = Recorder(targets, results, now_ms, lease=lease)
    with RecordingThread(recorder, now_ms, interval=settings.interval):
        yield recorder


def _access(loaded: Config) -> Callable[[], WebAccess]:
    tls = loaded.report.tls
    if tls is None:
        return lambda: OPEN
    return certificate_files(
        TlsServerConfig(cert_file=tls.cert_file, key_file=tls.key_file)
    ).current


def _app(
    loaded: Config,
    results: Store,
    settings: Settings,
    recorder: Recorder | None,
    source: SliSource,
    *,
    rules: Callable[[], Sequence[str]] | None,
) -> ASGIApp:
    with paused_gc():
        from mm2slo_report.http_session import ExporterFetcher
        from mm2slo_report.web.flow_status import ExporterFlowStatus
        from mm2slo_report.web.report_app import create_app
        from mm2slo_report.web.report_service import ReportService

    report = loaded.report
    fetch = ExporterFetcher(
        optional_path(report.recorder.token_file), optional_path(report.recorder.ca_file)
    )
    service = ReportService(
        create_reporter(loaded, results, source),
        results,
        settings,
        ExporterFlowStatus(exporter_urls(loaded), fetch),
        recorder,
        maintenance=MaintenanceActions(loaded, results),
        missing_rules=rules,
    )
    return create_app(service)


_HINT: Final = "set alerting.links.prometheus"

RULES_NOT_WRITTEN: Final = (
    "burn rules are unchanged: run mm2slo exclude write where Prometheus reads its rule files, "
    "or set alerting.maintenance.rules_file"
)


class MaintenanceActions:
    """Implements `Maintenance` of the report service. Raises UserError for an invalid URL.

    Rules are written only if the configuration names a rule file: the service may run on another
    machine than Prometheus.
    """

    def __init__(self, loaded: Config, results: Store) -> None:
        alerting = loaded.alerting
        address = alerting.links.prometheus
        self._targets = ExclusionTargets.of(
            loaded,
            prometheus=None
            if address is None
            else MonitoringApi.of("Prometheus", "alerting.links.prometheus", address),
        )
        self._writes_rules = "rules_file" in alerting.maintenance.model_fields_set
        self._silences = alerting.maintenance.silence
        self._results = results

    def silence_problem(self, new: Exclusion, now: int, *, requested: bool | None) -> str:
        """Return why *new* cannot be silenced, or "" if it can or is not *requested* to be."""
        return silence_obstacle(self._targets, new, now) if requested else ""

    def apply_added(
        self, new: Exclusion, now: int, *, silence: bool | None
    ) -> tuple[Exclusion, EffectSteps]:
        """Create the silence if wanted, then write the rules."""
        steps = EffectSteps()
        if self._silences if silence is None else silence:
            reason = silence_obstacle(self._targets, new, now)
            if reason:
                steps.problems.append(f"no silence was created: it {reason}")
            else:
                new = add_silence(self._results, self._targets, new, steps)
        self._write_rules(now, steps)
        return new, steps

    def apply_removed(self, removed: Exclusion, now: int) -> EffectSteps:
        """Expire the silence, then write the rules."""
        steps = EffectSteps()
        expire_silence(removed, self._targets, now, steps)
        self._write_rules(now, steps)
        return steps

    def _write_rules(self, now: int, steps: EffectSteps) -> None:
        if self._writes_rules:
            apply_exclusions(self._results, self._targets, now, steps, hint=_HINT)
        else:
            steps.problems.append(RULES_NOT_WRITTEN)


def missing_rules(loaded: Config, source: SliSource) -> Callable[[], Sequence[str]] | None:
    """Return a function that lists missing rule groups; None if *source* is not Prometheus."""
    from mm2slo_report.prometheus_source import PrometheusSource

    if not isinstance(source, PrometheusSource):
        return None
    names = cache(lambda: expected_groups(loaded))
    return lambda: source.rules_problems(names())


def expected_groups(loaded: Config) -> tuple[str, ...]:
    """Return the names of the groups that `mm2slo alerts generate` writes for *loaded*."""
    # Only readiness needs these; importing them would slow down the start.
    from mm2slo_alerts import recording_rules
    from mm2slo_alerts.alert_files import alert_groups
    from mm2slo_alerts.alert_rules import PRODUCTION

    recorded = recording_rules.recording_groups(loaded.objective_rules, PRODUCTION)
    alerts = alert_groups(loaded.alerting.links)
    return tuple(dict.fromkeys(each.name for each in (*recorded, *alerts)))
