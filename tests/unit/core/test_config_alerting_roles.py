"""`alerting.watchdog` and `alerting.platform`: each names somebody who can be told."""

from __future__ import annotations

import pytest

from mm2slo_core.config import ConfigError, load_config

BASE = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
alerting:
  slack: [{name: mirroring, webhook_url_file: /run/url}]
  webhooks: [{name: pulse, url: "http://a.example"}, {name: on-call, url: "http://b.example"}]
"""


def test_the_watchdogs_webhook_is_no_channel() -> None:
    alerting = load_config(f"{BASE}  watchdog: pulse\n  platform: on-call\n").alerting
    assert alerting.channels == ("mirroring", "on-call")
    assert (alerting.watchdog, alerting.platform) == ("pulse", "on-call")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("watchdog: pulze", "'pulze' is not there to be told\n  expected: one of pulse, on-call"),
        ("watchdog: mirroring", "'mirroring' is not there to be told"),
        ("platform: on-cal", "next step: did you mean 'on-call'?"),
        ("platform: pulse\n  watchdog: pulse", "expected: one of mirroring, on-call"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(line: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(f"{BASE}  {line}\n")
    assert said in str(refused.value)
