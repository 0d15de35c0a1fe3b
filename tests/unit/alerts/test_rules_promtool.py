"""Alerts fire and stay silent as in tests/rules, and these tests notice mutated rules."""

import os
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from promtool import ROOT, RULE_TESTS, needs_promtool
from rule_mutation import (
    EQUIVALENT,
    Mutant,
    all_mutants,
    equivalence_reason,
    judge_mutants,
    mutants,
    sample_mutants,
)

from mm2slo_alerts.alert_files import alert_groups
from mm2slo_alerts.alert_rules import AlertRule
from mm2slo_alerts.promtool_tests import SUFFIX, RuleTest
from mm2slo_cli.alerts_test import RuleFiles, failure, read_rules, read_tests
from mm2slo_core.config.alerting_config import LinksConfig
from mm2slo_core.user_errors import UserError

BUDGET_ALERTS = ("MM2ErrorBudget", "MM2SLO")
"""tests/unit/alerts/burn runs their tests against the whole files."""
ALWAYS = "MM2Watchdog"
"""The alert that always fires."""
NAMES = sorted(path.name.removesuffix(SUFFIX) for path in RULE_TESTS.glob(f"MM2*{SUFFIX}"))
ALERT_SAMPLE = 20
"""Mutants of one alert. All 398 of the error budget's alert take 13 minutes of CPU."""
RECORDING_SAMPLE = 12
"""Mutants of recorded series, seconds each."""


@cache
def rules() -> RuleFiles:
    return read_rules(ROOT / "alerts" / "generated")


@cache
def rule_tests() -> dict[str, RuleTest]:
    return {test.name: test for test in read_tests(RULE_TESTS)}


def alerts() -> dict[str, AlertRule]:
    groups = alert_groups(LinksConfig(runbook="https://example.org/runbooks/"))
    return {
        rule.alert: rule for group in groups for rule in group.rules if isinstance(rule, AlertRule)
    }


@needs_promtool
def test_alerts_fire_and_stay_silent_as_their_rule_tests_expect() -> None:
    tests = [rule_tests()[name] for name in NAMES if not name.startswith(BUDGET_ALERTS)]
    assert len(tests) > 20
    output = failure(tests, (rules().recording, rules().alerts))
    assert not output, output


def test_every_alert_has_a_firing_and_a_silent_case() -> None:
    generated = {
        rule["alert"]
        for group in rules().alerts["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    assert generated == set(alerts())
    assert {name.partition("-")[0] for name in NAMES} == generated
    for name in NAMES:
        test, alert = rule_tests()[name], name.partition("-")[0]
        assert test.alerts == {alert}, "a file tests the alert it is named after"
        firing = {bool(each.get("exp_alerts")) for each in test.checks()}
        assert firing == ({True} if alert == ALWAYS else {True, False})


def test_no_rule_reads_alerts() -> None:
    for file in (rules().alerts, rules().recording):
        for group in file["groups"]:
            assert not [rule for rule in group["rules"] if "ALERTS" in rule["expr"]]


def test_every_alert_links_to_an_existing_runbook() -> None:
    for name, rule in alerts().items():
        assert rule.annotations["runbook_url"] == f"https://example.org/runbooks/{name}.md"
        assert (ROOT / "docs" / "runbooks" / f"{name}.md").is_file()


def test_every_equivalent_matches_a_mutant_and_has_a_reason() -> None:
    made = all_mutants(rules())
    for known in EQUIVALENT:
        assert any(map(known.covers, made)), f"{known.rule}: {known.change}"
        assert len(known.reason.split()) > 3
    assert sum(bool(equivalence_reason(mutant)) for mutant in made) < len(made) / 20


def test_mutants_have_unique_changes() -> None:
    made = [(mutant.rule, mutant.change) for mutant in all_mutants(rules())]
    assert len(set(made)) == len(made)
    assert len(made) > 500


def unexpected(chosen: list[Mutant]) -> list[str]:
    """Surviving mutants, and killed ones that are listed as equivalent."""
    tests = list(rule_tests().values())
    workers = min(2, os.cpu_count() or 1)
    return [
        f"{each.mutant.rule}: {each.mutant.change}"
        for each in judge_mutants(chosen, rules(), tests, workers=workers)
        if not each.is_expected
    ]


@needs_promtool
@pytest.mark.long
def test_rule_tests_kill_sampled_alert_mutants() -> None:
    by_alert: dict[str, list[Mutant]] = {}
    for mutant in mutants(rules().alerts):
        by_alert.setdefault(mutant.rule, []).append(mutant)
    samples = [sample_mutants(found, ALERT_SAMPLE, seed=5) for found in by_alert.values()]
    assert unexpected(list(chain(*samples))) == []


@needs_promtool
@pytest.mark.long
def test_rule_tests_kill_sampled_recording_mutants() -> None:
    chosen = sample_mutants(mutants(rules().recording), RECORDING_SAMPLE, seed=5)
    assert unexpected(chosen) == []


def test_read_tests_outside_of_a_checkout_names_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run in a checkout of mm2slo"):
        read_tests(tmp_path)
