"""`mm2slo alerts preview`: the message on the terminal and as Slack blocks."""

import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from fake_slack import check_message
from promtool import needs_promtool
from typer.testing import CliRunner

from mm2slo_alerts.alert_files import alert_groups
from mm2slo_alerts.alert_rules import AlertRule
from mm2slo_alerts.message_preview import parse_fired
from mm2slo_cli.alerts import alerts_app
from mm2slo_cli.alerts_preview import AlertState, render_alert, render_message
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

pytestmark = needs_promtool
ESCAPED = ("&lt;", "&gt;", "&amp;")


def preview(*arguments: str) -> str:
    done = CliRunner().invoke(alerts_app, ["preview", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_preview_fits_80_columns() -> None:
    shown = preview("MM2ErrorBudgetBurn", "--flow", "ap->us")
    lines = [line.rstrip() for line in shown.splitlines()]
    assert lines[0] == "▌ 🔥 FIRING page · ap->us · latency 60s"
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("▌ 61% of the error budget is left") for line in lines)
    assert any("'flow=\"ap->us\"'" in line for line in lines)
    assert not any(escape in shown for escape in ESCAPED)


def test_preview_of_resolved_alert_shows_duration() -> None:
    shown = preview("MM2FlowStopped", "--state", "resolved")
    assert "✅ RESOLVED page · Flow us->eu has stopped." in shown
    assert "Lasted 12m 0s" in shown
    assert "amtool" not in shown


def test_preview_json_is_accepted_by_slack(tmp_path: Path) -> None:
    config = tmp_path / "mm2slo.yaml"
    config.write_text(
        "clusters: {us: {bootstrap_servers: [a:9092]}, eu: {bootstrap_servers: [b:9092]}}\n"
        "flows: [{flow: eu->us}]\n"
        "alerting:\n"
        "  links: {runbook: https://docs.example/r, dashboard: https://g.example}\n"
        "  slack: [{name: mirroring, webhook_url_file: /run/secrets/slack}]\n",
        encoding="utf-8",
    )
    message = json.loads(preview("MM2TaskFailed", "--json", "--config", str(config)))
    check_message(message)
    [attachment] = message["attachments"]
    header, section, actions, context = attachment["blocks"]
    assert header["text"]["text"].startswith("⚠️ FIRING ticket · Task 0 of MirrorSourceConnector")
    assert section["text"]["text"].startswith("The partitions of this task are not replicated")
    assert [button["url"] for button in actions["elements"]] == [
        "https://docs.example/r/MM2TaskFailed.md",
        "https://g.example/d/mm2slo-flow?var-flow=eu-%3Eus&from=now-6h&to=now",
    ]
    assert context["elements"][0]["text"].startswith("`amtool silence add ")
    assert attachment["color"] == "#f9a825"


@pytest.mark.parametrize("state", AlertState)
@pytest.mark.parametrize(
    ("name", "flow"),
    [("MM2FlowStopped", ' flow="us->eu"'), ("MM2ClusterUnreachable", "")],
)
def test_logs_button_has_flow_and_start_of_alert(name: str, flow: str, state: AlertState) -> None:
    config = AlertingConfig(links=LinksConfig(splunk="https://splunk.example"))
    rules = {
        rule.alert: rule
        for group in alert_groups(config.links)
        for rule in group.rules
        if isinstance(rule, AlertRule)
    }
    now = datetime(2026, 7, 14, 12, 12, tzinfo=UTC)
    message = render_message(
        render_alert(rules[name], Flow("us", "eu")),
        config,
        state,
        now,
    )
    check_message(message)
    [button] = message["attachments"][0]["actions"]
    assert button["text"] == "Logs"
    start = int(datetime(2026, 7, 14, 12, tzinfo=UTC).timestamp())
    assert parse_qs(urlsplit(button["url"]).query, strict_parsing=True) == {
        "q": [f"search `repl_index`{flow} NOT event_action=offsets_committing | `repl_dedup`"],
        "earliest": [str(start - 7_200)],
        "latest": [str(start + 3_600)],
    }


def test_preview_without_name_lists_alerts() -> None:
    shown = preview()
    assert "MM2FlowStopped" in shown
    assert "MM2SlackDeliveryFailing" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MM2FlowStoped"], "unknown alert 'MM2FlowStoped'; did you mean 'MM2FlowStopped'?"),
        (["x"], "unknown alert 'x'; `mm2slo alerts preview` lists them"),
        (["MM2FlowStopped", "--flow", "us"], "'us' is not a flow"),
    ],
)
def test_preview_with_invalid_argument_is_rejected(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        preview(*arguments)


def test_preview_without_promtool_names_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match=r"promtool is not installed.*apt-get install prometheus"):
        preview("MM2FlowStopped")


def test_parse_fired_without_alert_raises_value_error() -> None:
    with pytest.raises(ValueError, match="no alert in promtool's output"):
        parse_fired("SUCCESS")


def test_parse_fired_unquotes_go_strings() -> None:
    render_alert = parse_fired(
        '      Labels:{alertname="A", topic="a\\"b\\\\c"}\n'
        '      Annotations:{summary="1\\n2 \\u00a0 ü", impact="x"},\n'
    )
    assert render_alert.labels == {"alertname": "A", "topic": 'a"b\\c'}
    assert render_alert.annotations == {"summary": "1\n2 \u00a0 ü", "impact": "x"}


def test_readme_shows_the_message_of_a_stopped_flow() -> None:
    readme = Path("README.md").read_text(encoding="utf-8")
    lines = [line.rstrip() for line in preview("MM2FlowStopped").splitlines()]
    assert "\n".join(lines[:3]) in readme
    assert "\n".join(lines[4:]) in readme
