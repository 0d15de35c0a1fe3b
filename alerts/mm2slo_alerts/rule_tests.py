"""promtool's test files: which rules each is about, and both reduced to what belongs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SUFFIX: Final = ".test.yml"
RULES: Final = "rules.yml"
"""The name under which a reduced test looks for its rules, beside it."""
_ADDRESSES: Final = ("runbook_url", "dashboard_url", "report_url")


@dataclass(frozen=True, slots=True)
class RuleTest:
    """One test file, as read from YAML; it is about the alerts that it expects or rules out."""

    name: str
    document: Mapping[str, Any]

    @property
    def alerts(self) -> frozenset[str]:
        """Names of the alerts that the file tests."""
        return frozenset(check["alertname"] for check in self._checks())

    @property
    def firing(self) -> frozenset[str]:
        """Alerts of which the file has a case in which they fire."""
        return frozenset(check["alertname"] for check in self._checks() if check.get("exp_alerts"))

    @property
    def silent(self) -> frozenset[str]:
        """Alerts of which the file has a case in which they do not."""
        return frozenset(
            check["alertname"] for check in self._checks() if not check.get("exp_alerts")
        )

    @property
    def needs_recording(self) -> bool:
        """Whether the file reads recorded series that it does not give itself."""
        return any("recording" in str(name) for name in self.document["rule_files"])

    def about(self, rule: str) -> bool:
        """Whether the file tests the alert or the recorded series *rule*."""
        return rule in self.alerts or (
            self.needs_recording and any(rule in query for query in self._queries())
        )

    def reduced(self) -> dict[str, Any]:
        """The test with its rules beside it, in a file called `RULES`."""
        return {**self.document, "rule_files": [RULES]}

    def rules_of(self, *documents: Mapping[str, Any]) -> dict[str, Any]:
        """The rules of rule files that the test is about.

        Addresses in annotations are left out: they are a configuration's own, and tests name none.
        """
        groups = []
        for group in (group for document in documents for group in document["groups"]):
            rules = [
                _without_addresses(rule)
                for rule in group["rules"]
                if rule.get("alert") in self.alerts or ("record" in rule and self.needs_recording)
            ]
            if rules:
                groups.append({**group, "rules": rules})
        return {"groups": groups}

    def _queries(self) -> list[str]:
        return [
            check["expr"]
            for test in self.document["tests"]
            for check in test.get("promql_expr_test", ())
        ]

    def _checks(self) -> list[Mapping[str, Any]]:
        return [
            check for test in self.document["tests"] for check in test.get("alert_rule_test", ())
        ]


def _without_addresses(rule: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        name: text for name, text in rule.get("annotations", {}).items() if name not in _ADDRESSES
    }
    return {**rule, "annotations": kept} if kept else dict(rule)
