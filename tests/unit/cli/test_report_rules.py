"""Readiness warnings about rule groups missing in Prometheus."""

import json
from pathlib import Path

import yaml
from recording_server import Answer, RecordingServer, Request
from report_service_fixture import start_service

from mm2slo_alerts.alert_files import ALERT_RULES, RECORDING_RULES, generated
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.report_serve import expected_groups, missing_rules
from mm2slo_report.http_session import Server
from mm2slo_report.prometheus_api import PrometheusClient
from mm2slo_report.prometheus_source import PrometheusSource
from mm2slo_store.store import Store

CONFIG = """
clusters: {us: {bootstrap_servers: "127.0.0.1:1"}, eu: {bootstrap_servers: "127.0.0.1:2"}}
flows: [{flow: us->eu}]
"""


def test_missing_rule_group_is_a_readiness_warning(
    tmp_path: Path,
) -> None:
    (tmp_path / "mm2slo.yaml").write_text(CONFIG)
    loaded = read_config(ConfigSource(tmp_path / "mm2slo.yaml"))
    files = generated(loaded)
    written = [
        group["name"]
        for name in (RECORDING_RULES, ALERT_RULES)
        for group in yaml.safe_load(files[name])["groups"]
    ]
    assert sorted(expected_groups(loaded)) == sorted(set(written))
    known = written[:-1]

    def answer(request: Request) -> Answer:
        assert request.path == "/api/v1/rules"
        groups = {"groups": [{"name": each} for each in known]}
        return Answer(body=json.dumps({"status": "success", "data": groups}))

    with RecordingServer(answer) as prometheus, Store.open(tmp_path / "r.db") as store:
        client = PrometheusClient(Server(url=prometheus.address))
        rules = missing_rules(loaded, PrometheusSource(client, clock=lambda: 0))
        service = start_service(store, missing_rules=rules)
        found = service.get("/readyz")
        assert (found["status"], found["problems"]) == ("ok", [])
        (warning,) = found["warnings"]
        assert written[-1] in warning
        known.append(written[-1])
        assert service.get("/readyz")["warnings"] == []


def test_recorder_history_expects_no_rules(tmp_path: Path) -> None:
    (tmp_path / "mm2slo.yaml").write_text(CONFIG)
    loaded = read_config(ConfigSource(tmp_path / "mm2slo.yaml"))
    with Store.open(tmp_path / "r.db") as store:
        assert missing_rules(loaded, start_service(store).source) is None
