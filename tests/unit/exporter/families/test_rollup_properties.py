"""Roll-ups compared with a simple implementation, for arbitrary topics."""

from itertools import chain
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.indicators.replication_lag import Headroom, RetentionLimit
from mm2slo_core.topic_selection import TopicRole
from mm2slo_exporter.families.family_composer import families

FIGURES = st.none() | st.integers(0, 1_000)
TOPICS = st.lists(st.tuples(st.sampled_from(TopicRole), st.lists(FIGURES, max_size=5)), max_size=6)


@given(drawn=TOPICS)
def test_coarser_values_follow_from_finer_values(
    publisher: Any, drawn: list[tuple[TopicRole, list[int | None]]]
) -> None:
    topics = tuple(
        publisher.topic(
            f"t{index}",
            *(
                publisher.partition(
                    number,
                    lag_records=figure,
                    lag_seconds=figure,
                    source_end=figure,
                    headroom=None
                    if figure is None
                    else Headroom(figure, None, RetentionLimit.UNKNOWN),
                )
                for number, figure in enumerate(figures)
            ),
            role=role,
        )
        for index, (role, figures) in enumerate(drawn)
    )
    report = publisher.changed(topics=topics)

    def values(metric: catalogue.Metric, granularity: Granularity) -> dict[tuple[str, ...], Any]:
        found = families([report], publisher.own, granularity)
        parts = (family.series for family in found if family.metric is metric)
        return {labels[3:]: value for labels, value in chain.from_iterable(parts)}

    known = {
        f"t{index}": [figure for figure in figures if figure is not None]
        for index, (_, figures) in enumerate(drawn)
    }
    whole = {f"t{index}": None not in figures for index, (_, figures) in enumerate(drawn)}
    some = {(name,): figures for name, figures in known.items() if figures}
    topic = Granularity.TOPIC
    assert values(catalogue.REPLICATION_LAG_RECORDS, topic) == {t: sum(f) for t, f in some.items()}
    assert values(catalogue.REPLICATION_LAG_SECONDS, topic) == {t: max(f) for t, f in some.items()}
    assert values(catalogue.RETENTION_HEADROOM_RECORDS, topic) == {
        t: min(f) for t, f in some.items()
    }
    assert values(catalogue.SOURCE_END_OFFSET, topic) == {
        (t,): sum(f) for (t,), f in some.items() if whole[t]
    }
    assert values(catalogue.REPLICATION_LAG_RECORDS, Granularity.PARTITION) == {
        (f"t{index}", str(number)): figure
        for index, (_, figures) in enumerate(drawn)
        for number, figure in enumerate(figures)
        if figure is not None
    }
    data = [
        figure
        for index, (role, _) in enumerate(drawn)
        if role is TopicRole.DATA
        for figure in known[f"t{index}"]
    ]
    assert values(catalogue.RETENTION_HEADROOM_RECORDS, Granularity.FLOW) == (
        {(): min(data)} if data else {}
    )
