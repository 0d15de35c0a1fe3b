"""The rule file of planned maintenance, evaluated by promtool."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mm2slo_alerts.alert_rules import Scale
from mm2slo_alerts.recording_rules import maintenance_groups, maintenance_text
from mm2slo_core.objectives.exclusion import Exclusion
from mm2slo_core.topology import Flow

US_EU, EU_US, AP_EU = Flow("us", "eu"), Flow("eu", "us"), Flow("ap", "eu")
MINUTE = 60_000
DAY = 1_440 * MINUTE
EXCLUSION = Exclusion(
    id="x1",
    flows=("us->eu",),
    start=10 * MINUTE,
    end=20 * MINUTE,
    reason="upgrade of eu",
    who="ana",
    added_at=0,
)


def promtool(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def active_at(
    folder: Path, exclusions: Sequence[Exclusion], expected: dict[str, list[str]]
) -> subprocess.CompletedProcess[str]:
    """Check with promtool that exactly these flows are in maintenance at each time.

    Its clock starts at the epoch.
    """
    (folder / "rules.yml").write_text(
        maintenance_text(maintenance_groups(exclusions, [US_EU, EU_US, AP_EU]))
    )
    samples = [
        {
            "expr": "flow:mm2_maintenance:active",
            "eval_time": moment,
            "exp_samples": [
                {"labels": f"flow:mm2_maintenance:active{_labels(flow)}", "value": 1}
                for flow in flows
            ],
        }
        for moment, flows in expected.items()
    ]
    test = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "30s",
        "tests": [{"interval": "30s", "input_series": [], "promql_expr_test": samples}],
    }
    (folder / "test.yml").write_text(yaml.safe_dump(test))
    return promtool("test", "rules", "test.yml", folder=folder)


def _labels(label: str) -> str:
    flow = Flow.parse(label)
    return f'{{flow="{flow.label}", source="{flow.source}", target="{flow.target}"}}'


def test_series_exists_from_start_to_end_only(tmp_path: Path) -> None:
    both = [
        EXCLUSION,
        # Adjacent to the first one, for all flows to eu.
        replace(EXCLUSION, id="x2", flows=("*->eu",), start=20 * MINUTE, end=25 * MINUTE),
        replace(EXCLUSION, id="x3", start=40 * MINUTE, end=41 * MINUTE),
    ]
    found = active_at(
        tmp_path,
        both,
        {
            "0m": [],
            "9m30s": [],
            "10m": ["us->eu"],
            "19m30s": ["us->eu"],
            "20m": ["ap->eu", "us->eu"],
            "24m30s": ["ap->eu", "us->eu"],
            "25m": [],
            "39m30s": [],
            "40m": ["us->eu"],
            "40m30s": ["us->eu"],
            "41m": [],
        },
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_times_are_rounded_up_to_next_evaluation(tmp_path: Path) -> None:
    odd = replace(EXCLUSION, start=10 * MINUTE + 1, end=12 * MINUTE + 1)
    found = active_at(
        tmp_path, [odd], {"10m": [], "10m30s": ["us->eu"], "12m": ["us->eu"], "12m30s": []}
    )
    assert found.returncode == 0, found.stdout + found.stderr


GENERATED = Path(__file__).parents[3] / "alerts" / "generated" / "prometheus"
FIRING = 'ALERTS{alertstate="firing"}'
PAGES = ["MM2ErrorBudgetBurn", "MM2FlowStopped"]


@pytest.mark.parametrize(("flow", "fired"), [("us->*", []), ("eu->us", ["MM2FlowStopped"])])
def test_stop_during_maintenance_does_not_page(tmp_path: Path, flow: str, fired: list[str]) -> None:
    """With the generated rules; the flow is stopped from minute 12 to 40."""
    until_42 = replace(EXCLUSION, flows=(flow,), end=42 * MINUTE)
    (tmp_path / "maintenance.yml").write_text(
        maintenance_text(maintenance_groups([until_42], [US_EU, EU_US]))
    )
    rules = yaml.safe_load((GENERATED / "mm2slo-alerts.rules.yml").read_text())["groups"]
    pages = [
        rule for group in rules for rule in group["rules"] if rule.get("alert") in (None, *PAGES)
    ]
    (tmp_path / "pages.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "pages", "rules": pages}]})
    )
    labels = 'flow="us->eu", source="us", target="eu", job="mm2slo", instance="a"'
    key = f'{labels}, sli="availability", tier="all"'
    stopped = [24 <= step < 80 for step in range(141)]
    good, values = 0, []
    for still in stopped:
        good += 0 if still else 30
        values.append(good)
    test = {
        "rule_files": [
            str(GENERATED / "mm2slo-recording.rules.yml"),
            "maintenance.yml",
            "pages.yml",
        ],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "30s",
                "input_series": [
                    {"series": f"mm2_sli_events_total{{{key}}}", "values": "30+30x140"},
                    {
                        "series": f"mm2_sli_good_events_total{{{key}}}",
                        "values": " ".join(map(str, values)),
                    },
                    {
                        "series": f'mm2_flow_state{{{labels}, state="stopped"}}',
                        "values": " ".join(str(int(still)) for still in stopped),
                    },
                    {
                        "series": f'mm2_flow_state{{{labels}, state="running"}}',
                        "values": " ".join(str(int(not still)) for still in stopped),
                    },
                ],
                "promql_expr_test": [
                    {
                        "expr": f"group by (alertname) (max_over_time({FIRING}[70m]))",
                        "eval_time": "70m",
                        "exp_samples": [
                            {"labels": f'{{alertname="{name}"}}', "value": 1} for name in fired
                        ],
                    }
                ],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    found = promtool("test", "rules", "test.yml", folder=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr


def test_series_of_removed_exclusion_ends_at_removal(tmp_path: Path) -> None:
    ended = replace(EXCLUSION, removed_at=15 * MINUTE)
    found = active_at(tmp_path, [ended], {"14m30s": ["us->eu"], "15m": [], "19m": []})
    assert found.returncode == 0, found.stdout + found.stderr


def test_file_does_not_depend_on_time_of_writing(tmp_path: Path) -> None:
    late = replace(EXCLUSION, added_at=12 * MINUTE)
    written = [
        maintenance_text(maintenance_groups([late], [EU_US, US_EU], now))
        for now in (12 * MINUTE, 28 * DAY)
    ]
    assert written[0] == written[1]
    assert (
        written[0]
        == """\
# Written by `mm2slo exclude` from the results store; do not edit.
groups:
  - name: mm2slo-maintenance
    interval: 30s
    rules:
      - record: flow:mm2_maintenance:active
        expr: |-
          vector(1) and (
            vector(time()) >= 720 < 1200
          )
        labels:
          flow: us->eu
          source: us
          target: eu
"""
    )
    (tmp_path / "rules.yml").write_text(written[0])
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", "rules.yml", folder=tmp_path)
    assert checked.returncode == 0, checked.stderr


def test_times_are_exact_to_the_millisecond() -> None:
    odd = replace(EXCLUSION, start=1_795_000_000_005, end=1_795_000_060_120)
    ((rule,),) = (group.rules for group in maintenance_groups([odd], [US_EU]))
    assert "vector(time()) >= 1795000000.005 < 1795000060.12\n" in rule.expr


def test_exclusions_before_longest_window_are_omitted() -> None:
    end = EXCLUSION.end
    assert maintenance_groups([EXCLUSION], [US_EU], end + 28 * DAY - 1) != ()
    assert maintenance_groups([EXCLUSION], [US_EU], end + 28 * DAY) == ()
    assert maintenance_groups([EXCLUSION], [US_EU], end + 28 * DAY, window=35 * 86_400.0) != ()


def test_exclusions_without_effect_in_prometheus_are_omitted() -> None:
    assert maintenance_groups([replace(EXCLUSION, added_at=EXCLUSION.end)], [US_EU]) == ()
    assert maintenance_groups([replace(EXCLUSION, removed_at=EXCLUSION.start)], [US_EU]) == ()
    assert maintenance_groups([replace(EXCLUSION, flows=("eu->*",))], [US_EU, AP_EU]) == ()


def test_prometheus_loads_a_file_without_exclusions(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(maintenance_text(()))
    (tmp_path / "prometheus.yml").write_text("rule_files: [rules.yml]\n")
    checked = promtool("check", "config", "prometheus.yml", folder=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "0 rules found" in checked.stdout


def test_special_characters_in_aliases_are_escaped(tmp_path: Path) -> None:
    odd = Flow("u:s", '"eu\\{{x}}')
    written = maintenance_text(maintenance_groups([replace(EXCLUSION, flows=("*",))], [odd]))
    (tmp_path / "rules.yml").write_text(written)
    assert promtool("check", "rules", "rules.yml", folder=tmp_path).returncode == 0
    document: Any = yaml.safe_load(written)
    assert document["groups"][0]["rules"][0]["labels"]["flow"] == odd.label


def test_scale_shortens_only_the_interval() -> None:
    (whole,) = maintenance_groups([EXCLUSION], [US_EU])
    (scaled,) = maintenance_groups([EXCLUSION], [US_EU], scale=Scale(1 / 60))
    assert (whole.interval, scaled.interval) == (30.0, 0.5)
    assert whole.rules == scaled.rules
