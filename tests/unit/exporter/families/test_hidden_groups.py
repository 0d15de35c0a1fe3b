"""Series of consumer groups under the series limit and by configuration."""

from dataclasses import replace
from typing import Any

import pytest

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_exporter.families.family_composer import hide_other_groups, limited_families


def with_groups(publisher: Any, ready: int, blocked: int, of_target: int = 0) -> Any:
    """A report with so many groups; only those that are on the target alone have a lag."""
    is_ready, is_blocked = publisher.report.groups
    groups = (
        *(replace(is_blocked, group=f"blocked-{number:03d}") for number in range(blocked)),
        *(replace(is_ready, group=f"ready-{number:03d}") for number in range(ready)),
    )
    _, _, lag = publisher.report.group_lags
    lags = tuple(replace(lag, group=f"target-{number:03d}") for number in range(of_target))
    return publisher.changed(groups=groups, group_lags=lags)


def of_groups(limited: Any) -> dict[str, set[str]]:
    """The groups with series, by metric."""
    return {
        family.metric.name: {
            labels[family.metric.labels.index("group")] for labels, _ in family.series
        }
        for family in limited.families
        if "group" in family.metric.labels
    }


@pytest.mark.parametrize("limit", [300, 1000, 2000])
def test_series_limit_leaves_out_groups_that_are_ready_first(publisher: Any, limit: int) -> None:
    report = with_groups(publisher, ready=400, blocked=20)
    limited = limited_families([report], publisher.own, Granularity.TOPIC, limit)
    # A ready group has nine series.
    assert limit - 9 < limited.series <= limit
    assert (limited.granularity, limited.coarsened, limited.over_limit) == (
        Granularity.FLOW,
        True,
        False,
    )
    shown = of_groups(limited)["mm2_failover_ready"]
    ready = [group.group for group in report.groups if group.readiness.ready]
    count = len(shown) - 20
    assert shown == {f"blocked-{number:03d}" for number in range(20)} | set(ready[:count])
    for metric, groups in of_groups(limited).items():
        assert groups <= shown, metric
    series = {family.metric: family.series for family in limited.families}
    assert series[catalogue.EXPORTER_HIDDEN_GROUPS] == [(("us->eu", "us", "eu"), 420 - len(shown))]
    assert series[catalogue.EXPORTER_SERIES] == [((), limited.series)]


def test_series_limit_below_series_of_flows_leaves_out_all_groups(publisher: Any) -> None:
    report = with_groups(publisher, ready=10, blocked=10)
    limited = limited_families([report], publisher.own, Granularity.TOPIC, 10)
    assert limited.over_limit
    assert of_groups(limited) == {}


def test_series_limit_leaves_out_groups_of_the_target_alone_too(publisher: Any) -> None:
    report = with_groups(publisher, ready=0, blocked=10, of_target=400)
    limited = limited_families([report], publisher.own, Granularity.TOPIC, 300)
    assert 290 < limited.series <= 300
    shown = of_groups(limited)
    assert shown["mm2_failover_ready"] == {f"blocked-{number:03d}" for number in range(10)}
    assert len(shown["mm2_group_lag_records"]) == len(shown["mm2_group_lag_seconds"]) < 100


def test_groups_within_limit_are_all_published(publisher: Any) -> None:
    report = with_groups(publisher, ready=10, blocked=10)
    limited = limited_families([report], publisher.own, Granularity.TOPIC, 10_000)
    assert len(of_groups(limited)["mm2_failover_ready"]) == 20


def test_hide_other_groups_shows_accepted_groups_only(publisher: Any) -> None:
    report = hide_other_groups(publisher.report, lambda group: group == "audit")
    limited = limited_families([report], publisher.own, Granularity.TOPIC, 10_000)
    assert set().union(*of_groups(limited).values()) == {"audit"}
    hidden = next(f for f in limited.families if f.metric is catalogue.EXPORTER_HIDDEN_GROUPS)
    assert hidden.series == [(("us->eu", "us", "eu"), 2)]
