"""The logs of the demo arrive at its stand-in for Splunk."""

import json
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mm2slo_cli.demo_environment import DemoEnvironment
from mm2slo_cli.demo_services import ship_logs
from mm2slo_core.config.config_loader import load_config
from mm2slo_lab.managed_process import wait_for

CONFIG = """\
clusters: {us: {bootstrap_servers: "127.0.0.1:1"}, eu: {bootstrap_servers: "127.0.0.1:2"}}
flows: [{flow: us->eu}, {flow: eu->us}]
"""
LINE = (
    "[2026-11-22T17:10:39.123Z] INFO <main> [Worker clientId=us->eu, groupId=us-mm2] Rebalance "
    "started password=hunter2 (org.apache.kafka.connect.runtime.distributed.WorkerCoordinator)\n"
)


@pytest.fixture
def environment(tmp_path: Path) -> DemoEnvironment:
    runtime = SimpleNamespace(root=tmp_path, log_file=lambda name: tmp_path / f"{name}.log")
    (tmp_path / "mm2.log").write_text(LINE)
    (tmp_path / "exporter.log").write_text('{"timestamp":"2026-11-22T17:10:40Z","message":"b"}\n')
    created = SimpleNamespace(
        lab=SimpleNamespace(runtime=runtime), config=load_config(CONFIG), extra_urls={}
    )
    return cast("DemoEnvironment", created)


def fetch(url: str) -> list[str]:
    with urllib.request.urlopen(url, timeout=60) as response:
        return cast("str", response.read().decode()).splitlines()


def test_logs_of_demo_arrive_at_the_printed_address(environment: DemoEnvironment) -> None:
    with ship_logs(environment):
        url = environment.extra_urls["logs"]
        wait_for(lambda: fetch(url)[0].startswith("2 events"), "two events")
        head, *lines = fetch(url)
    assert head.endswith('in Splunk: index=repl_logs flow="us->eu" level IN (WARN, ERROR)')
    events: dict[str, Any] = {each["sourcetype"]: each for each in map(json.loads, lines)}
    worker = events["mm2:connect:json"]
    assert (worker["index"], worker["event"]["flow"]) == ("repl_logs", "us->eu")
    assert worker["event"]["event_action"] == "worker_rebalance"
    assert "password=[redacted]" in worker["event"]["message"]
    assert events["repl:app:json"]["event"]["message"] == "b"


def test_logs_without_extra_are_not_shipped(
    environment: DemoEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mm2slo_logship.shipper", None)
    with ship_logs(environment):
        assert environment.extra_urls == {}
