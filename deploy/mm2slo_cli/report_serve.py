"""`mm2slo report serve`: the report service, with a recorder if no Prometheus is configured."""

from __future__ import annotations

import logging
import os
import socket
import ssl
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
    exporter_urls,
    minute_retention_seconds,
    now_ms,
    open_sources,
    open_store,
)
from mm2slo_cli.signals import Interrupted, interrupt_on_signals
from mm2slo_core.config import Listen
from mm2slo_core.user_errors import UserError
from mm2slo_exporter import log_output
from mm2slo_report.web.service_settings import (
    Settings,
    allowed_hosts,
    is_loopback,
    require_tokens_or_loopback,
)
from mm2slo_report.web.token_file import TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from uvicorn import Server

    from mm2slo_core.config import Config
    from mm2slo_report.recording.recorder import Recorder
    from mm2slo_report.sources.sli_source import SliSource
    from mm2slo_store import Store

logger = logging.getLogger(__name__)

HELP = (
    "Serve reports over HTTP: status page at /, API at /slo, reports at /slo/report.\n\n"
    "Reads history from the server in report.prometheus. If none is configured, the service "
    "scrapes the exporters itself and records their counters in the results store."
)
_BACKLOG = 512


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
    # The server handles signals while it runs, and re-raises them afterwards.
    with (
        interrupt_on_signals(),
        suppress(Interrupted),
        open_server(loaded, store) as (server, listening),
    ):
        scheme = "http" if loaded.report.tls is None else "https"
        logger.info("serving %s://%s/", scheme, listen_address(listening))
        server.run(sockets=[listening])


@contextmanager
def open_server(
    loaded: Config, store: str | None = None, *, cache_seconds: float | None = None
) -> Iterator[tuple[Server, socket.socket]]:
    """Create a server and its listening socket; everything is closed afterwards.

    *cache_seconds* overrides how long responses are cached. Raises UserError
    when the address is in use or a file cannot be read.
    """
    settings = create_settings(loaded)
    if cache_seconds is not None:
        settings = replace(settings, cache_seconds=cache_seconds)
    _check_tls(loaded)
    with ExitStack() as stack:
        listening = stack.enter_context(_open_socket(loaded.report.listen))
        results = stack.enter_context(open_store(loaded, store))
        recorder = None
        if loaded.report.prometheus is None:
            recorder = stack.enter_context(run_recorder(loaded, results))
        source, blocking = stack.enter_context(open_sources(loaded, results))
        rules = missing_rules(loaded, blocking)
        yield _server(loaded, results, settings, recorder, source, rules=rules), listening


def create_settings(loaded: Config) -> Settings:
    """Create the settings of the service. Raises UserError."""
    from mm2slo_report.rendering.references import References

    report, links = loaded.report, loaded.alerting.links
    tokens = None if report.tokens_file is None else TokenFile(report.tokens_file)
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
    recorder = Recorder(
        targets,
        results,
        now_ms,
        keep=minute_retention_seconds(loaded),
        lease=RecorderLease(results, holder, settings.interval),
    )
    with RecordingThread(recorder, now_ms, interval=settings.interval):
        yield recorder


def _server(
    loaded: Config,
    results: Store,
    settings: Settings,
    recorder: Recorder | None,
    source: SliSource,
    *,
    rules: Callable[[], Sequence[str]] | None,
) -> Server:
    with paused_gc():
        import uvicorn

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
    return uvicorn.Server(
        uvicorn.Config(
            create_app(service),
            log_config=None,
            access_log=False,
            server_header=False,
            # No decision depends on headers that clients can set.
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=5,
            ssl_certfile=None if report.tls is None else report.tls.cert_file,
            ssl_keyfile=None if report.tls is None else report.tls.key_file,
        )
    )


@contextmanager
def _open_socket(listen: Listen) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if listen.is_ipv6 else socket.AF_INET
    try:
        listener = socket.create_server(
            (listen.host, listen.port), family=family, backlog=_BACKLOG, reuse_port=False
        )
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        reason = str(error) if number is None or number < 0 else os.strerror(number)
        raise UserError(
            f"cannot listen on {listen}: {reason}; set report.listen to a free address"
        ) from None
    with listener:
        yield listener


def listen_address(listening: socket.socket) -> Listen:
    """Return the address of the socket, with the port that the system chose."""
    host, port = listening.getsockname()[:2]
    return Listen(host, port)


def _check_tls(loaded: Config) -> None:
    """Raise UserError for an unusable certificate or key before anything starts."""
    tls = loaded.report.tls
    if tls is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a callback, an encrypted key would prompt for a password.
        context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: b"")
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or "unusable"
        raise UserError(
            f"report.tls: {tls.cert_file!r} with {tls.key_file!r}: {reason}; expected a "
            "certificate and its key in PEM, not encrypted"
        ) from None


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
