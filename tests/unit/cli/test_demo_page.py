"""The demo's page: served beside the stage, ended with it, and told on the terminal."""

from __future__ import annotations

import socket
import sys
import threading
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mm2slo_cli.demo.figures import DemoFigures
from mm2slo_cli.demo.outage import told
from mm2slo_cli.demo.reported import reported
from mm2slo_cli.demo.view import address_lines
from mm2slo_core.config import load_config

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

    from mm2slo_cli.demo.stage import Stage

CONFIG = """\
clusters: {us: {bootstrap_servers: "127.0.0.1:1"}, eu: {bootstrap_servers: "127.0.0.1:2"}}
flows: [{flow: us->eu}, {flow: eu->us}]
"""
EXPORTER = "http://127.0.0.1:65535"
PAGE = "http://127.0.0.1:65534/"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Nothing of it runs: the exporter's port is closed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    lab = SimpleNamespace(runtime=SimpleNamespace(root=tmp_path))
    made = SimpleNamespace(
        lab=lab, config=load_config(CONFIG), url=f"http://127.0.0.1:{port}", beside={}
    )
    return cast("Stage", made)


def test_the_page_is_there_as_long_as_the_stage_is(stage: Stage) -> None:
    before = set(threading.enumerate())
    with reported(stage):
        page = stage.beside["report"]
        with urllib.request.urlopen(page, timeout=30) as answer:
            text = answer.read().decode()
    assert "Nothing is known of 12 of 12 objectives" in text
    assert f"the exporter {stage.url} cannot be asked" in text
    assert set(threading.enumerate()) <= before
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page, timeout=5)


def test_an_end_by_an_error_takes_the_page_along(stage: Stage) -> None:
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), reported(stage):
        raise KeyboardInterrupt
    assert set(threading.enumerate()) <= before


def test_without_the_extra_the_demo_goes_on_and_says_how_to_get_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with reported(stage):
        assert stage.beside == {}
    lines = [each.plain for each in addresses()]
    assert lines[0] == "Page     comes with an extra: pip install 'mm2slo[report]'"


def addresses(**more: str) -> list[Text]:
    urls = {"page": f"{EXPORTER}/", "metrics": f"{EXPORTER}/metrics", **more}
    return address_lines(DemoFigures((), urls, {}))


def test_addresses_fit_80_columns() -> None:
    lines = [each.plain for each in addresses(report=PAGE, alerts=f"{EXPORTER}/alerts")]
    assert lines == [
        "Page     http://127.0.0.1:65534/  flows, budgets, incidents",
        "Exporter http://127.0.0.1:65535/  /metrics  Alerts http://127.0.0.1:65535/alerts",
    ]
    assert max(map(len, lines)) == 80


def entry(status: str, sli: str = "checkpoint_freshness", tier: str | None = None) -> Any:
    return {"status": status, "sli": {"type": sli, "tier": tier}, "flow": {"name": "us->eu"}}


def test_an_outage_is_told_by_its_worst_objective() -> None:
    incident = {
        "start": "2026-07-14T23:59:00Z",
        "end": "2026-07-15T00:01:00Z",
        "bad": 37,
        "consumed": 1.5,
    }
    entries = [entry("breached", "latency", "10s"), entry("breached"), entry("no_data")]
    assert list(told(entries, {"incidents": [incident, incident]})) == [
        "2 of 3 objectives: breached",
        "us->eu latency 10s: 37 bad events, 23:59 to 00:01 UTC",
    ]
    assert list(told([entry("no_data")], {"incidents": []})) == ["1 of 1 objectives: no data"]
