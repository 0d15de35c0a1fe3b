"""Opens what reports are made from: objectives, history, the results store."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from mm2slo_report.reporter import Reporter
from mm2slo_report.stored_facts import StoreFacts
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config import Config
    from mm2slo_core.config.report_config import PrometheusConfig
    from mm2slo_report.sources.prometheus import PrometheusSource
    from mm2slo_report.sources.sli_source import SliSource


def now_ms() -> int:
    """Return the current time in epoch ms."""
    return time.time_ns() // 1_000_000


@contextmanager
def open_store(loaded: Config, store: str | None = None) -> Iterator[Store]:
    """Open the results store of the configuration, or *store*. Raises UserError."""
    with Store.open(store or loaded.audit.store.reveal(), clock=now_ms) as results:
        yield results


def create_reporter(loaded: Config, results: Store, source: SliSource | None = None) -> Reporter:
    """Create a reporter on all objectives of the configuration, reading from *source*."""
    return Reporter(
        objectives=loaded.objectives,
        source=source or create_source(loaded, results),
        facts=StoreFacts(results),
        zone=ZoneInfo(loaded.report.zone),
        clock=now_ms,
    )


def create_source(loaded: Config, results: Store) -> SliSource:
    """Create the source of history: Prometheus if configured, else the recorder's history."""
    named = loaded.report.prometheus
    if named is not None:
        return _prometheus(named)
    from mm2slo_report.sources.recorder_source import RecorderSource

    return RecorderSource(results)


def _prometheus(named: PrometheusConfig) -> PrometheusSource:
    from mm2slo_report.http_session import Server
    from mm2slo_report.sources.prometheus import PrometheusClient, PrometheusSource

    server = Server(url=named.url, token_file=_path(named.token_file), ca_file=_path(named.ca_file))
    return PrometheusSource(PrometheusClient(server, timeout=named.timeout), clock=now_ms)


def exporter_urls(loaded: Config) -> tuple[str, ...]:
    """Return the base URLs of the exporters."""
    return loaded.report.recorder.exporters or (f"http://{loaded.exporter.listen.local}",)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
