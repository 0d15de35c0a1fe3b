"""Opens what reports are made from: objectives, history, the results store."""

from contextlib import AbstractContextManager
from pathlib import Path
from zoneinfo import ZoneInfo

from mm2slo_cli.option_values import now_ms
from mm2slo_core.config.config_model import Config
from mm2slo_report.prometheus_source import PrometheusSource
from mm2slo_report.reporter import Reporter, StoreFacts
from mm2slo_report.sli_source import SliSource
from mm2slo_store.store import Store


def open_store(loaded: Config, store: str | None = None) -> AbstractContextManager[Store]:
    """Open the results store of the configuration, or *store*. Raises UserError."""
    return Store.open(store or loaded.audit.store.reveal(), clock=now_ms)


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
    if named is None:
        from mm2slo_report.recording.recorder_history import RecorderSource

        return RecorderSource(results)
    from mm2slo_report.http_session import Server
    from mm2slo_report.prometheus_api import PrometheusClient

    server = Server(
        url=named.url,
        token_file=optional_path(named.token_file),
        ca_file=optional_path(named.ca_file),
    )
    client = PrometheusClient(server, timeout=named.timeout)
    return PrometheusSource(client, namespace=loaded.alerting.namespace, clock=now_ms)


def exporter_urls(loaded: Config) -> tuple[str, ...]:
    """Return the base URLs of the exporters."""
    return loaded.report.recorder.exporters or (f"http://{loaded.exporter.listen.local}",)


def optional_path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
