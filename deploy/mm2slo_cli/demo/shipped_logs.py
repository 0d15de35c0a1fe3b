"""Ships the logs of the demo to a stub of Splunk."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from mm2slo_cli.demo.splunk_stub import SplunkStub
from mm2slo_core.config.logship_config import LogshipConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_cli.demo.demo_environment import DemoEnvironment


@contextmanager
def ship_logs(environment: DemoEnvironment) -> Iterator[None]:
    """Ship the logs of MirrorMaker 2 and the exporter, and add the stub's URL to `extra_urls`.

    Does nothing if the extra `logship` is not installed.
    """
    with ExitStack() as resources:
        with suppress(ModuleNotFoundError):
            environment.extra_urls["logs"] = resources.enter_context(_run_shipper(environment))
        yield


@contextmanager
def _run_shipper(environment: DemoEnvironment) -> Iterator[str]:
    from mm2slo_cli.logship_settings import ship_settings
    from mm2slo_logship.ship_metrics import ShipMetrics
    from mm2slo_logship.shipper import Shipper

    runtime = environment.lab.runtime
    folder = runtime.root / "logship"
    folder.mkdir()
    with SplunkStub(secrets.token_hex(16)) as stub:
        token = folder / "token"
        token.touch(0o600)
        token.write_text(stub.token, encoding="ascii")
        section = LogshipConfig.model_validate(
            {
                "endpoints": [stub.url],
                "token_file": str(token),
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
            yield f"{stub.url}/"
        finally:
            shipper.stop()
