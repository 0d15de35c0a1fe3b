"""A cluster that is away for 100 s in every 10 minutes pages once, with production durations.

Prometheus starts with blocks of 40 minutes, and then scrapes an exporter with the same outages.
"""

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from monitoring import monitoring
from recording_server import Answer, RecordingServer

from mm2slo_core.config.config_loader import load_config
from mm2slo_lab.managed_process import wait_for

pytestmark = [pytest.mark.promtool, pytest.mark.long]

CONFIG = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  ap: {bootstrap_servers: "ap:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows: [{flow: us->eu}, {flow: ap->eu}]
"""
EVERY, HISTORY, SCRAPE = 600, 2_400, 15
AWAY = {"us": 100.0, "ap": 20.0, "eu": 0.0}
"""Seconds in which each cluster does not answer, every ten minutes."""


def families(elapsed: float, at: float) -> Iterator[tuple[str, str, Mapping[str, float]]]:
    """Name, type and values by labels of the exporter's metrics at *at*."""
    periods, phase = divmod(elapsed, EVERY)
    request = 'stage="end_offsets"'
    yield (
        "mm2_exporter_last_success_timestamp_seconds",
        "gauge",
        {
            f'cluster="{name}",{request}': at - phase if phase < away else at
            for name, away in AWAY.items()
        },
    )
    yield (
        "mm2_exporter_collect_errors_total",
        "counter",
        {
            f'cluster="{name}",{request},reason="timeout"': (periods * away + min(phase, away)) // 5
            for name, away in AWAY.items()
        },
    )
    flows = [f'flow="{source}->eu",source="{source}",target="eu"' for source in ("us", "ap")]
    yield "mm2_flow_info", "gauge", dict.fromkeys(flows, 1.0)
    yield "mm2_flow_observed_timestamp_seconds", "gauge", dict.fromkeys(flows, at)


def history(start: float, until: float, target: str) -> str:
    """Scrapes of *target* in OpenMetrics, by series."""
    times = [start + second for second in range(0, round(until - start), SCRAPE)]
    scrapes = [list(families(at - start, at)) for at in times]
    lines = []
    for position, (name, kind, values) in enumerate(scrapes[0]):
        lines.append(f"# TYPE {name.removesuffix('_total')} {kind}")
        for labels in values:
            series = f'{name}{{{labels},job="mm2slo",instance="{target}"}}'
            lines.extend(
                f"{series} {scrape[position][2][labels]:.3f} {at:.3f}"
                for at, scrape in zip(times, scrapes, strict=True)
            )
    return "\n".join([*lines, "# EOF", ""])


def test_flapping_cluster_sends_one_page_and_a_shortly_absent_one_none(tmp_path: Path) -> None:
    # The newest outage of "us" ended 50 s ago.
    until = time.time()
    start = until - HISTORY - 150

    def scrape() -> str:
        at = time.time()
        return "".join(
            f"# TYPE {name} {kind}\n"
            + "".join(f"{name}{{{labels}}} {value:.3f}\n" for labels, value in values.items())
            for name, kind, values in families(at - start, at)
        )

    with RecordingServer(lambda _request: Answer(body=scrape())) as exporter:
        target = exporter.address.removeprefix("http://")
        past = history(start, until, target)
        with monitoring(tmp_path, load_config(CONFIG), [target], history=past) as running:
            wait_for(lambda: bool(running.slack.messages), "the page", 600, 0.5)
            [title] = running.slack.titles()
            assert re.fullmatch(
                r"🔥 FIRING page · Cluster us was unreachable for 1\d(\.\d+)?% of the last 30m\.",
                title,
            )
            alerts = [each["labels"] for each in running.prometheus.alerts()]
            pages = [each for each in alerts if each["severity"] == "page"]
            assert [(each["alertname"], each["cluster"]) for each in pages] == [
                ("MM2ClusterUnreachable", "us")
            ]
