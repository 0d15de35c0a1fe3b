"""How long Prometheus keeps samples, and which rules it has loaded."""

import pytest

from mm2slo_report.prometheus_source import missing_groups, retention, retention_warnings

DAY = 86_400.0


@pytest.mark.parametrize(
    ("text", "seconds", "size"),
    [
        ("15d", 15 * DAY, ""),
        ("35d or 10GiB", 35 * DAY, "10GiB"),
        ("1w3d12h", 10.5 * DAY, ""),
        ("1y", 365 * DAY, ""),
        ("512MB", None, "512MB"),
        ("1.5TiB", None, "1.5TiB"),
        ("0s", 0.0, ""),
        ("", None, ""),
        ("for ever", None, ""),
    ],
)
def test_retention_is_parsed(text: str, seconds: float | None, size: str) -> None:
    assert retention(text) == (seconds, size)


def test_retention_below_the_window_is_warned_about() -> None:
    (warning,) = retention_warnings("15d", 28 * DAY)
    assert warning == (
        "Prometheus keeps samples for 15d, less than the window of 28d: what is older is "
        "missing; start it with --storage.tsdb.retention.time=35d"
    )


def test_size_without_a_time_is_warned_about() -> None:
    (warning,) = retention_warnings("10GiB", 28 * DAY)
    assert warning.startswith("Prometheus keeps 10GiB of samples, whatever their age: ")
    assert warning.endswith("--storage.tsdb.retention.time=35d")


@pytest.mark.parametrize("text", ["28d", "35d or 10GiB", "0s", "", "for ever"])
def test_sufficient_retention_has_no_warning(text: str) -> None:
    assert retention_warnings(text, 28 * DAY) == ()


def test_missing_rule_groups_are_named() -> None:
    (said,) = missing_groups({"one", "other"}, ["one", "two"])
    assert said.startswith("Prometheus has not loaded the rule group two: ")
