"""A lab that is watched to the end: exporter, Prometheus, Alertmanager and Slack's stand-in.

Every duration of the rules and routes is a fifteenth of production's, and the flow's own deadlines
are shortened alike, so that causes, budgets and messages follow one another as they do there.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from monitoring import Monitoring, monitoring
from watching import FAST, Watch

from mm2slo_alerts.recent_alert import AFTER_CATCHING_UP, AFTER_OUTAGE, AFTER_STOP
from mm2slo_alerts.rule_model import Scale
from mm2slo_cli.exporter import serving
from mm2slo_core.config import load_config
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slack_receiver import Message

    from mm2slo_lab import Lab

SCALE: Final = Scale(1 / 15)
OF_TICKETS: Final = {
    memory.labels["within"]
    for memories in (AFTER_STOP, AFTER_OUTAGE, AFTER_CATCHING_UP)
    for pair, memory in memories.items()
    if pair in ("slow", "creeping")
}
"""For how long what a fault left is no ticket, as labels tell it."""
_FLOW: Final[Mapping[str, object]] = {
    "canary": {"interval": "200ms", "deadline": "4s", "latency_tiers": ["2s", "4s"]},
    "freshness": [{"threshold": "4s"}],
    "slice": "1s",
    "stall_after": "2s",
}


@dataclass(frozen=True, slots=True)
class Paged:
    """What runs, and what was told."""

    seen: Watch
    monitoring: Monitoring

    @property
    def messages(self) -> list[Message]:
        """All messages that Slack took, in order."""
        return self.monitoring.slack.messages

    def told(self, count: int, what: str, timeout: float = 90.0) -> Message:
        """The message that makes them *count*; fails when one more is there already."""
        wait_for(lambda: len(self.messages) >= count, what, timeout, 0.1)
        assert len(self.messages) == count, self.monitoring.slack.titles()
        return self.messages[-1]

    def pages(self) -> set[str]:
        """The names of pages that are pending or fire, told or inhibited."""
        return self._names("page")

    def quieting(self) -> set[str]:
        """What still keeps pages from being told; tickets are quiet for hours."""
        memories = [
            each["labels"]
            for each in self.monitoring.prometheus.alerts()
            if each["labels"]["severity"] == "none"
        ]
        return {each["alertname"] for each in memories if each.get("within") not in OF_TICKETS} - {
            "MM2Watchdog"
        }

    def nothing_to_tell(self) -> None:
        """Wait until all that Alertmanager has for people is silenced: no message is on its way."""

        def told() -> set[str]:
            return {
                each["labels"]["alertname"]
                for each in self.monitoring.alertmanager.alerts()
                if each["labels"]["severity"] != "none" and each["status"]["state"] != "suppressed"
            }

        wait_for(lambda: not told(), "alerts to be silenced", 30.0, 0.5)

    def _names(self, severity: str) -> set[str]:
        alerts = (each["labels"] for each in self.monitoring.prometheus.alerts())
        return {each["alertname"] for each in alerts if each["severity"] == severity}

    def healthy(self, flows: Sequence[str]) -> None:
        """Wait until each of *flows* has short windows full of good events, and a budget."""
        server = self.monitoring.prometheus
        for flow in flows:
            good = (
                f'min(sum_over_time(flow:mm2_sli_events:increase5m{{flow="{flow}",'
                f'sli=~"availability|data_freshness"}}[20s])) > 100 '
                f'and sum(flow:mm2_sli_bad:increase5m{{flow="{flow}"}}) == 0'
            )
            wait_for(partial(server.holds, good), f"a healthy {flow}", 90.0, 0.5)
            left = f'min(flow:mm2_slo_budget_remaining:ratio{{flow="{flow}"}}) > 0'
            wait_for(partial(server.holds, left), f"the budget of {flow}", 90.0, 0.5)
        wait_for(lambda: not self.pages(), "silence", 60.0, 0.5)


@contextmanager
def paged(
    lab: Lab, folder: Path, flows: Sequence[str], topics: Sequence[str], scale: Scale = SCALE
) -> Iterator[Paged]:
    """Watch *flows* of *lab*, of which only *topics* matter."""
    text = lab.config_yaml(flow={**_FLOW, "topics": list(topics)}, exporter=FAST)
    config = load_config(text)
    with serving(lambda: config, list(flows)) as (service, server):
        seen = Watch(service, server.url)
        seen.until_ready()
        address = server.url.removeprefix("http://")
        with monitoring(folder, config, [address], scale=scale) as together:
            yield Paged(seen, together)
            assert together.slack.refusals == []
