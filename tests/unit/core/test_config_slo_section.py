"""Objectives written as the `slo:` section of mm2slo.yaml."""

from mm2slo_core.config.config_loader import load_config
from mm2slo_core.objectives.objective_documents import render_slo_section

BASE = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows:
  - {flow: us->eu, canary: {carrier: topic}, freshness: [{name: Gold, topics: [g]}, {name: rest}]}
  - {flow: eu->us, canary: {latency_tiers: [0.5s, 60s]}}
alerting: {slack: [{name: mm2, webhook_url_file: /run/url}, {name: db, webhook_url_file: /u}]}
"""
SLO = """\
slo:
  owner: Team A
  objectives:
    - {flows: us->eu, sli: availability, target: 99.95%, channel: db}
    - {sli: checkpoint_freshness, target: 60%, window: 14d}
    - {flows: us->eu, sli: data_freshness, tier: Gold, target: 80%, max_severity: page}
"""


def test_slo_section_of_all_objectives_loads_as_the_same_objectives() -> None:
    objectives = load_config(BASE + SLO).objectives
    assert len(objectives) == 16
    assert load_config(BASE + render_slo_section(objectives)).objectives == objectives
