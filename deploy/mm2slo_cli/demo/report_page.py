"""Runs the report service of the demo, with its own recorder and store."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mm2slo_cli.demo.optional_page import optional_page
from mm2slo_core.config import Listen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from mm2slo_cli.demo.demo_environment import DemoEnvironment
    from mm2slo_core.config import Config

# Shorter than in production (15 s and 30 s), since the demo is interactive.
_INTERVAL: Final = 5.0
_CACHE_SECONDS: Final = 2.0


def serve_report_page(environment: DemoEnvironment) -> AbstractContextManager[None]:
    """Serve the page for the exporter of *environment*, if the extra `report` is installed."""
    return optional_page(environment, "report", _run_service)


@contextmanager
def _run_service(environment: DemoEnvironment) -> Iterator[str]:
    from mm2slo_cli.report_serve import open_server

    folder = environment.lab.runtime.root / "report"
    folder.mkdir(exist_ok=True)
    store = f"sqlite:///{folder / 'results.db'}"
    loaded = _demo_config(environment.config, environment.url)
    with open_server(loaded, store, cache_seconds=_CACHE_SECONDS) as server:
        yield f"{server.url}/"


def _demo_config(config: Config, exporter: str) -> Config:
    recorder = config.report.recorder.model_copy(
        update={"exporters": (exporter,), "interval": _INTERVAL}
    )
    report = config.report.model_copy(
        update={"listen": Listen("127.0.0.1", 0), "recorder": recorder}
    )
    return config.model_copy(update={"report": report})
