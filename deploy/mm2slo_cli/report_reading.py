"""Where reports come from by a configuration: objectives, history, the results store."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from mm2slo_core.objectives import DEFAULT_WINDOW
from mm2slo_report.ledger import StoreLedger
from mm2slo_report.recording.recorder import kept_for
from mm2slo_report.reporting import Reporter
from mm2slo_store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config import Config
    from mm2slo_core.config.report import PrometheusConfig
    from mm2slo_report.sources.port import SliSource
    from mm2slo_report.sources.prometheus import PrometheusSource

_BACK = 7 * 86_400.0
"""Seconds: how far back people ask for what was without waiting for it to be read."""


def now_ms() -> int:
    """Epoch ms."""
    return time.time_ns() // 1_000_000


@contextmanager
def opened(loaded: Config, store: str | None = None) -> Iterator[Store]:
    """The results store of the configuration, or *store*. Raises UserError."""
    with Store.open(store or loaded.audit.store.reveal(), clock=now_ms) as results:
        yield results


def reporting(loaded: Config, results: Store, source: SliSource | None = None) -> Reporter:
    """Reports on every objective of the configuration; by *source* if there is one already."""
    return Reporter(
        objectives=loaded.objectives,
        source=source or source_of(loaded, results),
        ledger=StoreLedger(results),
        zone=ZoneInfo(loaded.report.zone),
        clock=now_ms,
    )


def source_of(loaded: Config, results: Store) -> SliSource:
    """Prometheus where one is named, else what the recorder keeps in the store."""
    named = loaded.report.prometheus
    if named is not None:
        return _prometheus(named)
    from mm2slo_report.sources.recorder import RecorderSource

    return RecorderSource(results, keep=kept_seconds(loaded))


@contextmanager
def sources(loaded: Config, results: Store) -> Iterator[tuple[SliSource, SliSource]]:
    """One that never lets a reader wait for history to be read, and one that does.

    The history of a Prometheus is read meanwhile, once for both.
    """
    named = loaded.report.prometheus
    if named is None:
        kept = source_of(loaded, results)
        yield kept, kept
        return
    from mm2slo_report.sources.ahead import ReadAhead

    waiting = _prometheus(named)
    # A list compares with the period before.
    with ReadAhead(waiting, 2 * _longest_window(loaded) + _BACK) as ahead:
        yield ahead, waiting


def _prometheus(named: PrometheusConfig) -> PrometheusSource:
    from mm2slo_report.sources.prometheus import (
        PrometheusClient,
        PrometheusSource,
        Server,
    )

    server = Server(url=named.url, token_file=_path(named.token_file), ca_file=_path(named.ca_file))
    return PrometheusSource(PrometheusClient(server, timeout=named.timeout), clock=now_ms)


def kept_seconds(loaded: Config) -> float:
    """How long the recorder keeps history by the minute."""
    return kept_for(_longest_window(loaded))


def exporters_of(loaded: Config) -> tuple[str, ...]:
    """Base addresses of the exporters."""
    listen = loaded.exporter.listen
    host = listen.host if listen.host not in {"", "0.0.0.0", "::"} else "127.0.0.1"  # noqa: S104 - compared, not bound
    shown = f"[{host}]" if ":" in host else host
    return loaded.report.recorder.exporters or (f"http://{shown}:{listen.port}",)


def _longest_window(loaded: Config) -> float:
    return max((each.window for each in loaded.objectives), default=DEFAULT_WINDOW)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
