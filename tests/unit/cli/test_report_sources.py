"""The source of history that the configuration names."""

import json
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from recording_server import Answer, RecordingServer, Request

from mm2slo_cli.report_sources import create_source
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator
from mm2slo_core.topology import Flow
from mm2slo_store.store import Store

CONFIG = """
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
"""


@pytest.mark.parametrize("namespace", ["tenant-a", None])
def test_prometheus_queries_select_the_namespace_of_the_rules(
    tmp_path: Path, namespace: str | None
) -> None:
    queries = []

    def answer(request: Request) -> Answer:
        queries.extend(parse_qs(request.body.decode())["query"])
        kind = "matrix" if request.path.endswith("range") else "vector"
        data = {"resultType": kind, "result": []}
        return Answer(body=json.dumps({"status": "success", "data": data}))

    indicator, span = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY)), Span(0, MINUTE_MS)
    with RecordingServer(answer) as server, Store.open(tmp_path / "r.db") as store:
        text = f"{CONFIG}report: {{prometheus: {{url: '{server.address}'}}}}\n"
        text += f"alerting: {{namespace: {namespace}}}\n" if namespace else ""
        source = create_source(load_config(text, name="mm2slo.yaml"), store)
        source.counts([indicator], [span])
        source.steps(indicator, span)
        source.indicators()
        source.last_seen([indicator], span.end)
    selectors = [part for query in queries for part in query.split("flow:mm2_")[1:]]
    assert len(selectors) >= 10
    wanted = f'namespace="{namespace}"'
    assert [
        each for each in selectors if (wanted in each.partition("}")[0]) != bool(namespace)
    ] == []
