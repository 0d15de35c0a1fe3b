"""Time until a stop of MirrorMaker 2 reaches Slack with production durations.

Objectives, deadlines and windows have their defaults; Prometheus starts with blocks of a healthy
hour.
"""

import time
from datetime import datetime
from pathlib import Path

import pytest
from monitoring import Monitoring, monitoring
from steady_load import SteadyLoad
from topic_reader import count_copies

from mm2slo_cli.exporter import run_exporter
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import default_objective_rules
from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

REACH = 240.0
HOUR = 3_600
FIVE_MINUTES = 300
SCRAPE = 15
EVALUATION = 30
CANARY_SLIS = {Sli.AVAILABILITY, Sli.LATENCY, Sli.COMPLETENESS}


def healthy_hour(instance: str, until: float) -> str:
    """An hour without a fault: one canary per second, four slices per minute.

    Scrapes, and what the rules recorded of them.
    """
    rates = {}
    for rule in default_objective_rules():
        sli, tier = rule.key
        if sli in CANARY_SLIS | {Sli.DATA_FRESHNESS}:
            labels = f'flow="us->eu",source="us",target="eu",sli="{sli}",tier="{tier}"'
            rates[labels] = 1.0 if sli in CANARY_SLIS else 4 / 60
    lines = []
    for name, share in (("good_events", 1), ("events", 1), ("unknown_events", 0)):
        lines.append(f"# TYPE mm2_sli_{name} counter")
        for labels, rate in rates.items():
            series = f'mm2_sli_{name}_total{{{labels},job="mm2slo",instance="{instance}"}}'
            lines += [
                f"{series} {share * rate * second:.3f} {until - HOUR + second:.3f}"
                for second in range(0, HOUR, SCRAPE)
            ]
    for name, share in (("events", 1), ("bad", 0)):
        lines.append(f"# TYPE flow:mm2_sli_{name}:increase5m gauge")
        for labels, rate in rates.items():
            series = f"flow:mm2_sli_{name}:increase5m{{{labels}}}"
            lines += [
                f"{series} {share * rate * FIVE_MINUTES:.3f} {until - HOUR + second:.3f}"
                for second in range(FIVE_MINUTES, HOUR, EVALUATION)
            ]
    return "\n".join([*lines, "# EOF", ""])


def since_stop(running: Monitoring, name: str, state: str, start: float) -> float:
    """Wait for an alert's *state*; returns seconds since *start*."""

    def active_times() -> list[float]:
        return [
            datetime.fromisoformat(each["activeAt"]).timestamp()
            for each in running.prometheus.alerts()
            if each["labels"]["alertname"] == name and state in {"pending", each["state"]}
        ]

    wait_for(lambda: bool(active_times()), f"{name} {state}", REACH + 120, 0.5)
    return (min(active_times()) if state == "pending" else time.time()) - start


def test_stop_pages_within_four_minutes(lab: Lab, tmp_path: Path, fresh_topic: str) -> None:
    us = lab.cluster("us")
    us.admin.create_topic(fresh_topic, 2)
    wait_for(lambda: lab.cluster("eu").admin.partition_count(f"us.{fresh_topic}") > 0, "the copy")
    settings = {"listen": "127.0.0.1:0"}
    config = load_config(lab.config_yaml(flow={"topics": [fresh_topic]}, exporter=settings))
    with (
        SteadyLoad(us.librdkafka(), fresh_topic, (0, 1)),
        run_exporter(lambda: config, ["us->eu"]) as (_service, server),
    ):
        wait_for(lambda: count_copies(lab, fresh_topic) > 0, "the first copies")
        target = server.url.removeprefix("http://")
        history = healthy_hour(target, time.time())
        with monitoring(tmp_path, config, [target], history=history) as running:
            full = 'flow:mm2_sli_events:increase1h{sli="availability"} > 3300'
            wait_for(lambda: running.prometheus.holds(full), "an hour of canaries", poll=1)
            wait_for(lambda: running.prometheus.holds("mm2_flow_state == 1"), "a scrape")
            lab.mm2.stop()
            start = time.time()
            try:
                parts = {
                    "the alert is pending": since_stop(running, "MM2FlowStopped", "pending", start),
                    "the alert fires": since_stop(running, "MM2FlowStopped", "firing", start),
                }
                wait_for(lambda: len(running.slack.messages) > 0, "the page", REACH, 0.2)
                parts["Slack has the page"] = time.time() - start
                # Recorded, but its alert is left out while its cause pages.
                burns = 'flow:mm2_slo_burn:ratio1h{sli="availability"} > 14.4'
                wait_for(lambda: running.prometheus.holds(burns), "the burn", REACH, 0.5)
                parts["the availability budget burns"] = time.time() - start
            finally:
                lab.mm2.start()
            for part, seconds in parts.items():
                print(f"{seconds:6.1f} s  {part}")
            assert "Flow us-&gt;eu has stopped." in running.slack.titles()[0]
            assert len(running.slack.messages) == 1
            assert parts["Slack has the page"] <= REACH
