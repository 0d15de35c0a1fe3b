"""Backlog detection from appended records alone."""

import pytest

from mm2slo_core.indicators.flow_state import TopicActivityWatch

# (at, records appended to the source, to the target): start of the backlog.
Rounds = list[tuple[float, int, int]]


@pytest.mark.parametrize(
    ("case", "rounds", "backlog_since", "moved_at"),
    [
        ("both grow", [(0, 0, 0), (10, 5, 5), (50, 9, 9)], None, 50),
        ("neither grows", [(0, 0, 0), (100, 0, 0)], None, None),
        ("the target grows first", [(0, 0, 0), (10, 0, 5), (20, 5, 5), (90, 5, 5)], None, 10),
        ("the target grows later", [(0, 0, 0), (31, 5, 0), (40, 5, 5)], None, 40),
        ("the target stops growing", [(0, 0, 0), (10, 5, 5), (41, 9, 5), (80, 10, 5)], 41, 10),
        ("within the grace period", [(0, 0, 0), (10, 5, 5), (40, 9, 5)], None, 10),
        ("from the start on", [(0, 0, 0), (10, 5, 0), (31, 6, 0)], 31, None),
        ("until it grows", [(0, 0, 0), (31, 5, 0), (60, 6, 1)], None, 60),
        ("an idle source after", [(0, 0, 0), (31, 5, 0), (99, 5, 0)], 31, None),
        ("always fewer on the target", [(0, 0, 0), (60, 90, 30), (120, 180, 60)], None, 120),
    ],
)
def test_backlog_starts_when_source_grows_after_grace_period(
    case: str, rounds: Rounds, backlog_since: float | None, moved_at: float | None
) -> None:
    watch = TopicActivityWatch(grace=30.0)
    for at, source, target in rounds:
        watch.observe(at, source, target)
    assert (watch.backlog_since, watch.moved_at) == (backlog_since, moved_at), case
