"""`mm2slo report serve`: the report service, with a recorder if no Prometheus is configured."""

from __future__ import annotations

import logging
import socket
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from mm2slo_cli.config_files import load_source, log_findings
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.gc_pause import paused_gc
from mm2slo_cli.log_file import log_to_file
from mm2slo_cli.report_rules import missing_rules
from mm2slo_cli.report_sources import (
    create_reporter,
    create_source,
    exporter_urls,
    now_ms,
    open_store,
)
from mm2slo_cli.signals import Interrupted, interrupt_on_signals
from mm2slo_exporter import log_output
from mm2slo_report.web.service_settings import (
    Settings,
    allowed_hosts,
    is_loopback,
    require_tokens_or_loopback,
)
from mm2slo_report.web.token_file import TokenFile
from mm2slo_report.web.tokens import unmatched_patterns
from mm2slo_web.reloaded_access import OPEN, certificate_files
from mm2slo_web.web_config import TlsServerConfig
from mm2slo_web.web_server import WebServer, bind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.types import ASGIApp

    from mm2slo_core.config import Config
    from mm2slo_report.recording.recorder import Recorder
    from mm2slo_report.sources.sli_source import SliSource
    from mm2slo_store import Store
    from mm2slo_web.reloaded_access import Access

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
    from mm2slo_report.rendering.references import References

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
        from mm2slo_report.recording.recorder import Recorder
        from mm2slo_report.recording.recorder_lease import RecorderLease
        from mm2slo_report.recording.recording_thread import RecordingThread
        from mm2slo_report.recording.scraper import Target

    settings = loaded.report.recorder
    targets = [
        Target.at(each, token_file=_path(settings.token_file), ca_file=_path(settings.ca_file))
        for each in exporter_urls(loaded)
    ]
    holder = f"{socket.gethostname()}, {loaded.report.listen}"
    lease = RecorderLease(results, holder, settings.interval)
    recorder = Recorder(targets, results, now_ms, lease=lease)
    with RecordingThread(recorder, now_ms, interval=settings.interval):
        yield recorder


def _access(loaded: Config) -> Callable[[], Access]:
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
        from mm2slo_cli.report_maintenance import MaintenanceActions
        from mm2slo_report.web.app import create_app
        from mm2slo_report.web.flow_status import ExporterFlowStatus
        from mm2slo_report.web.metrics_fetcher import MetricsFetcher
        from mm2slo_report.web.report_service import ReportService

    report = loaded.report
    fetch = MetricsFetcher(_path(report.recorder.token_file), _path(report.recorder.ca_file))
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


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
