"""In which order, and at which isolation level, both sides are requests."""

from collections.abc import Sequence
from typing import cast

import pytest

from mm2slo_audit.scope import cluster_survey
from mm2slo_audit.scope.audit_units import plan_units
from mm2slo_audit.scope.cluster_survey import ClusterSurvey
from mm2slo_audit.scope.flow_topic_reader import CommitsAndSyncs
from mm2slo_audit.scope.reachable_units import ReachableUnit
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.partition_offsets import OffsetReading

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


class Cluster:
    """Records its requests."""

    def __init__(self, alias: str, requests: list[tuple[str, ...]]) -> None:
        self._alias = alias
        self._requests = requests

    def end_offsets(self, keys: Sequence[TopicPartition], isolation: str) -> OffsetReading:
        self._requests.append(("ends", self._alias, isolation))
        return OffsetReading(dict.fromkeys(keys, 10), {}, 0.0, 0.0)

    def start_offsets(self, keys: Sequence[TopicPartition]) -> OffsetReading:
        self._requests.append(("starts", self._alias))
        return OffsetReading(dict.fromkeys(keys, 0), {}, 0.0, 0.0)

    def offsets_at(self, keys: Sequence[TopicPartition], _moment: float) -> OffsetReading:
        return OffsetReading(dict.fromkeys(keys, 0), {}, 0.0, 0.0)


@pytest.mark.parametrize(
    ("flow", "source", "target"),
    [
        ("{flow: us->eu}", UNCOMMITTED, UNCOMMITTED),
        ("{flow: us->eu, isolation: read_committed}", COMMITTED, UNCOMMITTED),
        ("{flow: us->eu, exactly_once: true, isolation: read_committed}", COMMITTED, COMMITTED),
    ],
)
def test_cluster_survey_reads_positions_then_target_ends_then_source_ends(
    monkeypatch: pytest.MonkeyPatch,
    flow: str,
    source: str,
    target: str,
) -> None:
    requests: list[tuple[str, ...]] = []

    def positions(*_requests: object) -> CommitsAndSyncs:
        requests.append(("positions",))
        return CommitsAndSyncs()

    monkeypatch.setattr(cluster_survey, "read_commits_and_syncs", positions)
    monkeypatch.setattr(cluster_survey, "read_topic_settings", lambda *_requests: {})
    monkeypatch.setattr(cluster_survey, "read_timeline", lambda *_requests, **_limits: {})
    config = load_config(
        "clusters: {us: {bootstrap_servers: 'us:1'}, eu: {bootstrap_servers: 'eu:1'}}\n"
        f"flows: [{flow}]"
    )
    clients = {alias: cast("ClusterClient", Cluster(alias, requests)) for alias in ("us", "eu")}
    (unit,) = plan_units(config.flows, {"us": ["t"]})
    survey = ClusterSurvey(config, clients, Window(0, 1), lambda _line: None)
    survey.read([ReachableUnit(unit, 1, (1,))])
    assert requests == [
        ("positions",),
        ("ends", "eu", target),
        ("ends", "us", source),
        ("starts", "us"),
        ("starts", "eu"),
    ]
    assert survey.not_audited == []
