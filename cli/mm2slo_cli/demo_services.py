"""Services that the demo runs beside the exporter; each adds a page.

Prometheus and Alertmanager with the generated files, the report service with its own recorder and
store, and the log shipper with a stand-in for Splunk.
"""

import json
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from mm2slo_alerts.alert_files import ALERTMANAGER, SLACK_TEMPLATE, generated
from mm2slo_alerts.alert_rules import Scale
from mm2slo_alerts.message_preview import unescaped
from mm2slo_cli.demo_environment import DemoEnvironment
from mm2slo_core.config.alerting_config import SlackChannel
from mm2slo_core.config.exporter_settings import Listen
from mm2slo_core.config.logship_config import LogshipConfig
from mm2slo_lab.lab_monitoring import (
    Cadence,
    Prometheus,
    alertmanager,
    is_installed,
    prometheus,
)
from mm2slo_lab.receiver_stubs import SlackStub, hec_stub

SCALE: Final = Scale(1 / 15)
"""The demo is interactive: one minute of the rules becomes four seconds."""
_NEEDED: Final = ("prometheus", "alertmanager")


@dataclass(slots=True)
class AlertStack:
    """Running Prometheus, and a stub of Slack to which Alertmanager sends."""

    prometheus: Prometheus
    slack: SlackStub
    _titles: int = 0

    def new_titles(self) -> list[str]:
        """Titles of the Slack messages since the last call."""
        new = self.slack.messages[self._titles :]
        self._titles += len(new)
        return [unescaped(each["attachments"][0]["title"]) for each in new]


def missing_programs() -> tuple[str, ...]:
    """Return the programs that are not installed."""
    return tuple(name for name in _NEEDED if not is_installed(name))


@contextmanager
def run_alert_stack(environment: DemoEnvironment) -> Iterator[AlertStack]:
    """Run both for the exporter of *environment*. Raises LabError if one is not installed."""
    folder = environment.lab.runtime.root / "monitoring"
    folder.mkdir(exist_ok=True)
    with SlackStub() as slack:
        secret = folder / "slack-webhook-url"
        secret.write_text(slack.url, encoding="utf-8")
        channel = SlackChannel(name="demo", webhook_url_file=str(secret))
        config = environment.config
        alerting = config.alerting.model_copy(update={"slack": (channel,)})
        files = generated(config.model_copy(update={"alerting": alerting}), SCALE)
        rules = {
            name.rpartition("/")[2]: text
            for name, text in files.items()
            if name.endswith(".rules.yml")
        }
        template = {SLACK_TEMPLATE.removeprefix("alertmanager/"): files[SLACK_TEMPLATE]}
        with (
            alertmanager(folder / "alertmanager", files[ALERTMANAGER], template) as manager,
            prometheus(
                folder / "prometheus",
                {
                    "mm2slo": [environment.url.removeprefix("http://")],
                    "alertmanager": [manager.listen],
                },
                rules=rules,
                alertmanager=manager.listen,
                cadence=Cadence().scaled(SCALE.factor),
            ) as server,
        ):
            environment.extra_urls["prometheus"] = server.url
            yield AlertStack(server, slack)


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
    section = environment.config.report
    recorder = section.recorder.model_copy(
        update={"exporters": (environment.url,), "interval": _INTERVAL}
    )
    changes = {"listen": Listen("127.0.0.1", 0), "recorder": recorder}
    loaded = environment.config.model_copy(update={"report": section.model_copy(update=changes)})
    with open_server(loaded, store, cache_seconds=_CACHE_SECONDS) as server:
        yield f"{server.url}/"


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
    from mm2slo_cli.logship import ship_settings
    from mm2slo_logship.event_delivery import ShipMetrics
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


@contextmanager
def optional_page(
    environment: DemoEnvironment,
    name: str,
    run: Callable[[DemoEnvironment], AbstractContextManager[str]],
) -> Iterator[None]:
    """Run what serves a page, and add its URL to `extra_urls` as *name*.

    Does nothing if its extra is not installed.
    """
    with ExitStack() as resources:
        with suppress(ModuleNotFoundError):
            environment.extra_urls[name] = resources.enter_context(run(environment))
        yield
