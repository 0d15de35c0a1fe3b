"""promtool's test files, each reduced to the rules that it tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SUFFIX: Final = ".test.yml"

RULES: Final = "rules.yml"
"""Name of the rule file next to a reduced test."""
_LINKS: Final = ("runbook_url", "dashboard_url", "report_url", "splunk_url")


@dataclass(frozen=True, slots=True)
class RuleTest:
    """One test file, as read from YAML."""

    name: str
    document: Mapping[str, Any]

    @property
    def alerts(self) -> frozenset[str]:
        """Names of the alerts that the file tests."""
        return frozenset(check["alertname"] for check in self.checks())

    @property
    def needs_recording(self) -> bool:
        """Whether the file reads recorded series that are not among its input."""
        return any("recording" in str(name) for name in self.document["rule_files"])

    def reduced(self) -> dict[str, Any]:
        """Return the test with its rules next to it, in the file `RULES`."""
        return {**self.document, "rule_files": [RULES]}

    def rules_of(self, *documents: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rules that the test needs.

        Links in annotations are removed: they depend on the configuration.
        """
        groups = []
        for document in documents:
            tested = [
                rule
                for group in document["groups"]
                for rule in group["rules"]
                if rule.get("alert") in self.alerts
            ]
            for group in document["groups"]:
                rules = [
                    _without_links(rule)
                    for rule in group["rules"]
                    if rule in tested or ("record" in rule and (tested or self.needs_recording))
                ]
                if rules:
                    groups.append({**group, "rules": rules})
        return {"groups": groups}

    def checks(self) -> list[Mapping[str, Any]]:
        """Return what is expected of alerts; without `exp_alerts`, the alert must not fire."""
        return [
            check for test in self.document["tests"] for check in test.get("alert_rule_test", ())
        ]


def _without_links(rule: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: text for name, text in rule.get("annotations", {}).items() if name not in _LINKS}
    return {**rule, "annotations": kept} if kept else dict(rule)
