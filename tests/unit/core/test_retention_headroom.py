import pytest

from mm2slo_core.indicators.replication_lag import (
    Headroom,
    RetentionLimit,
    RetentionPolicy,
    headroom,
)

HOUR = RetentionPolicy(seconds=3600.0, size_bytes=None)
SIZE = RetentionPolicy(seconds=None, size_bytes=10**9)
BOTH = RetentionPolicy(seconds=3600.0, size_bytes=10**9)
NONE = RetentionPolicy(None, None)


def config(policy: str = "delete", ms: str = "604800000", size: str = "-1") -> dict[str, str]:
    return {"cleanup.policy": policy, "retention.ms": ms, "retention.bytes": size}


@pytest.mark.parametrize(
    ("settings_", "expected"),
    [
        (config(), RetentionPolicy(604800.0, None)),
        (config(ms="-1", size="1000"), RetentionPolicy(None, 1000)),
        (config(policy="compact", ms="1000", size="1000"), RetentionPolicy(None, None)),
        (config(policy="compact,delete", ms="1500"), RetentionPolicy(1.5, None)),
        (config(policy=" delete , compact"), RetentionPolicy(604800.0, None)),
    ],
)
def test_retention_policy_from_topic_config(
    settings_: dict[str, str], expected: RetentionPolicy
) -> None:
    assert RetentionPolicy.from_topic_config(settings_) == expected


@pytest.mark.parametrize(
    ("case", "policy", "figures", "expected"),
    [
        ("time", HOUR, (500, 600.0, None), Headroom(1000, 3000.0, RetentionLimit.TIME)),
        ("no backlog", HOUR, (0, None, None), Headroom(1000, 3600.0, RetentionLimit.TIME)),
        ("overdue", HOUR, (500, 4000.0, None), Headroom(1000, -400.0, RetentionLimit.TIME)),
        ("size", SIZE, (500, None, 4.0), Headroom(1000, 250.0, RetentionLimit.SIZE)),
        ("size, idle", SIZE, (500, None, 0.0), Headroom(1000, None, RetentionLimit.UNLIMITED)),
        ("the smaller: time", BOTH, (9, 3500.0, 4.0), Headroom(1000, 100.0, RetentionLimit.TIME)),
        ("the smaller: size", BOTH, (9, 600.0, 4.0), Headroom(1000, 250.0, RetentionLimit.SIZE)),
        ("both, idle", BOTH, (9, 600.0, 0.0), Headroom(1000, 3000.0, RetentionLimit.TIME)),
        ("no limit", NONE, (500, 600.0, 4.0), Headroom(1000, None, RetentionLimit.UNLIMITED)),
        ("age unknown", HOUR, (500, None, 4.0), Headroom(1000, None, RetentionLimit.UNKNOWN)),
        ("rate unknown", BOTH, (9, 600.0, None), Headroom(1000, None, RetentionLimit.UNKNOWN)),
        ("settings unknown", None, (9, 600.0, 4.0), Headroom(1000, None, RetentionLimit.UNKNOWN)),
    ],
)
def test_headroom(
    case: str,
    policy: RetentionPolicy | None,
    figures: tuple[int, float | None, float | None],
    expected: Headroom,
) -> None:
    waiting, age, rate = figures
    found = headroom(1500, 500, policy, lag_records=waiting, oldest_age=age, production_rate=rate)
    assert found == expected, case


def test_headroom_records_are_negative_by_lost_records() -> None:
    found = headroom(500, 520, HOUR, lag_records=7, oldest_age=1.0, production_rate=1.0)
    assert found == Headroom(-20, 0.0, RetentionLimit.PASSED)
