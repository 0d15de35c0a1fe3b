"""The demo's page: the report service beside the stage, with a recorder and a store of its own."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from mm2slo_core.config import Listen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_cli.demo.stage import Stage
    from mm2slo_core.config import Config

# A person watches: production scrapes every 15 s and shows a page for half a minute.
_INTERVAL: Final = 5.0
_KEPT: Final = 2.0


@contextmanager
def reported(stage: Stage) -> Iterator[None]:
    """Serve the page for the exporter of *stage*; its address is among those beside the stage.

    Without the extra `report` there is neither.
    """
    with ExitStack() as everything:
        with suppress(ModuleNotFoundError):
            stage.beside["report"] = everything.enter_context(_serving(stage))
        yield


@contextmanager
def _serving(stage: Stage) -> Iterator[str]:
    from mm2slo_cli.report_serve import address, serving

    folder = stage.lab.runtime.root / "report"
    folder.mkdir(exist_ok=True)
    store = f"sqlite:///{folder / 'results.db'}"
    with serving(_beside(stage.config, stage.url), store, kept=_KEPT) as (server, bound):
        # Who asks before it runs is answered as soon as it does: the port takes calls already.
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [bound]}, name="demo-report", daemon=True
        )
        thread.start()
        try:
            yield f"http://{address(bound)}/"
        finally:
            server.should_exit = True
            thread.join()


def _beside(config: Config, exporter: str) -> Config:
    recorder = config.report.recorder.model_copy(
        update={"exporters": (exporter,), "interval": _INTERVAL}
    )
    report = config.report.model_copy(
        update={"listen": Listen("127.0.0.1", 0), "recorder": recorder}
    )
    return config.model_copy(update={"report": report})
