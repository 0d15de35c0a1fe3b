"""`alerting.watchdog` and `alerting.platform` refer to configured receivers."""

import pytest

from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_loader import load_config

BASE = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
alerting:
  slack: [{name: mirroring, webhook_url_file: /run/url}]
  webhooks: [{name: pulse, url: "http://a.example"}, {name: on-call, url: "http://b.example"}]
"""


def test_channels_exclude_the_watchdog_webhook() -> None:
    alerting = load_config(f"{BASE}  watchdog: pulse\n  platform: on-call\n").alerting
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
def test_unknown_receiver_is_reported(line: str, expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(f"{BASE}  {line}\n")
    assert expected in str(refused.value)
