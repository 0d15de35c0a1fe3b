"""The fragment for an existing Alertmanager: merge, routes and shadowed routes."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from promtool import needs_promtool

from mm2slo_alerts.alert_rules import yaml_text
from mm2slo_alerts.alertmanager_config import TEMPLATES, document
from mm2slo_alerts.alertmanager_variants import fragment, merged, shadowed
from mm2slo_alerts.slack_template import message_template
from mm2slo_core.config.alerting_config import AlertingConfig, SlackChannel, SloConfig
from mm2slo_core.user_errors import UserError

CONFIG = AlertingConfig(
    slack=(SlackChannel(name="pay", webhook_url_file="/run/secrets/pay", channel="#pay"),)
)
EXISTING: dict[str, Any] = yaml.safe_load(
    """
route:
  receiver: default
  routes:
    - {matchers: ['severity="page"'], receiver: pager}
    - {match: {team: billing}, receiver: default}
    - {match_re: {alertname: MM2Topic.*}, receiver: default}
receivers: [{name: default}, {name: pager}]
inhibit_rules: [{source_matchers: [a="b"], target_matchers: [a="c"]}]
"""
)


def added() -> dict[str, Any]:
    return fragment(document(CONFIG, SloConfig()))


@needs_promtool
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (("alertname=MM2FlowStopped", "severity=page", "flow=us->eu"), "channel-pay"),
        (("alertname=MM2ExporterDown", "severity=page"), "channel-pay"),
        (("alertname=KafkaDown", "severity=page"), "pager"),
        (("alertname=KafkaDown", "severity=ticket"), "default"),
    ],
)
def test_merged_configuration_routes_ours_to_fragment_and_others_as_before(
    tmp_path: Path, labels: tuple[str, ...], receiver: str
) -> None:
    path = tmp_path / "alertmanager.yml"
    path.write_text(yaml_text(merged(EXISTING, added())), encoding="utf-8")
    (tmp_path / TEMPLATES).parent.mkdir()
    (tmp_path / TEMPLATES).write_text(message_template(CONFIG), encoding="utf-8")
    for command in (
        ["amtool", "check-config", str(path)],
        [
            *("amtool", "config", "routes", "test", f"--config.file={path}"),
            *(f"--verify.receivers={receiver}", *labels),
        ],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 0, done.stdout + done.stderr


def test_merge_keeps_existing_parts() -> None:
    found = merged(EXISTING, added())
    assert [each["name"] for each in found["receivers"]][:2] == ["default", "pager"]
    assert found["route"]["receiver"] == "default"
    assert found["inhibit_rules"][0] == EXISTING["inhibit_rules"][0]
    assert len(found["inhibit_rules"]) == 6
    assert found["templates"] == [TEMPLATES]


def test_shadowed_routes_are_named_with_their_alerts() -> None:
    alerts = [
        {"alertname": "MM2FlowStopped", "severity": "page"},
        {"alertname": "MM2TopicMissing", "severity": "ticket"},
    ]
    assert shadowed(EXISTING, alerts) == (
        'the fragment shadows the route severity="page" (receiver pager), which would no longer '
        "receive MM2FlowStopped; remove it, or set continue: true in the fragment's route",
        'the fragment shadows the route alertname=~"MM2Topic.*" (receiver default), which would no '
        "longer receive MM2TopicMissing; remove it, or set continue: true in the fragment's route",
    )


@pytest.mark.parametrize(
    ("matcher", "shown"),
    [
        (r'{severity="page",alertname=~"MM2\w+",}', r'severity="page", alertname=~"MM2\\w+"'),
        (r"alertname =~ MM2\w+ , severity=page", r'alertname=~"MM2\\w+", severity="page"'),
        ('severity=~"a,b|page"', 'severity=~"a,b|page"'),
    ],
)
def test_matchers_of_existing_routes_are_read_as_alertmanager_does(
    matcher: str, shown: str
) -> None:
    existing = {"route": {"routes": [{"matchers": [matcher], "receiver": "a"}]}}
    [sentence] = shadowed(existing, [{"alertname": "MM2FlowStopped", "severity": "page"}])
    assert sentence.startswith(f"the fragment shadows the route {shown} (receiver a)")


@pytest.mark.parametrize("matcher", ['"quoted name"="page"', r'alertname=~"\\pL+"'])
def test_matcher_that_is_not_understood_is_a_warning(matcher: str) -> None:
    existing = {"route": {"routes": [{"matchers": [matcher], "receiver": "a"}]}}
    [sentence] = shadowed(existing, [{"alertname": "MM2FlowStopped"}])
    assert sentence.startswith("unknown whether the fragment shadows the route to receiver a: ")


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        ({"receivers": []}, "the file has no route"),
        ([], "the file has no route"),
        ({**EXISTING, "receivers": [{"name": "channel-pay"}]}, "receiver 'channel-pay' is in both"),
    ],
)
def test_merge_with_unusable_configuration_is_rejected(existing: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        merged(existing, added())
