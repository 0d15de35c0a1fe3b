import pytest

from mm2slo_core.catalogue.promql import add_matcher, equal

SERIES = ("mm2_lag", "flow:mm2_bad:sum")
NAMESPACE = equal("namespace", "a")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("mm2_lag", 'mm2_lag{namespace="a"}'),
        ('mm2_lag{flow="x}"}[5m]', 'mm2_lag{flow="x}", namespace="a"}[5m]'),
        ("mm2_lag{}", 'mm2_lag{namespace="a"}'),
        ("mm2_lag{f=~`${f:regex}`}", 'mm2_lag{f=~`${f:regex}`, namespace="a"}'),
        ("flow:mm2_bad:sum > 0", 'flow:mm2_bad:sum{namespace="a"} > 0'),
        ("max by (mm2) (mm2_lag_total)", "max by (mm2) (mm2_lag_total)"),
        ('label_replace(up, "x", "mm2_lag", "", "")', 'label_replace(up, "x", "mm2_lag", "", "")'),
        ("label_values(mm2_lag, flow)", 'label_values(mm2_lag{namespace="a"}, flow)'),
    ],
)
def test_add_matcher_changes_selectors_of_the_series_only(expression: str, expected: str) -> None:
    assert add_matcher(expression, SERIES, NAMESPACE) == expected
