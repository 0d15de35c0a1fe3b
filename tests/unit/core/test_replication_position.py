"""The position of a flow in a source partition, and its quality."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.offset_translation import (
    Position,
    PositionQuality,
    SyncPoint,
    estimate_position,
)

Q = PositionQuality


@pytest.mark.parametrize(
    ("case", "committed", "sync", "target_end", "high_watermark", "expected"),
    [
        ("caught up", 480, (500, 300), 351, 551, Position(551, Q.LIVE)),
        ("20 behind", 480, (500, 300), 351, 571, Position(551, Q.LIVE)),
        ("nothing after the sync", 480, (500, 300), 301, 900, Position(501, Q.LIVE)),
        ("no commit yet", None, (0, 0), 10, 12, Position(10, Q.LIVE)),
        ("no sync", 480, None, 351, 551, Position(481, Q.COMMITTED)),
        ("commit ahead of target", 560, (500, 300), 351, 900, Position(561, Q.COMMITTED)),
        ("nothing known", None, None, 351, 551, Position(7, Q.NOT_STARTED)),
        ("nothing known, target down", None, None, None, 551, Position(7, Q.NOT_STARTED)),
        ("target down", 480, (500, 300), None, 551, Position(501, Q.STALE)),
        ("target down, commit ahead", 520, (500, 300), None, 551, Position(521, Q.STALE)),
        ("target down, no sync", 480, None, None, 551, Position(481, Q.STALE)),
        ("one record too many", 480, (500, 300), 352, 551, Position(501, Q.FOREIGN_WRITER)),
        ("target emptied", 480, (500, 300), 0, 551, Position(501, Q.TARGET_RESET)),
        ("target lost its newest record", 480, (500, 300), 300, 551, Position(501, Q.TARGET_RESET)),
        ("source lost the commit", 480, None, 351, 480, Position(7, Q.SOURCE_RESET)),
        ("source lost the synced record", 480, (500, 300), 351, 500, Position(7, Q.SOURCE_RESET)),
        ("source ends right after", 480, (500, 300), 301, 501, Position(501, Q.LIVE)),
    ],
)  # fmt: skip
def test_position_quality_per_situation(
    case: str,
    *,
    committed: int | None,
    sync: tuple[int, int] | None,
    target_end: int | None,
    high_watermark: int,
    expected: Position,
) -> None:
    position = estimate_position(
        committed=committed,
        sync=None if sync is None else SyncPoint(*sync),
        target_end=target_end,
        high_watermark=high_watermark,
        log_start=7,
    )
    assert position == expected, case


@pytest.mark.parametrize(
    ("shared_target", "exactly_once", "quality"),
    [(True, False, Q.SHARED_TARGET), (False, True, Q.EXACTLY_ONCE), (True, True, Q.SHARED_TARGET)],
)
def test_position_without_usable_target_offsets_is_commit(
    *, shared_target: bool, exactly_once: bool, quality: PositionQuality
) -> None:
    position = estimate_position(
        committed=520,
        sync=SyncPoint(500, 300),
        target_end=400,
        high_watermark=600,
        log_start=0,
        shared_target=shared_target,
        exactly_once=exactly_once,
    )
    assert position == Position(521, quality)


def test_position_of_stopped_flow_with_foreign_writer_is_not_caught_up() -> None:
    position = estimate_position(
        committed=499, sync=SyncPoint(499, 499), target_end=2000, high_watermark=900, log_start=0
    )
    assert position == Position(500, Q.FOREIGN_WRITER)


offsets = st.integers(0, 2000)


@given(
    committed=st.none() | offsets,
    sync=st.none() | st.builds(SyncPoint, offsets, offsets),
    target_end=st.none() | offsets,
    high_watermark=offsets,
    log_start=offsets,
)
def test_position_keeps_its_invariants(
    committed: int | None,
    sync: SyncPoint | None,
    target_end: int | None,
    high_watermark: int,
    log_start: int,
) -> None:
    position = estimate_position(
        committed=committed,
        sync=sync,
        target_end=target_end,
        high_watermark=high_watermark,
        log_start=log_start,
    )
    if position.quality in (Q.NOT_STARTED, Q.SOURCE_RESET):
        assert position.next_offset == log_start, "D"
        return
    assert committed is None or position.next_offset > committed, "A"
    assert sync is None or position.next_offset > sync.upstream, "A"
    assert position.next_offset <= high_watermark, "B"
    if position.quality is not Q.LIVE:
        known = (committed, None if sync is None else sync.upstream)
        assert position.next_offset - 1 in known, "C"
