"""Reading scopes: topics, restarting completion, and new indexes when scopes are removed."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from audit_runs.fake_ports import CONFIG
from fake_clusters import ListedCluster
from small_audit_unit import scope

from mm2slo_audit.scope import reachable_units, scope_reader
from mm2slo_audit.scope.scope_assembly import Isolations, RunScope
from mm2slo_audit.scope.scope_reader import KafkaScopeReader
from mm2slo_core.audit.audit_scope import UnitScope
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import ErrorKind


def unit(index: int, log_starts: tuple[int, int], read_from: tuple[int, int]) -> UnitScope:
    found = scope(index=index)
    (flow,) = found.flows
    partitions = tuple(
        replace(each, log_start=log_start, read_from=first)
        for each, log_start, first in zip(flow.partitions, log_starts, read_from, strict=True)
    )
    return replace(found, flows=(replace(flow, partitions=partitions),))


@pytest.fixture
def scoped() -> RunScope:
    scopes = (
        unit(0, (0, 5), (0, 6)),  # one of its partitions has an older record
        unit(1, (0, 5), (0, 5)),
        unit(2, (7, 0), (7, 0)),
    )
    return RunScope(
        scopes=scopes,
        isolations=(Isolations(("read_uncommitted",), "read_uncommitted"),) * 3,
        copies=({}, {}, {}),
    )


def test_list_topics_returns_topics_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    us = ListedCluster({"orders": 1, "uncopied": 1})
    eu = ListedCluster({"us.orders": 1, "us.deleted": 1})
    clients = nullcontext({"us": us, "eu": eu})
    monkeypatch.setattr(scope_reader, "open_clients", lambda _config: clients)
    monkeypatch.setattr(reachable_units, "use_running_settings", lambda flow, _client: (flow, ()))
    found = KafkaScopeReader(CONFIG).list_topics(CONFIG.flows, ())
    assert found == {(Flow("us", "eu"), "us.orders")}
    with pytest.raises(UserError, match="topic 'nowhere' is not copied by these flows"):
        KafkaScopeReader(CONFIG).list_topics(CONFIG.flows, ("nowhere",))


def test_list_topics_unreachable_cluster_raises_kafka_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = ListedCluster(ErrorKind.UNREACHABLE)
    clients = nullcontext({"us": away, "eu": away})
    monkeypatch.setattr(scope_reader, "open_clients", lambda _config: clients)
    with pytest.raises(UserError, match=r"listing topics on cluster us failed \(unreachable\)"):
        KafkaScopeReader(CONFIG).list_topics(CONFIG.flows, ())


def test_scopes_without_older_records_restart_completion(scoped: RunScope) -> None:
    assert scoped.restarting_completion == {1, 2}


def test_without_scopes_renumbers_restarting_completion(scoped: RunScope) -> None:
    fewer = scoped.without({1})
    assert [each.index for each in fewer.scopes] == [0, 1]
    assert fewer.restarting_completion == {1}
