"""The report service of the demo, and its summary on the terminal."""

import socket
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.text import Text

from mm2slo_cli.demo import summary_lines
from mm2slo_cli.demo_environment import DemoEnvironment
from mm2slo_cli.demo_figures import DemoFigures
from mm2slo_cli.demo_screen import address_lines
from mm2slo_cli.demo_services import serve_report_page
from mm2slo_core.config.config_loader import load_config
from mm2slo_lab.managed_process import wait_for

CONFIG = """\
clusters: {us: {bootstrap_servers: "127.0.0.1:1"}, eu: {bootstrap_servers: "127.0.0.1:2"}}
flows: [{flow: us->eu}, {flow: eu->us}]
"""
EXPORTER = "http://127.0.0.1:65535"
PAGE = "http://127.0.0.1:65534/"


@pytest.fixture
def environment(tmp_path: Path) -> DemoEnvironment:
    """An environment without processes; the exporter's port is closed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    lab = SimpleNamespace(runtime=SimpleNamespace(root=tmp_path))
    created = SimpleNamespace(
        lab=lab, config=load_config(CONFIG), url=f"http://127.0.0.1:{port}", extra_urls={}
    )
    return cast("DemoEnvironment", created)


def wait_ended(before: set[threading.Thread]) -> None:
    """Wait for the threads that are not among *before*; worker threads end after their loop."""
    wait_for(lambda: set(threading.enumerate()) <= before, "the page's threads to end")


def test_report_page_is_served_within_context(environment: DemoEnvironment) -> None:
    before = set(threading.enumerate())
    with serve_report_page(environment):
        page = environment.extra_urls["report"]
        with urllib.request.urlopen(page, timeout=60) as response:
            text = response.read().decode()
    assert "No data for 12 of 12 objectives" in text
    assert f"cannot fetch metrics from exporter {environment.url}" in text
    wait_ended(before)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page, timeout=5)


def test_report_page_stops_after_error(environment: DemoEnvironment) -> None:
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), serve_report_page(environment):
        raise KeyboardInterrupt
    wait_ended(before)


def test_report_page_without_extra_is_skipped_with_install_hint(
    environment: DemoEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mm2slo_report.web.report_app", None)
    with serve_report_page(environment):
        assert environment.extra_urls == {}
    lines = [each.plain for each in addresses()]
    assert lines[0] == "Page     not installed: pip install '.[report]'"


def addresses(**more: str) -> list[Text]:
    urls = {"page": f"{EXPORTER}/", "metrics": f"{EXPORTER}/metrics", **more}
    return address_lines(DemoFigures((), urls, {}))


def test_addresses_fit_80_columns() -> None:
    found = addresses(report=PAGE, logs="http://127.0.0.1:65533/", prometheus=EXPORTER)
    lines = [each.plain for each in found]
    assert lines == [
        "Page     http://127.0.0.1:65534/  Logs http://127.0.0.1:65533/",
        "Exporter http://127.0.0.1:65535/  /metrics  Prometheus http://127.0.0.1:65535",
    ]
    assert max(map(len, lines)) <= 80


def test_summary_describes_worst_status_and_costliest_incident() -> None:
    incident = {
        "flow": "us->eu",
        "sli": "checkpoint_freshness",
        "tier": "",
        "start": "2026-07-14T23:59:00Z",
        "end": "2026-07-15T00:01:00Z",
        "bad_events": 37,
        "consumed_ratio": 0.0123,
    }
    entries = [{"status": each} for each in ("at_risk", "at_risk", "met")]
    assert list(summary_lines({"entries": entries, "incidents": [incident, incident]})) == [
        "2 of 3 objectives: at risk",
        "us->eu checkpoint freshness: 37 bad events,",
        "23:59 to 00:01 UTC, 1.23% of the error budget",
    ]
    assert list(summary_lines({"entries": entries[2:], "incidents": []})) == [
        "1 of 1 objectives: met"
    ]
