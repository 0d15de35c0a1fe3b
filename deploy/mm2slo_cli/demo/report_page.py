"""Runs the report service of the demo, with its own recorder and store."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from mm2slo_core.config import Listen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_cli.demo.demo_environment import DemoEnvironment
    from mm2slo_core.config import Config

# Shorter than in production (15 s and 30 s), since the demo is interactive.
_INTERVAL: Final = 5.0
_CACHE_SECONDS: Final = 2.0


@contextmanager
def serve_report_page(environment: DemoEnvironment) -> Iterator[None]:
    """Serve the page for the exporter of *environment*, and add its URL to `extra_urls`.

    Does nothing if the extra `report` is not installed.
    """
    with ExitStack() as resources:
        with suppress(ModuleNotFoundError):
            environment.extra_urls["report"] = resources.enter_context(_run_service(environment))
        yield


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
