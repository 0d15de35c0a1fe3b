"""`mm2slo report serve`: the report service, with the recorder where there is no Prometheus."""

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

from mm2slo_cli.config_files import read_config
from mm2slo_cli.ending import Told, told_by_signals
from mm2slo_cli.loading import loading
from mm2slo_cli.report_reading import (
    exporters_of,
    kept_seconds,
    now_ms,
    opened,
    reporting,
    sources,
)
from mm2slo_cli.report_rules import missing_rules
from mm2slo_core.config import Listen
from mm2slo_core.user_errors import UserError
from mm2slo_exporter import logs
from mm2slo_report.web.settings import Settings, hosts_of, is_loopback, refuse_open
from mm2slo_report.web.token_file import TokenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from uvicorn import Server

    from mm2slo_core.config import Config
    from mm2slo_report.recording.recorder import Recorder
    from mm2slo_report.sources.port import SliSource
    from mm2slo_store import Store

logger = logging.getLogger(__name__)

HELP = (
    "Answer for the objectives: a page at /, JSON at /slo, reports at /slo/report.\n\n"
    "Figures come from `report.prometheus`; where none is named, this service records the "
    "exporters' counters itself, in the results store."
)
_BACKLOG = 512


def serve(
    *,
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The mm2slo.yaml.")],
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Results store, not `audit.store`.")
    ] = None,
) -> None:
    """Serve until SIGINT or SIGTERM."""
    loaded = read_config(config)
    logs.set_up(loaded.report.log)
    # Of each start it tells what it is made of.
    logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)
    # The server takes signals while it runs, and hands them on when it has ended.
    with told_by_signals(), suppress(Told), serving(loaded, store) as (server, listening):
        scheme = "http" if loaded.report.tls is None else "https"
        logger.info("serving %s://%s/", scheme, address(listening))
        server.run(sockets=[listening])


@contextmanager
def serving(
    loaded: Config, store: str | None = None, *, kept: float | None = None
) -> Iterator[tuple[Server, socket.socket]]:
    """A server that is ready to run, and what it listens on; all is ended on the way out.

    *kept*: seconds for which an answer is shown again, if not as many as usual. Raises UserError
    for what cannot be served: an address in use, files that cannot be read.
    """
    settings = settings_of(loaded)
    if kept is not None:
        settings = replace(settings, kept_seconds=kept)
    _check_tls(loaded)
    with ExitStack() as stack:
        listening = stack.enter_context(_listening(loaded.report.listen))
        results = stack.enter_context(opened(loaded, store))
        recorder = None
        if loaded.report.prometheus is None:
            recorder = stack.enter_context(recording(loaded, results))
        source, waiting = stack.enter_context(sources(loaded, results))
        rules = missing_rules(loaded, waiting)
        yield _server(loaded, results, settings, recorder, source, rules=rules), listening


def settings_of(loaded: Config) -> Settings:
    """What the service is told. Raises UserError."""
    from mm2slo_report.rendering.references import References

    report, links = loaded.report, loaded.alerting.links
    tokens = None if report.tokens_file is None else TokenFile(report.tokens_file)
    refuse_open(report.listen.host, tokens)
    named = [*report.hosts, *([urlsplit(links.report).hostname or ""] if links.report else [])]
    own = (socket.gethostname(), socket.getfqdn()) if not is_loopback(report.listen.host) else ()
    return Settings(
        version=version("mm2slo"),
        tokens=tokens,
        hosts=hosts_of(report.listen.host, named, own),
        any_address=not is_loopback(report.listen.host),
        tls=report.tls is not None,
        reports_per_minute=report.reports_per_minute,
        references=References(
            dashboard=links.dashboard, runbook=links.runbook, prometheus=links.prometheus
        ),
    )


@contextmanager
def recording(loaded: Config, results: Store) -> Iterator[Recorder]:
    """Record the exporters' counters meanwhile; of several services on one store, one does."""
    with loading():
        from mm2slo_report.recording.duty import Duty
        from mm2slo_report.recording.recorder import Recorder
        from mm2slo_report.recording.scraping import Target
        from mm2slo_report.recording.service import RecordingThread

    settings = loaded.report.recorder
    targets = [
        Target.at(each, token_file=_path(settings.token_file), ca_file=_path(settings.ca_file))
        for each in exporters_of(loaded)
    ]
    holder = f"{socket.gethostname()}, {loaded.report.listen}"
    recorder = Recorder(
        targets,
        results,
        now_ms,
        keep=kept_seconds(loaded),
        duty=Duty(results, holder, settings.interval),
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
    with loading():
        import uvicorn

        from mm2slo_cli.report_maintenance import InForce
        from mm2slo_report.web.app import create_app
        from mm2slo_report.web.fetching import Fetcher
        from mm2slo_report.web.service import Service
        from mm2slo_report.web.surroundings import ExporterSurroundings

    report = loaded.report
    fetch = Fetcher(_path(report.recorder.token_file), _path(report.recorder.ca_file))
    service = Service(
        reporting(loaded, results, source),
        results,
        settings,
        ExporterSurroundings(exporters_of(loaded), fetch),
        recorder,
        maintenance=InForce(loaded, results),
        missing_rules=rules,
    )
    return uvicorn.Server(
        uvicorn.Config(
            create_app(service),
            log_config=None,
            access_log=False,
            server_header=False,
            # What a client says of itself decides nothing here.
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=5,
            ssl_certfile=None if report.tls is None else report.tls.cert_file,
            ssl_keyfile=None if report.tls is None else report.tls.key_file,
        )
    )


@contextmanager
def _listening(listen: Listen) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if listen.is_ipv6 else socket.AF_INET
    try:
        made = socket.create_server(
            (listen.host, listen.port), family=family, backlog=_BACKLOG, reuse_port=False
        )
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        reason = str(error) if number is None or number < 0 else os.strerror(number)
        raise UserError(
            f"cannot listen on {listen}: {reason}; set report.listen to an address that is free"
        ) from None
    with made:
        yield made


def address(listening: socket.socket) -> Listen:
    """Where it listens, with the port that the system chose."""
    host, port = listening.getsockname()[:2]
    return Listen(host, port)


def _check_tls(loaded: Config) -> None:
    """Raise UserError for a certificate or a key that cannot be used, before anything starts."""
    tls = loaded.report.tls
    if tls is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A password is refused: nobody is there to type one.
        context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: b"")
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or "it cannot be used"
        raise UserError(
            f"report.tls: {tls.cert_file!r} with {tls.key_file!r}: {reason}; expected a "
            "certificate and its key in PEM, not encrypted"
        ) from None


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
