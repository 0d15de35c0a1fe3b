"""Families of unchanged topics and groups are kept, and render to the same bytes as new ones."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.exporter.families.conftest import OWN, REPORT, partition, topic

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import Flow
from mm2slo_exporter.exposition_family import Family, SeriesColumns
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat, Renderer, Snapshot
from mm2slo_exporter.families import family_composer
from mm2slo_exporter.families.family_composer import SeriesCache, families
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.state.group_lag import LagSum

VARIANTS = [
    [
        topic(name, *(partition(n, source_end=1000 + variant) for n in range(1 + variant % 3)))
        for variant in range(4)
    ]
    for name in ("a", "b", "c", "d", "e")
]
ROUNDS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3), min_size=5, max_size=5),
        st.integers(0, 5),
        st.booleans(),
        st.booleans(),
        st.sampled_from((Granularity.PARTITION, Granularity.TOPIC, Granularity.FLOW)),
        st.floats(10_000, 20_000),
    ),
    max_size=6,
)


def all_bytes(snapshot: Snapshot) -> list[bytes]:
    return [
        b"".join(snapshot.body(fmt, encoding).chunks)
        for fmt in ExpositionFormat
        for encoding in Encoding
    ]


def reports(chosen: list[int], count: int, *, ready: bool, target: bool, at: float) -> list[Any]:
    states = tuple(VARIANTS[at_topic][variant] for at_topic, variant in enumerate(chosen))
    first = replace(REPORT, topics=states[:count], ready=ready, target_readable=target, at=at)
    return [first, replace(REPORT, flow=Flow("eu", "us"), topics=states[2:], at=at)]


@given(ROUNDS)
def test_families_of_changed_blocks_render_like_all_families(
    rounds: list[tuple[list[int], int, bool, bool, Granularity, float]],
) -> None:
    with patch.object(family_composer, "_PARTITIONS_PER_BLOCK", 3):
        cache, renderer = SeriesCache(), Renderer()
        for chosen, count, ready, target, granularity, at in rounds:
            made = reports(chosen, count, ready=ready, target=target, at=at)
            kept = renderer.render(families(made, OWN, granularity, cache))
            full = Renderer().render(families(made, OWN, granularity))
            assert all_bytes(kept) == all_bytes(full)
            assert kept.series == full.series


def test_only_families_of_changed_blocks_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family_composer, "_PARTITIONS_PER_BLOCK", 3)
    cache = SeriesCache()

    def ends(chosen: list[int]) -> list[Family]:
        made = [replace(REPORT, topics=tuple(VARIANTS[k][v] for k, v in enumerate(chosen)))]
        found = families(made, OWN, Granularity.PARTITION, cache)
        return [each for each in found if each.metric is catalogue.SOURCE_END_OFFSET]

    before = ends([2, 2, 2, 2, 2])
    after = ends([2, 2, 0, 2, 2])
    assert [len(family.series) for family in before] == [3, 3, 3, 3, 3]
    assert [old is new for old, new in zip(before[:2], after[:2], strict=True)] == [True, True]
    assert [len(family.series) for family in after[2:]] == [4, 3]
    assert [old is new for old, new in zip(after, ends([2, 2, 0, 2, 2]), strict=True)] == [True] * 4


def test_moving_heartbeats_leave_families_of_data_topics() -> None:
    cache = SeriesCache()
    data = (VARIANTS[0][0], VARIANTS[1][0])

    def ends(beats: int) -> list[Family]:
        moving = topic("heartbeats", partition(0, source_end=beats), role=TopicRole.HEARTBEATS)
        made = [replace(REPORT, topics=(data[0], moving, data[1]))]
        found = families(made, OWN, Granularity.PARTITION, cache)
        return [each for each in found if each.metric is catalogue.SOURCE_END_OFFSET]

    kept = [old is new for old, new in zip(ends(1), ends(2), strict=True)]
    assert kept == [True, False, True]


def test_families_of_groups_are_made_again_when_what_a_group_has_not_read_changes() -> None:
    cache = SeriesCache()
    metrics = (catalogue.GROUP_LAG_RECORDS, catalogue.CHECKPOINT_LAG_RECORDS)

    def of_groups(report: FlowReport) -> dict[catalogue.Metric, Family]:
        found = families([report], OWN, Granularity.TOPIC, cache)
        return {each.metric: each for each in found if each.metric in metrics}

    before = of_groups(REPORT)
    first, *others = REPORT.group_lags
    renamed_state = replace(first, state="dead")
    after = of_groups(replace(REPORT, at=REPORT.at + 5, group_lags=(renamed_state, *others)))
    assert [after[metric] is before[metric] for metric in metrics] == [True, True]
    read = replace(first, by_topic={"orders": LagSum(0, 0.0)})
    changed = of_groups(replace(REPORT, group_lags=(read, *others)))[metrics[0]]
    labels = ("us->eu", "us", "eu", first.cluster, first.group, "orders")
    assert (labels, 0) in list(changed.series)
    assert of_groups(replace(REPORT, target_readable=False)).keys() == {metrics[0]}


def test_partitions_of_all_topics_share_their_label_values() -> None:
    states = tuple(topic(name, partition(0), partition(1)) for name in ("a", "b"))
    made = families([replace(REPORT, topics=states)], OWN, Granularity.PARTITION)
    columns = [each.series.labels for each in made if isinstance(each.series, SeriesColumns)]
    of_partitions = [each for each in columns if len(each) == 4]
    assert len(of_partitions) > 5
    for labels in of_partitions:
        assert labels.last[0] is labels.last[2]
        assert labels.first[0] is labels.first[1]
