"""Mutants that mutation testing makes of a rule."""

from typing import Any

import pytest
from rule_mutation import mutants


def mutated(expression: str, **rule: str) -> list[str]:
    """Mutated expressions, then the mutated `for` and `keep_firing_for`."""
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
def test_mutants_of_expression_replace_each_deciding_token(
    expression: str, expected: list[str]
) -> None:
    assert mutated(expression) == expected


def test_mutants_of_alert_durations_are_half_and_one_and_a_half() -> None:
    assert mutated("x", **{"for": "1m", "keep_firing_for": "10m"}) == [
        "for 30s", "for 1m30s", "keep_firing_for 5m", "keep_firing_for 15m",
    ]  # fmt: skip


def test_mutant_applied_changes_copy_and_shows_changed_line() -> None:
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


def test_what_cannot_be_read_is_an_error_not_a_rule_without_mutated() -> None:
    with pytest.raises(ValueError, match="cannot read PromQL at '~ 1'"):
        mutated("x ~ 1")
