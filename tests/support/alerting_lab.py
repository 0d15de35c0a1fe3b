"""A lab with the whole alerting path: exporter, Prometheus, Alertmanager and a fake Slack.

All durations of rules and routes are a fifteenth of the production values, and the flow's deadlines
are shortened as well, so that alerts and messages follow in the same order.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from exporter_watch import FAST, Watch
from fake_slack import Message
from monitoring import Monitoring, monitoring

from mm2slo_alerts.alert_rules import Scale
from mm2slo_cli.exporter import run_exporter
from mm2slo_core.config.config_loader import load_config
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

SCALE: Final = Scale(1 / 15)

_FLOW: Final[Mapping[str, object]] = {
    "canary": {"interval": "200ms", "deadline": "4s", "latency_tiers": ["2s", "4s"]},
    "freshness": [{"threshold": "4s"}],
    "slice": "1s",
    "stall_after": "2s",
}


@dataclass(frozen=True, slots=True)
class AlertingLab:
    """The running servers, and the messages that Slack received."""

    seen: Watch
    monitoring: Monitoring

    @property
    def messages(self) -> list[Message]:
        """Messages that Slack accepted, in order."""
        return self.monitoring.slack.messages

    def wait_message(self, count: int, what: str) -> Message:
        """Wait for message number *count* and return it; fails if there are more."""
        wait_for(lambda: len(self.messages) >= count, what, 180, 0.1)
        assert len(self.messages) == count, self.monitoring.slack.titles()
        return self.messages[-1]

    def active_pages(self) -> set[str]:
        """Names of pending and firing pages, including inhibited ones."""
        alerts = (each["labels"] for each in self.monitoring.prometheus.alerts())
        return {each["alertname"] for each in alerts if each["severity"] == "page"}

    def wait_until_silenced(self) -> None:
        """Wait until all of Alertmanager's pages and tickets are suppressed."""

        def unsuppressed() -> set[str]:
            return {
                each["labels"]["alertname"]
                for each in self.monitoring.alertmanager.alerts()
                if each["labels"]["severity"] != "none" and each["status"]["state"] != "suppressed"
            }

        wait_for(lambda: not unsuppressed(), "alerts to be suppressed", poll=0.5)

    def wait_healthy(self, flows: Sequence[str]) -> None:
        """Wait until each flow has only good events in its short windows, and budget left."""
        server = self.monitoring.prometheus
        for flow in flows:
            good = (
                f'min(sum_over_time(flow:mm2_sli_events:increase5m{{flow="{flow}",'
                f'sli=~"availability|data_freshness"}}[20s])) > 100 '
                f'and sum(flow:mm2_sli_bad:increase5m{{flow="{flow}"}}) == 0'
            )
            wait_for(partial(server.holds, good), f"a healthy {flow}", poll=0.5)
            left = f'min(flow:mm2_slo_budget_remaining:ratio{{flow="{flow}"}}) > 0'
            wait_for(partial(server.holds, left), f"the budget of {flow}", poll=0.5)
        wait_for(lambda: not self.active_pages(), "silence", poll=0.5)


@contextmanager
def start_alerting_lab(
    lab: Lab, folder: Path, flows: Sequence[str], topics: Sequence[str], scale: Scale = SCALE
) -> Iterator[AlertingLab]:
    """Start an exporter of *flows* with *topics*, and the servers that alert on it."""
    text = lab.config_yaml(flow={**_FLOW, "topics": list(topics)}, exporter=FAST)
    config = load_config(text)
    # Rules expect the configured flows, and the lab may have more.
    watched = tuple(each for each in config.flows if str(each.flow) in flows)
    config = config.model_copy(update={"flows": watched})
    with run_exporter(lambda: config, list(flows)) as (service, server):
        seen = Watch(service, server.url)
        seen.until_ready()
        address = server.url.removeprefix("http://")
        with monitoring(folder, config, [address], scale=scale) as stack:
            yield AlertingLab(seen, stack)
            assert stack.slack.refusals == []
