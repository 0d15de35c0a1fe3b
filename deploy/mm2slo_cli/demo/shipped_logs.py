"""Ships the logs of the demo to a stand-in for Splunk that shows the newest events."""

from __future__ import annotations

import json
import secrets
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mm2slo_cli.demo.hec_stub import hec_stub
from mm2slo_cli.demo.optional_page import optional_page
from mm2slo_core.config.logship_config import LogshipConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from mm2slo_cli.demo.demo_environment import DemoEnvironment

_KEPT: Final = 1_000
_SEARCH: Final = 'in Splunk: index=repl_logs flow="us->eu" level IN (WARN, ERROR)'


class NewestEvents:
    """The newest envelopes, as text."""

    def __init__(self) -> None:
        self._newest: deque[str] = deque(maxlen=_KEPT)
        self._count = 0

    def add(self, envelope: dict[str, Any]) -> None:
        self._newest.appendleft(json.dumps(envelope))
        self._count += 1

    def render(self) -> str:
        """JSON lines, the newest first."""
        lines = self._newest.copy()
        return "\n".join(
            [f"{self._count} events, the {len(lines)} newest first; {_SEARCH}", *lines, ""]
        )


def ship_logs(environment: DemoEnvironment) -> AbstractContextManager[None]:
    """Ship the logs of MirrorMaker 2 and the exporter, if the extra `logship` is installed."""
    return optional_page(environment, "logs", _run_shipper)


@contextmanager
def _run_shipper(environment: DemoEnvironment) -> Iterator[str]:
    from mm2slo_cli.logship_settings import ship_settings
    from mm2slo_logship.ship_metrics import ShipMetrics
    from mm2slo_logship.shipper import Shipper

    runtime = environment.lab.runtime
    folder = runtime.root / "logship"
    folder.mkdir()
    token_file, token, events = folder / "token", secrets.token_hex(16), NewestEvents()
    token_file.touch(0o600)
    token_file.write_text(token, encoding="ascii")
    with hec_stub(("127.0.0.1", 0), token, events.add, page=events.render) as port:
        url = f"http://127.0.0.1:{port}"
        section = LogshipConfig.model_validate(
            {
                "endpoints": [url],
                "token_file": str(token_file),
                "index": "repl_logs",
                "state_dir": str(folder / "state"),
                "sources": [
                    {"paths": [str(runtime.log_file("mm2"))]},
                    {"paths": [str(runtime.log_file("exporter"))], "sourcetype": "repl:app:json"},
                ],
            }
        )
        config = environment.config.model_copy(update={"logship": section})
        shipper = Shipper(ship_settings(config), ShipMetrics())
        shipper.start()
        try:
            yield f"{url}/"
        finally:
            shipper.stop()
