"""`report:`: defaults, time zones and invalid values."""

import pytest

from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.exporter_settings import Listen

HEAD = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
"""


def test_report_defaults_are_loopback_and_embedded_history() -> None:
    report = load_config(HEAD).report
    assert (report.listen, report.tokens_file, report.tls) == (
        Listen("127.0.0.1", 9470),
        None,
        None,
    )
    assert (report.prometheus, report.recorder.interval) == (None, 15.0)
    assert (report.zone, report.reports_per_minute) == ("UTC", 60)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "America/Argentina/Ushuaia", "Etc/GMT+5"])
def test_iana_time_zone_is_accepted(zone: str) -> None:
    assert load_config(f"{HEAD}report: {{zone: {zone}}}").report.zone == zone


@pytest.mark.parametrize(
    "zone", ["Berlin", "/etc/passwd", "../UTC", "+02:00", "Europe/../UTC", "europe/", "x" * 300]
)
def test_unknown_time_zone_is_reported(zone: str) -> None:
    with pytest.raises(ConfigError, match="is not a time zone") as refused:
        load_config(f'{HEAD}report: {{zone: "{zone}"}}')
    assert "such as Europe/Berlin or UTC" in str(refused.value)


@pytest.mark.parametrize("credentials", ["me:hunter2", "me:1/hunter2", "hunter2"])
def test_url_with_credentials_is_reported_without_the_password(credentials: str) -> None:
    with pytest.raises(ConfigError, match="user name or password") as refused:
        load_config(f"{HEAD}report: {{prometheus: {{url: 'http://{credentials}@prom:9090'}}}}")
    assert "hunter2" not in str(refused.value)


def test_reports_per_minute_of_zero_is_reported() -> None:
    with pytest.raises(ConfigError, match="reports_per_minute"):
        load_config(f"{HEAD}report: {{reports_per_minute: 0}}")


def test_scrape_interval_of_more_than_a_minute_is_reported() -> None:
    with pytest.raises(ConfigError, match="'5m' is too long") as refused:
        load_config(f"{HEAD}report: {{recorder: {{interval: 5m}}}}")
    assert "expected: a duration of at most 1m" in str(refused.value)
