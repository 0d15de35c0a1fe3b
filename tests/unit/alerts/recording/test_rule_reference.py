"""Python and the recording rules in Prometheus agree to 1e-9."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from counter_scenarios import Scenario, expected, promtool, random_scenario
from rule_reference import (
    Step,
    measured_share,
    short_window,
    step,
    step_coverage,
    step_share,
    step_sum,
)

from mm2slo_alerts.alert_rules import prometheus_text
from mm2slo_alerts.recording_rules import recording_groups
from mm2slo_core.catalogue.prometheus_series import LONG_WINDOWS
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.error_budget import Budget, Counts, burn_rate, error_ratio
from mm2slo_core.objectives.objective import ObjectiveRule

pytestmark = pytest.mark.promtool
TARGET = 0.999
WINDOW = 3 * 86_400.0
RULE = ObjectiveRule(flows=("*",), key=SliKey(Sli.AVAILABILITY), target=TARGET, window=WINDOW)
DIRECT = {"5m": 300.0, "1h": 3600.0}
CHAINS = {"2h": 7200.0, "6h": 21_600.0, "1d": 86_400.0, "3d": 259_200.0}


def rules() -> str:
    return prometheus_text(recording_groups([RULE]))


def of_counts(
    window: str, kind: str, counts: Counts | None, share: float | None = 1.0
) -> Iterator[tuple[str, float | None]]:
    """*share* of a long window that is measured; None: the burn rate is not compared."""
    yield f"flow:mm2_sli_events:{kind}{window}", None if counts is None else counts.events
    yield f"flow:mm2_sli_bad:{kind}{window}", None if counts is None else counts.bad
    ratio = None if counts is None else error_ratio(counts)
    yield f"flow:mm2_slo_error:ratio{window}", ratio
    burn = None if counts is None else burn_rate(counts, TARGET)
    if share is not None:
        yield f"flow:mm2_slo_burn:ratio{window}", None if burn is None else burn * share


def direct_checks(scenario: Scenario, moments: range) -> Iterator[tuple[int, str, float]]:
    for at in moments:
        for window, length in DIRECT.items():
            counts = short_window(scenario.counters, at * 1000, length, scenario.active_times)
            share: float | None = 1.0
            if window in LONG_WINDOWS:
                # promtool records steps every 30 seconds, too: maintenance counts too often.
                planned = any(scenario.active)
                share = None if planned else measured_share(scenario.counters, at * 1000, length)
            for name, value in of_counts(window, "increase", counts, share):
                yield at, *expected(name, value)


def long_checks(scenario: Scenario, moments: range) -> Iterator[tuple[int, str, float]]:
    last = moments[-1]
    steps = [
        step(scenario.counters, at * 1000, scenario.active_times)
        for at in range(300, last + 1, 300)
    ]
    for at in moments:
        now = at * 1000
        yield from ((at, *each) for each in step_checks(steps[at // 300 - 1]))
        for window, length in CHAINS.items():
            share = step_share(steps, now, length) if window in LONG_WINDOWS else 1.0
            for name, value in of_counts(window, "sum", step_sum(steps, now, length), share):
                yield at, *expected(name, value)
        counts = step_sum(steps, now, WINDOW)
        share = step_share(steps, now, WINDOW)
        for name, value in of_counts("_window", "sum", counts, share):
            yield at, *expected(name, value)
        left = (
            None
            if counts is None
            else Budget(
                target=TARGET, window=WINDOW, measured=share * WINDOW, counts=counts
            ).remaining
        )
        yield at, *expected("flow:mm2_slo_budget_remaining:ratio", left)
        # A step is expected from five minutes after the first sample, except in maintenance.
        for suffix, length in (("1h", 3600.0), ("_window", WINDOW)):
            due = sum(
                each.excluded is None and now - length * 1000 < each.at <= now for each in steps
            )
            known = step_coverage(steps, due, now, length)
            yield at, *expected(f"flow:mm2_slo_coverage:ratio{suffix}", known)


def step_checks(found: Step) -> Iterator[tuple[str, float]]:
    counts = found.counts
    yield expected("flow:mm2_sli_events:step5m", None if counts is None else counts.events)
    yield expected("flow:mm2_sli_bad:step5m", None if counts is None else counts.bad)
    yield expected("flow:mm2_sli_unknown:step5m", found.unknown)
    yield expected("flow:mm2_sli_excluded:step5m", found.excluded)


def test_short_windows_agree_at_any_scrape_phase(tmp_path: Path) -> None:
    scenario = random_scenario(1, 2.0)
    checks = list(direct_checks(scenario, range(30, 7200, 630)))
    assert len(checks) > 90
    assert promtool(tmp_path, rules(), scenario, 30, checks) == ""


def test_short_windows_agree_around_maintenance(tmp_path: Path) -> None:
    scenario = random_scenario(2, 2.0, maintenance=(0.8, 0.9))
    checks = list(direct_checks(scenario, range(2760, 7200, 390)))
    assert promtool(tmp_path, rules(), scenario, 30, checks) == ""


def test_steps_sums_and_budget_agree(tmp_path: Path) -> None:
    scenario = random_scenario(3, 9.0, maintenance=(4.0, 4.5))
    checks = list(long_checks(scenario, range(600, 9 * 3600, 2400)))
    assert len(checks) > 300
    assert promtool(tmp_path, rules(), scenario, 300, checks) == ""


@pytest.mark.long
def test_steps_sums_and_budget_agree_beyond_the_longest_window(tmp_path: Path) -> None:
    scenario = random_scenario(4, 24.0 * 4, maintenance=(30.0, 33.0))
    checks = list(long_checks(scenario, range(4 * 86_400 - 39_600, 4 * 86_400, 6000)))
    assert promtool(tmp_path, rules(), scenario, 300, checks) == ""


def test_promtool_reports_a_wrong_value(tmp_path: Path) -> None:
    scenario = random_scenario(1, 1.0)
    counts = short_window(scenario.counters, 1_800_000, 300.0)
    assert counts is not None
    name, wrong = "flow:mm2_sli_events:increase5m", counts.events * (1 + 1e-8)
    output = promtool(tmp_path, rules(), scenario, 30, [(1800, *expected(name, wrong))])
    assert "got: {} 0E+00" in output
