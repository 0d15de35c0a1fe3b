"""`alerting:`: channels, the receivers of the watchdog and platform alerts, URLs and secrets."""

import pytest

from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config

BASE = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
"""
HOOK = "https://hooks.slack.com/services/T000/B000/XXXXsecretXXXX"


def load(alerting: str) -> Config:
    return load_config(f"{BASE}alerting: {alerting}\n")


def report(alerting: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load(alerting)
    return str(refused.value)


def test_alerting_defaults_have_no_channels() -> None:
    assert load("{}").alerting == load_config(BASE).alerting == AlertingConfig()
    assert AlertingConfig().channels == ()
    assert AlertingConfig().maintenance.rules_file == "mm2slo-maintenance.rules.yml"


def test_channels_and_links_are_loaded() -> None:
    alerting = load(
        "{webhooks: [{name: on-call, url: 'http://127.0.0.1:9080/alerts/', "
        "credentials_file: /run/token}], "
        "slack: [{name: mm2, webhook_url_file: /run/url, channel: mm2-alerts}], "
        "links: {runbook: 'https://wiki.example.com/runbooks/', prometheus: 'http://[::1]:9090'}, "
        "maintenance: {rules_file: rules/maintenance.yml, silence: true}}"
    ).alerting
    assert alerting.channels == ("mm2", "on-call")
    assert alerting.webhooks[0].url == "http://127.0.0.1:9080/alerts"
    assert alerting.links.runbook == "https://wiki.example.com/runbooks"
    assert alerting.links.prometheus == "http://[::1]:9090"
    assert (alerting.maintenance.rules_file, alerting.maintenance.silence) == (
        "rules/maintenance.yml", True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "alerting",
    [
        f"{{slack: [{{name: mm2, webhook_url_file: '{HOOK}'}}]}}",
        f"{{slack: [{{name: mm2, webhook_url: '{HOOK}'}}]}}",
        f"{{slack: [{{name: '{HOOK}', webhook_url_file: /run/url}}]}}",
        f"{{slack: '{HOOK}'}}",
        f"{{webhooks: [{{name: a, url: 'http://b/', credentials_file: '{HOOK}'}}]}}",
        "{links: {report: 'https://me:XXXXsecretXXXX@example.com/'}}",
        "{webhooks: [{name: a, url: 'https://me:XXXXsecretXXXX@example.com/<x>'}]}",
    ],
)
def test_misplaced_secret_is_reported_without_its_value(alerting: str) -> None:
    text = report(alerting)
    assert "secretXX" not in text
    assert "  expected: " in text


def test_url_in_place_of_a_file_is_reported() -> None:
    assert report(f"{{slack: [{{name: mm2, webhook_url_file: '{HOOK}'}}]}}") == (
        "mm2slo.yaml: 1 problem\n"
        "alerting.slack[0].webhook_url_file (line 3): the value is a URL, and webhook URLs "
        "are secrets\n"
        "  expected: the path of a file that contains the URL\n"
        "  next step: write the URL to a file that only Alertmanager can read"
    )


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("grafana.example.com", "'grafana.example.com' is not a base URL"),
        ("ftp://example.com", "'ftp://example.com' is not a base URL"),
        ("https://example.com/?a=b", "'https://example.com/?a=b' is not a base URL"),
        ("https://example.com/<b>", "'https://example.com/<b>' is not a base URL"),
        ("https://example.com/`b`", "'https://example.com/`b`' is not a base URL"),
        ("https://example.com/{{b}}", "'https://example.com/{{b}}' is not a base URL"),
        ("https://example.com/a b", "'https://example.com/a b' is not a base URL"),
        ("https:///path", "'https:///path' is not a base URL"),
        ("http://[::1", "'http://[::1' is not a base URL"),
    ],
)
def test_invalid_link_is_reported(address: str, shown: str) -> None:
    text = report(f"{{links: {{dashboard: '{address}'}}}}")
    assert text.splitlines()[1] == f"alerting.links.dashboard (line 3): {shown}"


@pytest.mark.parametrize(
    ("alerting", "expected"),
    [
        (
            "{slack: [{name: mm2, webhook_url_file: /a}, {name: mm2, webhook_url_file: /b}]}",
            "alerting.slack[1].name (line 3): 'mm2' is already the name of alerting.slack[0]",
        ),
        (
            (
                "{slack: [{name: On call, webhook_url_file: /a}], "
                "webhooks: [{name: on-call, url: 'http://b'}]}"
            ),
            (
                "alerting.webhooks[0].name (line 3): 'on-call' is already the name of "
                "alerting.slack[0] ('On call')"
            ),
        ),
    ],
)
def test_duplicate_channel_name_is_reported(alerting: str, expected: str) -> None:
    assert report(alerting).splitlines()[1] == expected


def test_path_with_newline_is_reported() -> None:
    text = report('{maintenance: {rules_file: "a\\nb"}}')
    assert "'a\\nb' is empty or contains control characters" in text


def test_slack_channel_may_start_with_hash() -> None:
    alerting = load("{slack: [{name: pay, webhook_url_file: /run/url, channel: '#pay'}]}").alerting
    assert alerting.slack[0].channel == "#pay"
    assert "contains '!'" in report("{slack: [{name: a, webhook_url_file: /u, channel: '#!pay'}]}")


def test_receiver_in_alertmanagers_format_is_a_channel() -> None:
    alerting = load(
        "{receivers: [{name: pd, pagerduty_configs: [{routing_key_file: /run/pd}]}]}"
    ).alerting
    assert alerting.channels == ("pd",)


@pytest.mark.parametrize(
    "receiver",
    [
        "{name: pd, pagerduty_configs: [{routing_key: XXXXsecretXXXX}]}",
        "{name: op, opsgenie_configs: [{api_key: XXXXsecretXXXX}]}",
        "{name: sl, slack_configs: [{api_url: XXXXsecretXXXX}]}",
        "{name: ma, email_configs: [{auth_password: XXXXsecretXXXX}]}",
        "{name: wh, webhook_configs: [{http_config: {basic_auth: {password: XXXXsecretXXXX}}}]}",
    ],
)
def test_inline_secret_of_receiver_is_reported_without_its_value(receiver: str) -> None:
    text = report(f"{{receivers: [{receiver}]}}")
    assert "contains a secret" in text
    assert "XXXX" not in text
    assert "_file, or {name: SECRET, key: KEY} for AlertmanagerConfig" in text


@pytest.mark.parametrize(
    ("alerting", "expected"),
    [
        ("{severities: {ticket: warning}}", "alerting.severities.page"),
        ("{severities: {page: high, ticket: high}}", "page and ticket are both 'high'"),
        ("{labels: {severity: high}}", "severity is a label of the alerts themselves"),
        ("{labels: {stage: prod}}", "stage is a label of the alerts themselves"),
        ("{labels: {my-team: a}}", "'my-team' is not the name of a label in Prometheus"),
        ("{watchdog: pager}", "unknown receiver 'pager'"),
    ],
)
def test_unusable_label_or_severity_is_reported(alerting: str, expected: str) -> None:
    assert expected in report(alerting)


ROLES = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
alerting:
  slack: [{name: mirroring, webhook_url_file: /run/url}]
  webhooks: [{name: pulse, url: "http://a.example"}, {name: on-call, url: "http://b.example"}]
"""


def test_channels_exclude_the_watchdog_webhook() -> None:
    alerting = load_config(f"{ROLES}  watchdog: pulse\n  platform: on-call\n").alerting
    assert alerting.channels == ("mirroring", "on-call")
    assert (alerting.watchdog, alerting.platform) == ("pulse", "on-call")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("watchdog: pulze", "unknown receiver 'pulze'\n  expected: one of pulse, on-call"),
        ("watchdog: mirroring", "unknown receiver 'mirroring'"),
        ("platform: on-cal", "next step: did you mean 'on-call'?"),
        ("platform: pulse\n  watchdog: pulse", "expected: one of mirroring, on-call"),
    ],
)
def test_unknown_watchdog_or_platform_receiver_is_reported(line: str, expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(f"{ROLES}  {line}\n")
    assert expected in str(refused.value)
