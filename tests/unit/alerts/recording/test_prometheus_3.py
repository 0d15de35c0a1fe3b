"""The review for Prometheus 3: every rule has a reviewed shape."""

import re
from pathlib import Path

import pytest
from prometheus_3 import NEWEST, STEPS, SUBQUERY, UnreviewedError, shapes

from mm2slo_alerts import recording_rules
from mm2slo_alerts.alert_files import alert_groups
from mm2slo_alerts.alert_rules import AlertRule, Rule
from mm2slo_core.config.config_model import default_objective_rules

_PAGE = Path("docs/prometheus-3.md")


def test_page_lists_every_rule_with_its_shapes() -> None:
    groups = (
        *recording_rules.recording_groups(default_objective_rules()),
        *alert_groups(),
    )
    rows = [_row(group.name, rule) for group in groups for rule in group.rules]
    page = _PAGE.read_text(encoding="utf-8")
    _, _, listed = page.partition(
        "| Rule | Group | Shapes | Verdict |\n| --- | --- | --- | --- |\n"
    )
    assert listed.splitlines() == list(dict.fromkeys(rows))
    for shape in {each for group in groups for rule in group.rules for each in shapes(rule.expr)}:
        assert f"| {shape} |" in page


def _row(group: str, rule: Rule) -> str:
    name = rule.alert if isinstance(rule, AlertRule) else rule.record
    return f"| `{name}` | `{group}` | {', '.join(shapes(rule.expr))} | same |"


@pytest.mark.parametrize(
    "expr",
    [
        'sum(rate(x_bucket{le="10"}[5m]))',
        "histogram_quantile(0.9, x)",
        "holt_winters(x[1h], 0.5, 0.5)",
    ],
)
def test_unreviewed_function_raises_error(expr: str) -> None:
    with pytest.raises(UnreviewedError, match="not reviewed for Prometheus 3"):
        shapes(expr)


def test_shapes_of_expressions() -> None:
    assert shapes("a / on (flow) b") == (NEWEST,)
    assert shapes("sum_over_time(a[57m30s])") == (STEPS,)
    assert shapes("count_over_time((a > 0)[1h:30s])") == (SUBQUERY,)
    # Strings are not code.
    assert shapes('a{reason="rate(x)"}') == (NEWEST,)


def test_no_range_over_recorded_series_ends_on_a_sample() -> None:
    for group in recording_rules.recording_groups(default_objective_rules()):
        for rule in group.rules:
            for length in re.findall(r"(?:sum|count)_over_time\([^\[]*\[([^\]]*)\]", rule.expr):
                # Half an interval shorter: 5 minutes or 30 seconds.
                assert length.endswith(("57m30s", "m45s"))
