"""Runs promtool, which tests and checks rules."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
import yaml

from mm2slo_alerts.alert_rules import Group, prometheus_text

ROOT: Final = Path(__file__).resolve().parents[2]
RULE_TESTS: Final = ROOT / "tests" / "rules"

needs_promtool = pytest.mark.promtool
"""For tests that run promtool or amtool."""


def run_rule_tests(*files: Path) -> None:
    """Run test files of rules; fails with promtool's output."""
    _run("test", "rules", *map(str, files))


def narrowed(test: Path, folder: Path, groups: Sequence[str]) -> Path:
    """Write *test* with only these *groups* to *folder*: promtool evaluates all its groups."""
    document = yaml.safe_load(test.read_text(encoding="utf-8"))
    kept = [
        group
        for name in document["rule_files"]
        for group in yaml.safe_load((test.parent / name).read_text(encoding="utf-8"))["groups"]
        if group["name"] in groups
    ]
    assert [group["name"] for group in kept] == list(groups)
    document["rule_files"] = ["rules.yml"]
    document.pop("group_eval_order", None)
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": kept}), encoding="utf-8")
    path = folder / test.name
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def check_rules(*files: Path) -> None:
    """Check rule files with all lints; fails with promtool's output."""
    _run("check", "rules", "--lint=all", "--lint-fatal", *map(str, files))


def _run(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def evaluate(
    folder: Path,
    groups: Sequence[Group],
    inputs: Mapping[str, str],
    expected: Mapping[tuple[str, str], Mapping[str, float]],
    *,
    interval: str = "5m",
) -> None:
    """Compare what *groups* record with *expected*: values by series, by expression and time.

    *inputs* are promtool's series, with one value per *interval*, which is also the evaluation
    interval. Groups are evaluated in their order.
    """
    (folder / "rules.yml").write_text(prometheus_text(groups), encoding="utf-8")
    test = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": interval,
        "group_eval_order": [group.name for group in groups],
        "tests": [
            {
                "interval": interval,
                "input_series": [{"series": name, "values": text} for name, text in inputs.items()],
                "promql_expr_test": [
                    {
                        "expr": expr,
                        "eval_time": time,
                        "exp_samples": [
                            {"labels": labels, "value": value} for labels, value in samples.items()
                        ],
                    }
                    for (expr, time), samples in expected.items()
                ],
            }
        ],
    }
    path = folder / "rules.test.yml"
    path.write_text(yaml.safe_dump(test, width=10_000), encoding="utf-8")
    run_rule_tests(path)
