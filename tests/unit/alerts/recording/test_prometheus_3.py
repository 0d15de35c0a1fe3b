"""The review for Prometheus 3: every rule has a reviewed shape."""

from __future__ import annotations

import re

import pytest

from mm2slo_alerts import recording
from mm2slo_alerts.output_files import alert_groups
from mm2slo_alerts.prometheus_3 import NEWEST, STEPS, SUBQUERY, UnreviewedError, reviewed, shapes
from mm2slo_alerts.rule_model import Links
from mm2slo_core.config.published_indicators import default_objective_rules


def test_every_rule_was_reviewed() -> None:
    groups = (*recording.groups(default_objective_rules()), *alert_groups(Links()))
    assert len(reviewed(groups)) == sum(len(group.rules) for group in groups)


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
    for group in recording.groups(default_objective_rules()):
        for rule in group.rules:
            for length in re.findall(r"(?:sum|count)_over_time\([^\[]*\[([^\]]*)\]", rule.expr):
                # Half an interval shorter: 5 minutes or 30 seconds.
                assert length.endswith(("57m30s", "m45s"))
