"""The wrongs that the mutation run puts into rules, one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mm2slo_alerts.mutation import mutants
from mm2slo_alerts.rule_tests import RuleTest

if TYPE_CHECKING:
    from typing import Any


def wrongs(expression: str, **rule: str) -> list[str]:
    """What the expression becomes, or `for` and `keep_firing_for` where these are changed."""
    document = {"groups": [{"name": "g", "rules": [{"alert": "A", "expr": expression, **rule}]}]}
    return [
        mutant.value if mutant.key == "expr" else f"{mutant.key} {mutant.value}"
        for mutant in mutants(document)
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x > 0.5", ["x >= 0.5", "x < 0.5", "x > 0.45", "x > 0.55"]),
        ("x >= y", ["x > y", "x < y"]),
        ("x < y", ["x <= y", "x > y"]),
        ("x <= y", ["x < y", "x > y"]),
        ("x == 3", ["x != 3", "x == 2", "x == 4"]),
        ("x != y", ["x == y"]),
        ("x and y", ["x or y", "x unless y"]),
        ("x or y", ["x and y", "x unless y"]),
        ("x unless y", ["x and y", "x or y"]),
        ("x - y * 12", ["x + y * 12", "x - y / 12", "x - y * 10.8", "x - y * 13.2"]),
        ("x > -1", ["x >= -1", "x < -1", "x > -0", "x > -2"]),
        ('x{a="1"}', ["x{}", 'x{a!="1"}']),
        ('x{a=~"1|2", b!="3"}', [
            'x{b!="3"}', 'x{a!~"1|2", b!="3"}', 'x{a=~"1|2"}', 'x{a=~"1|2", b="3"}',
        ]),
        ("max by (a, b) (x)", ["min by (a, b) (x)", "max by (b) (x)", "max by (a) (x)"]),
        ("sum(x)", ["max(x)"]),
        ("x and on (a) y", ["x or on (a) y", "x unless on (a) y", "x and on () y"]),
        ("increase(x[5m])", ["delta(x[5m])", "increase(x[2m30s])", "increase(x[10m])"]),
        ("x[1h] offset 1d", ["x[30m] offset 1d", "x[2h] offset 1d", "x[1h] offset 12h",
                             "x[1h] offset 2d"]),
        ("f((x)[45m:30s])", ["f((x)[22m30s:30s])", "f((x)[1h30m:30s])", "f((x)[45m:1m])"]),
        ("last_over_time(x[2m])", [
            "max_over_time(x[2m])", "min_over_time(x[2m])",
            "last_over_time(x[1m])", "last_over_time(x[4m])",
        ]),
        ('label_replace(x, "a", "$1", "b", "(.*) > 1")', []),
    ],
)  # fmt: skip
def test_each_token_that_decides_something_becomes_its_neighbours(
    expression: str, expected: list[str]
) -> None:
    assert wrongs(expression) == expected


def test_durations_of_the_alert_become_half_and_half_as_much_again() -> None:
    assert wrongs("x", **{"for": "1m", "keep_firing_for": "10m"}) == [
        "for 30s", "for 1m30s", "keep_firing_for 5m", "keep_firing_for 15m",
    ]  # fmt: skip


def test_a_mutant_shows_its_line_and_changes_a_copy_alone() -> None:
    document: dict[str, Any] = {
        "groups": [
            {"name": "g", "rules": [{"record": "r", "expr": "y"}]},
            {"name": "h", "rules": [{"alert": "A", "expr": "x > 0\nand\n  z\nor\nx > 0"}]},
        ]
    }
    found = mutants(document)
    assert [mutant.change for mutant in found if ">=" in mutant.change] == [
        "x [> -> >=] 0",
        "x [> -> >=] 0 (place 2)",
    ]
    changed = found[0].applied(document)
    assert changed["groups"][1]["rules"][0]["expr"].startswith("x >= 0")
    assert document["groups"][1]["rules"][0]["expr"].startswith("x > 0")


def test_what_cannot_be_read_is_an_error_not_a_rule_without_wrongs() -> None:
    with pytest.raises(ValueError, match="cannot read PromQL at '~ 1'"):
        wrongs("x ~ 1")


def test_a_test_takes_its_own_alerts_along_without_addresses() -> None:
    test = RuleTest(
        "A",
        {
            "rule_files": ["../../alerts/generated/prometheus/mm2slo-alerts.rules.yml"],
            "tests": [{"alert_rule_test": [{"alertname": "A", "exp_alerts": []}]}],
        },
    )
    mine = {"alert": "A", "expr": "x", "annotations": {"summary": "s", "runbook_url": "u"}}
    documents = {
        "groups": [
            {"name": "g", "rules": [mine, {"alert": "B", "expr": "y"}]},
            {"name": "h", "rules": [{"record": "r", "expr": "z"}]},
        ]
    }
    assert test.rules_of(documents) == {
        "groups": [
            {"name": "g", "rules": [{"alert": "A", "expr": "x", "annotations": {"summary": "s"}}]}
        ]
    }
    assert not test.firing
    assert test.silent == {"A"}
    assert test.reduced()["rule_files"] == ["rules.yml"]
