"""PromQL from the catalogue, and rule files as YAML."""

from pathlib import Path

import pytest
import yaml
from promtool import check_rules, needs_promtool

from mm2slo_alerts.alert_rules import (
    AlertRule,
    Group,
    RecordingRule,
    Scale,
    prometheus_rule_resource,
    prometheus_text,
)
from mm2slo_alerts.objective_series import objective_series
from mm2slo_core.catalogue.flow_metrics import CANARY_LATENCY_SECONDS, FLOW_STATE, SLI_EVENTS_TOTAL
from mm2slo_core.catalogue.prometheus_series import ERROR
from mm2slo_core.catalogue.promql import (
    aggregate,
    duration,
    either,
    equal,
    matching,
    number,
    on,
    over,
    quoted,
    select,
    unequal,
)
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import ObjectiveRule

SPECIAL = 'a"b\\c\n{{ d }} # - é: [x]\t`|*'


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.001, "1ms"),
        (0.5, "500ms"),
        (90, "1m30s"),
        (3450, "57m30s"),
        (2_419_050, "27d23h57m30s"),
        (5400, "1h30m"),
    ],
)
def test_duration_is_formatted_like_prometheus(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_zero_duration_is_rejected() -> None:
    with pytest.raises(ValueError, match="duration is 0 s; expected 1 ms or more"):
        duration(0)


def test_number_has_no_rounding_artefacts() -> None:
    assert (number(0.1 + 0.2), number(1 - 0.999), number(12.0)) == ("0.3", "0.001", "12")


def test_select_and_aggregate_by_existing_labels() -> None:
    state = select(FLOW_STATE, equal("state", "stopped"), matching("flow", "us->.*"))
    assert str(state) == 'mm2_flow_state{state="stopped", flow=~"us->.*"}'
    assert str(aggregate("max", state, ("flow",))) == f"max by (flow) ({state})"
    growth = over("increase", SLI_EVENTS_TOTAL, 300, unequal("tier", "all"))
    assert str(growth) == 'increase(mm2_sli_events_total{tier!="all"}[5m])'
    assert on(("flow", "sli"), growth, select(ERROR["5m"])) == "on (flow, sli)"
    assert either(state, growth).labels == ("flow", "source", "target", "job", "instance")
    past = select(ERROR["1h"], offset=300)
    assert str(past) == "flow:mm2_slo_error:ratio1h offset 5m"


def test_unknown_label_is_rejected() -> None:
    with pytest.raises(ValueError, match="mm2_flow_state has no label topic"):
        select(FLOW_STATE, equal("topic", "x"))
    with pytest.raises(ValueError, match="has no label state"):
        aggregate("sum", select(SLI_EVENTS_TOTAL), ("state",))
    with pytest.raises(ValueError, match="has no label state"):
        on(("state",), select(FLOW_STATE), select(SLI_EVENTS_TOTAL))


def test_counter_function_of_gauge_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"increase\(\) needs a counter; mm2_flow_state"):
        over("increase", FLOW_STATE, 60)


def test_histogram_is_selected_by_part() -> None:
    bucket = select(CANARY_LATENCY_SECONDS, equal("le", "10.0"), part="bucket")
    assert str(bucket) == 'mm2_canary_latency_seconds_bucket{le="10.0"}'
    with pytest.raises(ValueError, match="has no samples named mm2_canary_latency_seconds_"):
        select(CANARY_LATENCY_SECONDS)


def test_quoted_escapes_quotes_and_newlines() -> None:
    assert quoted('a"} or b{c="\\') == '"a\\"} or b{c=\\"\\\\"'
    assert quoted("a\nb\r") == '"a\\nb\\r"'


@needs_promtool
def test_special_characters_in_rules_are_escaped(tmp_path: Path) -> None:
    rule = ObjectiveRule(
        flows=(SPECIAL, "us->*"), key=SliKey(Sli.ORDER), target=0.9, owner=SPECIAL, channel="x: y"
    )
    (objective, _) = objective_series([rule], Scale())
    alert = AlertRule(alert="A", expr="up == 0", annotations={"summary": SPECIAL.replace("{{", "")})
    group = Group(name="mm2slo: #1", interval=30, rules=(objective, alert))
    text = prometheus_text((group,))
    (read,) = yaml.safe_load(text)["groups"]
    assert read["name"] == "mm2slo: #1"
    assert read["rules"][0]["labels"]["owner"] == SPECIAL
    assert read["rules"][0]["expr"] == objective.expr
    path = tmp_path / "rules.yml"
    path.write_text(text, encoding="utf-8")
    check_rules(path)


def test_scale_never_returns_less_than_a_millisecond() -> None:
    scale = Scale(1 / 60)
    assert (scale(300), scale(0), scale(0.001)) == (5.0, 0.0, 0.001)
    with pytest.raises(ValueError, match="scale is 2: expected above 0 and at most 1"):
        Scale(2)


def test_resource_and_file_have_same_groups() -> None:
    group = Group(
        name="g",
        interval=30,
        rules=(
            RecordingRule(record="a:b:c", expr="x\n+ y", labels={"l": "1"}),
            AlertRule(alert="A", expr="up == 0", hold=60, keep=300, labels={"severity": "page"}),
        ),
    )
    file = yaml.safe_load(prometheus_text((group,)))
    resource = yaml.safe_load(prometheus_rule_resource((group,), AlertingConfig()))
    assert resource["spec"] == file
    assert resource["kind"] == "PrometheusRule"
    assert file["groups"][0]["rules"] == [
        {"record": "a:b:c", "expr": "x\n+ y", "labels": {"l": "1"}},
        {
            "alert": "A",
            "expr": "up == 0",
            "for": "1m",
            "keep_firing_for": "5m",
            "labels": {"severity": "page"},
        },
    ]
    assert "expr: |-\n          x\n          + y\n" in prometheus_text((group,))
