"""Each alert fires and stays silent as tests/rules says, and the tests would notice a wrong."""

from __future__ import annotations

import os
from functools import cache

import pytest
from promtool import ROOT, RULE_TESTS, needs_promtool

from mm2slo_alerts.equivalents import EQUIVALENT, known_reason
from mm2slo_alerts.files import alert_groups
from mm2slo_alerts.model import AlertRule, Links
from mm2slo_alerts.rule_tests import SUFFIX, RuleTest
from mm2slo_cli.alerts_mutants import alert_mutants, drawn, judged, recording_mutants
from mm2slo_cli.alerts_promtool import RuleFiles, failure, read_rules, read_tests

ELSEWHERE = ("MM2ErrorBudget", "MM2SLO")
"""Alerts about objectives: tests/unit/alerts/burn runs their tests against the whole files."""
ALWAYS = "MM2Watchdog"
"""The one alert that must never be silent."""
NAMES = sorted(path.name.removesuffix(SUFFIX) for path in RULE_TESTS.glob(f"MM2*{SUFFIX}"))
"""Those about recorded series, which no alert is named after, have a test of their own as well."""
SAMPLE = 12
"""Wrongs that the default suite tries, about half a second each; the long suite tries all."""


@cache
def rules() -> RuleFiles:
    return read_rules(ROOT / "alerts" / "generated")


@cache
def rule_tests() -> dict[str, RuleTest]:
    return {test.name: test for test in read_tests(RULE_TESTS)}


def alerts() -> dict[str, AlertRule]:
    groups = alert_groups(Links(runbook="https://example.org/runbooks/"))
    return {
        rule.alert: rule for group in groups for rule in group.rules if isinstance(rule, AlertRule)
    }


@needs_promtool
@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(ELSEWHERE)])
def test_fires_and_stays_silent_as_written_by_hand(name: str) -> None:
    words = failure(rule_tests()[name], (rules().recording, rules().alerts))
    assert not words, words


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    generated = {rule["alert"] for group in rules().alerts["groups"] for rule in group["rules"]}
    assert generated == set(alerts())
    assert set(NAMES) == generated
    for name in NAMES:
        test = rule_tests()[name]
        assert test.alerts == {name}, "a file is about the alert it is named after"
        assert test.firing == {name}
        assert test.silent == {name} or name == ALWAYS


def test_every_alert_names_its_runbook() -> None:
    for name, rule in alerts().items():
        assert rule.annotations["runbook_url"] == f"https://example.org/runbooks/{name}.md"
        assert (ROOT / "docs" / "runbooks" / f"{name}.md").is_file()


def test_every_known_equivalent_is_still_a_wrong_that_can_be_made_and_says_why() -> None:
    made = [*alert_mutants(rules()), *recording_mutants(rules())]
    for known in EQUIVALENT:
        assert any(map(known.covers, made)), f"{known.rule}: {known.change}"
        assert len(known.reason.split()) > 3
    assert sum(bool(known_reason(mutant)) for mutant in made) < len(made) / 20


def test_wrongs_are_told_apart() -> None:
    wrongs = [*alert_mutants(rules()), *recording_mutants(rules())]
    made = [(mutant.rule, mutant.change) for mutant in wrongs]
    assert len(set(made)) == len(made)
    assert len(made) > 500


def unexpected(count: int | None) -> list[str]:
    """The verdicts that are not as they should be."""
    found = alert_mutants(rules())
    verdicts = judged(
        found if count is None else drawn(found, count, seed=5),
        rules(),
        list(rule_tests().values()),
        workers=min(2, os.cpu_count() or 1),
        tell=lambda _verdict: None,
    )
    return [
        f"{each.mutant.rule}: {each.mutant.change}" for each in verdicts if not each.as_expected
    ]


@needs_promtool
def test_the_tests_notice_each_of_some_wrongs() -> None:
    assert unexpected(SAMPLE) == []


@needs_promtool
@pytest.mark.long
def test_the_tests_notice_every_wrong() -> None:
    assert unexpected(None) == []
