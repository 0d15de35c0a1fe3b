"""The series limit falls back to a coarser level."""

import pytest

from mm2slo_core.catalogue.flow_metrics import FLOW_LAG_RECORDS, REPLICATION_LAG_RECORDS
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_exporter.exposition_family import Family, limit_series

FLOW = ("us->eu", "us", "eu")
LEVELS = {
    Granularity.PARTITION: Family(
        REPLICATION_LAG_RECORDS,
        [((*FLOW, topic, str(p)), 1) for topic in "ab" for p in range(50)],
    ),
    Granularity.TOPIC: Family(
        REPLICATION_LAG_RECORDS, [((*FLOW, topic), 50) for topic in "ab"], Granularity.TOPIC
    ),
    Granularity.FLOW: Family(FLOW_LAG_RECORDS, [(FLOW, 100)], Granularity.FLOW),
}


@pytest.mark.parametrize(
    ("wanted", "limit", "in_force", "series", "over_limit", "tried"),
    [
        ("partition", 100, "partition", 100, False, ["partition"]),
        ("partition", 99, "topic", 2, False, ["partition", "topic"]),
        ("partition", 1, "flow", 1, False, ["partition", "topic", "flow"]),
        ("partition", 0, "flow", 1, True, ["partition", "topic", "flow"]),
        ("topic", 100, "topic", 2, False, ["topic"]),
        ("flow", 1, "flow", 1, False, ["flow"]),
    ],
)
def test_limit_series_picks_finest_level_within_limit(
    wanted: str, limit: int, in_force: str, series: int, *, over_limit: bool, tried: list[str]
) -> None:
    asked: list[str] = []

    def families_at(level: Granularity) -> list[Family]:
        asked.append(level.label)
        return [LEVELS[level]]

    limited = limit_series(families_at, Granularity.parse(wanted), limit)
    assert limited.granularity.label == in_force
    assert limited.families == [LEVELS[Granularity.parse(in_force)]]
    assert (limited.series, limited.over_limit) == (series, over_limit)
    assert limited.coarsened is (wanted != in_force)
    assert asked == tried
