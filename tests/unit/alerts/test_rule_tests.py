"""Tests of rules reduced to the rules they need."""

from mm2slo_alerts.promtool_tests import RuleTest


def test_rule_test_keeps_its_own_alerts_without_links() -> None:
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
    recording = {"groups": [{"name": "i", "rules": [{"record": "s", "expr": "z"}]}]}
    assert test.rules_of(documents, recording) == {
        "groups": [
            {"name": "g", "rules": [{"alert": "A", "expr": "x", "annotations": {"summary": "s"}}]},
            {"name": "h", "rules": [{"record": "r", "expr": "z"}]},
        ]
    }
    assert [(each["alertname"], each["exp_alerts"]) for each in test.checks()] == [("A", [])]
    assert test.reduced()["rule_files"] == ["rules.yml"]
