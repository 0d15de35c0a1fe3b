"""`mm2slo exporter`: runs the exporter until a signal stops it."""

import gc
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mm2slo_cli.service_process import log_to_file, notify_ready
from mm2slo_cli.settings_process import FirstReading, Reading, read_again
from mm2slo_core.config.exporter_settings import CanaryCarrier, RootSettings
from mm2slo_core.user_errors import UserError
from mm2slo_exporter import log_output
from mm2slo_exporter.service.exporter_service import Exporter
from mm2slo_exporter.web.exporter_app import exporter_server
from mm2slo_web.web_access import ReloadedAccess
from mm2slo_web.web_server import WebServer

logger = logging.getLogger(__name__)


@contextmanager
def run_exporter(
    load: Callable[[], RootSettings], flows: Sequence[str] = (), version: str | None = None
) -> Iterator[tuple[Exporter, WebServer]]:
    """Run an exporter and its web server.

    *version* is that of mm2slo; looking it up takes 4 MB. The port is bound before anything else:
    raises UserError at once if it is in use.
    """
    if version is None:
        from importlib import metadata

        version = metadata.version("mm2slo")
    configure_interpreter()
    exporter = Exporter(load, flows=flows, version=version)
    settings = exporter.config.exporter
    named = settings.web_config_file
    web = None if named is None else _web_config(named)
    server = exporter_server(settings.listen, exporter, web)
    if written := written_topics(exporter.config):
        logger.info("writes to the clusters: %s", "; ".join(written))
    try:
        exporter.start()
        server.start()
        yield exporter, server
    finally:
        server.close()
        exporter.stop()


def _web_config(path: str) -> ReloadedAccess:
    from mm2slo_web.access_files import web_config_file  # and the models of the configuration

    return web_config_file(Path(path))


def written_topics(config: RootSettings) -> list[str]:
    """What the exporter writes to clusters, a part of a sentence each."""
    exporter, found = config.exporter, []
    if exporter.read_only:
        return []
    for flow in config.flows:
        carrier = exporter.carrier(flow.canary)
        if carrier is not CanaryCarrier.OFF:
            topic = flow.canary.topic if carrier is CanaryCarrier.TOPIC else "heartbeats"
            found.append(f"canaries to {topic} on {flow.flow.source}")
    topics = [exporter.state.topic]
    if exporter.timeline.enabled:
        topics.append(exporter.timeline.topic)
        topics += [exporter.timeline.arrivals_topic] * exporter.timeline.arrivals
    targets = ", ".join(dict.fromkeys(flow.flow.target for flow in config.flows))
    return [*dict.fromkeys(found), f"{', '.join(topics)}, which it creates, on {targets}"]


def run(first: FirstReading) -> int:
    """Serve with the configuration of *first*; returns the exit code."""
    try:
        serve(first.result())
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def serve(reading: Reading) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP reloads the configuration.

    Raises UserError.
    """
    log_output.configure_logging(reading.settings.exporter.log)
    log_to_file("repl-exporter")
    logged: set[tuple[int, str]] = set()
    unused: list[Reading] = [reading]

    def load() -> RootSettings:
        newest = unused.pop() if unused else read_again(reading)
        for level, text in newest.findings:
            if (level, text) not in logged:
                logger.log(level, "%s", text)
        logged.update(newest.findings)
        return newest.settings

    stopping, reloading = threading.Event(), threading.Event()

    def on_signal(number: int, _frame: object) -> None:
        (reloading if number == signal.SIGHUP else stopping).set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    with run_exporter(load, reading.flows, reading.version) as (exporter, server):
        logger.info("serving %s/metrics", server.url)
        notify_ready()
        while not stopping.is_set():
            server.wait(0.2)
            if reloading.is_set():
                reloading.clear()
                exporter.reload()
        logger.info("stopping")


def configure_interpreter() -> None:
    """Collect garbage rarely, and let threads take turns often.

    A round frees what it replaces by reference counts: collections took 15 to 25 % of its CPU,
    and full ones stop all threads. With 10,000 moving partitions, a round has 200,000 objects.
    `Evaluator` collects the cycles of web requests once a minute. A scrape changes threads several
    times, and by default waits up to 5 ms for each (tests/benchmarks/bench_scrape_latency.py).
    """
    gc.set_threshold(300_000, 20, 50)
    sys.setswitchinterval(0.001)
